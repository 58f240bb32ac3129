//! A provider that is a command: it is run for each question, with JSON on its standard input, and
//! answers in JSON on its standard output.

use std::time::Duration;

use mainstay_store::Id;
use mainstay_tools::Keeper;
use mainstay_tools::keeper::{Ended, Exit, Job, Limits, Program, Streams};
use serde_json::{Value, json};

use super::super::{Memory, NewMemory, Query, Reply, Trouble};
use super::answer;

/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 256 << 10;
/// How much of a complaint is told.
const TOLD: usize = 300;
/// What commands are told of the language they are spoken to in.
const VERSION: u32 = 1;

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    /// What runs.
    pub program: Program,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Where it runs when no workspace is known.
    pub directory: std::path::PathBuf,
}

pub(super) struct Runner {
    command: Command,
    keeper: Keeper,
    limit: Duration,
}

impl Runner {
    pub(super) fn new(command: Command, keeper: Keeper, limit: Duration) -> Self {
        Self { command, keeper, limit }
    }

    pub(super) async fn recall(&self, query: Query<'_>) -> Reply<Vec<Memory>> {
        let place = query.place;
        let answer = self
            .ask(&json!({
                "version": VERSION,
                "action": "recall",
                "query": query.text,
                "limit": query.limit,
                "session": place.session,
                "workspace": place.workspace,
            }))
            .await?;
        if answer.get("memories").is_none_or(|memories| !memories.is_array()) {
            return Err(Trouble("its answer has no list `memories`".to_owned()));
        }
        Ok(answer::memories(&answer))
    }

    pub(super) async fn remember(&self, new: NewMemory<'_>) -> Reply<Reply<String>> {
        let answer = self
            .ask(&json!({
                "version": VERSION,
                "action": "remember",
                "text": new.text,
                "category": new.category,
                "tags": new.tags,
                "source": new.source,
                "key": new.key,
                "session": new.place.session,
                "workspace": new.place.workspace,
            }))
            .await?;
        Ok(Ok(answer::id(&answer).unwrap_or_else(|| new.key.to_owned())))
    }

    pub(super) async fn forget(&self, id: &str) -> Reply<Reply<bool>> {
        let asked = json!({ "version": VERSION, "action": "forget", "id": id });
        let answer = self.ask(&asked).await?;
        Ok(Ok(answer.get("forgotten").and_then(Value::as_bool).unwrap_or(true)))
    }

    /// Runs it once. Dropped before that, it ends.
    async fn ask(&self, asked: &Value) -> Reply<Value> {
        let trouble = |error: mainstay_tools::keeper::KeeperError| {
            Trouble(format!("it could not be run: {error}"))
        };
        let keeper = self.keeper.name().await.map_err(trouble)?;
        let mut given = asked.to_string().into_bytes();
        given.push(b'\n');
        let workspace = asked["workspace"].as_str().map(std::path::PathBuf::from);
        let directory = workspace.filter(|place| place.is_dir());
        let key = format!("memory-{}", Id::new());
        let job = Job {
            // It belongs to no conversation: nobody collects it.
            session: key.clone(),
            key,
            program: self.command.program.clone(),
            directory: directory.unwrap_or_else(|| self.command.directory.clone()),
            environment: self.command.environment.clone(),
            limits: Limits { wall: Some(self.limit), idle: None, output: Some(LONGEST_ANSWER) },
            input: false,
            given: Some(given),
            streams: Streams::Apart,
            background: false,
            // It is the user's own, as a hook is.
            sandbox: None,
        };
        let ended = self.keeper.run(&keeper, &job).await.map_err(trouble)?;
        if !ended.left.is_empty() {
            // What it starts ends with it.
            let _ = self.keeper.stop(&job.key).await;
        }
        read(&ended)
    }
}

/// What a command answered.
fn read(ended: &Ended) -> Reply<Value> {
    let shown = &ended.output;
    let whole = (shown.total <= LONGEST_ANSWER).then(|| shown.whole());
    if let Some(file) = &shown.file {
        // Nobody else reads it.
        let _ = std::fs::remove_file(file);
    }
    if ended.how != Exit::Code(0) {
        let complaint = ended.errors.as_ref().map(|errors| errors.text()).unwrap_or_default();
        let line = complaint.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let line: String = line.unwrap_or_default().chars().take(TOLD).collect();
        let how = &ended.how;
        return Err(Trouble(match line.is_empty() {
            true => how.to_string(),
            false => format!("{how}: {line}"),
        }));
    }
    let whole = whole
        .ok_or_else(|| Trouble(format!("it answered more than {} KiB", LONGEST_ANSWER >> 10)))?;
    if whole.iter().all(u8::is_ascii_whitespace) {
        return Err(Trouble("it answered nothing".to_owned()));
    }
    serde_json::from_slice(&whole)
        .map_err(|error| Trouble(format!("what it answered is no JSON: {error}")))
}
