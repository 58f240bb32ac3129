//! A store, a workspace with files and a model of their own for one test.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mainstay_agent::{AGENT, Agent, Event, Input, OpenSession, Opened, Settings, TurnReport};
use mainstay_journal::compaction::Compaction;
use mainstay_journal::entry::{self, Body, Entry};
use mainstay_journal::model_call::{self, Tried};
use mainstay_journal::{JOURNAL, SessionId};
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_message::Content;
use mainstay_store::{Location, Options, OwnerId, Schema, Store};
use mainstay_testkit::model::{Asked, ModelServer, Reply, Script, Shape};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// How the ledger begins in a request.
pub(crate) const LEDGER: &str = "# Ledger, kept by Mainstay";

/// Where a test happens.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) model: ModelServer,
    pub(crate) location: Location,
    pub(crate) settings: Settings,
}

impl Place {
    /// One whose model takes so many tokens, where that is known.
    pub(crate) fn new(window: Option<u64>, script: impl Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let location = Location::file(directory.path().join("store.db"));
        let model = ModelServer::start(script);
        let mut settings =
            Settings { chain: vec![candidate(&model, "qwen", window)], ..Settings::default() };
        settings.asking.first_byte = Duration::from_millis(500);
        settings.asking.idle = Duration::from_millis(500);
        settings.asking.backoff_base = Duration::from_millis(10);
        settings.compaction.timeout = Duration::from_secs(5);
        Self { directory, model, location, settings }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Puts so many files of so many bytes into the workspace: `f0`, `f1` and so on.
    pub(crate) fn fill(&self, files: usize, bytes: usize) {
        for number in 0..files {
            let line = format!("line of file {number} ");
            let text = line.repeat(bytes / line.len() + 1);
            std::fs::write(self.workspace().join(format!("f{number}")), &text[..bytes]).unwrap();
        }
    }

    pub(crate) fn store(&self) -> (Store, OwnerId) {
        let options = Options::new(Schema::new(&[JOURNAL, AGENT, mainstay_memory::MEMORY]));
        let store = Store::open(&self.location, options).unwrap();
        let owner = store.write(|tx| tx.owner("me")).unwrap();
        (store, owner)
    }

    pub(crate) fn agent(&self) -> Agent {
        let (store, owner) = self.store();
        // Nothing here starts it.
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: self.directory.path().join("keepers"),
            grace: Duration::ZERO,
        });
        Agent::new(store, owner, keeper, self.settings.clone())
    }

    pub(crate) fn begin(&self) -> OpenSession {
        self.agent().begin(&self.workspace(), "2026-01-02").unwrap()
    }

    pub(crate) fn entries(&self, id: SessionId) -> Vec<Entry> {
        self.store().0.read(|tx| entry::all(tx, id)).unwrap()
    }

    pub(crate) fn compactions(&self, id: SessionId) -> Vec<Compaction> {
        let made = |entry: Entry| match entry.body {
            Body::Compaction(made) => Some(*made),
            _ => None,
        };
        self.entries(id).into_iter().filter_map(made).collect()
    }

    /// The rows of summaries in the ledger of model calls.
    pub(crate) fn summaries(&self, id: SessionId) -> Vec<Tried> {
        self.store().0.read(|tx| model_call::of_purpose(tx, id, "summary")).unwrap()
    }

    /// Requests that were no summaries.
    pub(crate) fn rounds(&self) -> Vec<Asked> {
        self.model.asked().into_iter().filter(|asked| !is_summary(asked)).collect()
    }
}

pub(crate) fn candidate(model: &ModelServer, name: &str, window: Option<u64>) -> Arc<Candidate> {
    let provider = Provider::without_key(
        "local",
        Api::OpenAiChat,
        model.base_url(Shape::Chat).parse().unwrap(),
    );
    Arc::new(Candidate { window, max_output: Some(1_000), ..Candidate::new(provider, name) })
}

/// Whether a request asks for a summary.
pub(crate) fn is_summary(asked: &Asked) -> bool {
    asked.system().starts_with("You write the record")
}

/// A call that reads a file of the workspace, with many words that no cheap step shortens.
pub(crate) fn reading(number: usize) -> Reply {
    let words = format!("Now comes file {number}, as the plan says. ").repeat(40);
    Reply::text(words).call("read_file", json!({ "path": format!("f{number}") }))
}

/// The same without a word.
pub(crate) fn reading_silently(number: usize) -> Reply {
    Reply::call_of("read_file", json!({ "path": format!("f{number}") }))
}

/// The words of a summary that the n-th request for one is answered with.
pub(crate) fn summary(number: usize) -> Reply {
    Reply::text(format!("SUMMARY {number}: files were read, one after the other."))
}

/// Reads a file a round, so many in all, then answers; a summary is what `summarise` says.
pub(crate) fn reader(
    rounds: usize,
    mut summarise: impl FnMut(&Asked) -> Reply + Send + 'static,
) -> impl Script {
    let mut next = 0;
    move |asked: &Asked| {
        if is_summary(asked) {
            return summarise(asked);
        }
        next += 1;
        if next > rounds { Reply::text("All read.") } else { reading(next - 1) }
    }
}

/// What a provider says whose window is too small.
pub(crate) fn too_long() -> Reply {
    Reply::status(400, "maximum context length exceeded").code("context_length_exceeded")
}

pub(crate) fn input(text: &str) -> Input {
    Input { content: vec![Content::Text(text.to_owned())], key: None }
}

/// Does a turn and keeps what was told.
pub(crate) async fn turn(work: &mut OpenSession, text: &str) -> (TurnReport, Vec<Event>) {
    let mut told = Vec::new();
    let cancel = CancellationToken::new();
    let ended = work.turn(&input(text), &mut |event| told.push(event), &cancel).await.unwrap();
    (ended, told)
}

/// The notices on compaction.
pub(crate) fn notices(told: &[Event]) -> Vec<String> {
    let of_compaction = |event: &Event| match event {
        Event::Notice { about: "compaction", message, .. } => Some(message.clone()),
        _ => None,
    };
    told.iter().filter_map(of_compaction).collect()
}

pub(crate) fn opened(agent: &Agent, id: SessionId) -> OpenSession {
    match agent.open(id).unwrap() {
        Opened::Got(work) => *work,
        Opened::Held(holder) => panic!("held by {holder:?}"),
    }
}

/// All words of a request.
pub(crate) fn body(asked: &Asked) -> String {
    asked.body.to_string()
}
