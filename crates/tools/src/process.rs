//! The `process` tool: commands that go on in the background.

mod registry;

use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub use registry::{KnownProcess, ProcessState, Processes};

use crate::keeper::{Attached, Collected, Ended, KeeperError, Status};
use crate::outcome::Piece;
use crate::shell::{self, CallState, RecoveredCall};
use crate::tool::{Action, Concurrency, Invocation, Replay, Tool, Traits};
use crate::{Fact, Grant, Outcome, Settled, schema};

/// How much of an output is shown at once.
const PAGE: u64 = 16 << 10;
/// How much of the end of an output `poll` and `wait` show.
const GLANCE: u64 = 2 << 10;
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);
const MARGIN: Duration = Duration::from_secs(30);

/// Starts and looks after commands in the background.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Verb,
    /// For start: run by `sh -c` in the workspace.
    command: Option<String>,
    /// Its name, for all but start and list.
    process: Option<String>,
    /// For read: the first byte, 0 by default.
    offset: Option<u64>,
    /// For write: what it reads. Without it, its input ends.
    text: Option<String>,
    /// For wait: seconds, 60 by default, at most 600.
    seconds: Option<f64>,
    /// For start: it needs the network. The user may be asked.
    network: Option<bool>,
    /// For start: directories outside the workspace that it changes. The user may be asked.
    write: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Start,
    List,
    Poll,
    Read,
    Write,
    Wait,
    Stop,
    Acknowledge,
}

impl Tool for Process {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process".to_owned(),
            description: "Runs and manages commands in the background. You are notified when \
                          one ends; acknowledge it once you have acted on it. They end when the \
                          agent does."
                .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Kept,
            concurrency: Concurrency::Exclusive,
            wall: LONGEST_WAIT + MARGIN,
        }
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        let text = |name| call.arguments.get(name).and_then(Value::as_str);
        match text("action") {
            Some("start") => match text("command") {
                Some(command) => Action::Execute(command.to_owned()),
                None => Action::Read,
            },
            Some("write") => match text("text") {
                Some(written) => input(call, text("process").unwrap_or_default(), written),
                None => Action::Read,
            },
            _ => Action::Read,
        }
    }

    fn wants(&self, call: &Invocation<'_>) -> Grant {
        match schema::arguments::<Arguments>(call.arguments) {
            Ok(given) if given.action == Verb::Start => {
                shell::wants(call, given.network, given.write)
            }
            Ok(_) | Err(_) => Grant::default(),
        }
    }

    fn plan<'a>(&'a self, call: Invocation<'a>) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            match verb(call) {
                Some(Verb::Start) => shell::plan(call).await,
                _ => None,
            }
        })
    }

    fn settle<'a>(
        &'a self,
        call: Invocation<'a>,
        plan: Option<&'a Value>,
    ) -> BoxFuture<'a, Settled> {
        Box::pin(settle(call, plan))
    }

    fn run<'a>(&'a self, call: Invocation<'a>, plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match run(call, plan).await {
                Ok(outcome) | Err(outcome) => outcome,
            }
        })
    }
}

/// Giving a process a text. A shell reads it as the end of all that it was given.
fn input(call: &Invocation<'_>, process: &str, text: &str) -> Action {
    let known = call.workplace.processes.get(process);
    let (command, before) = known.map(|known| (known.command, known.input)).unwrap_or_default();
    Action::Input { command, before, text: text.to_owned() }
}

fn verb(call: Invocation<'_>) -> Option<Verb> {
    Verb::deserialize(call.arguments.get("action")?).ok()
}

async fn settle(call: Invocation<'_>, plan: Option<&Value>) -> Settled {
    match verb(call) {
        Some(Verb::Start) => {}
        Some(Verb::Write) => {
            return Settled::Unknown("The text may or may not have been written.".to_owned());
        }
        // Done twice, they do the same.
        _ => return Settled::NotStarted,
    }
    let Ok(arguments) = schema::arguments::<Arguments>(call.arguments) else {
        return Settled::NotStarted;
    };
    let command = arguments.command.unwrap_or_default();
    let keeper = plan.and_then(shell::planned).unwrap_or_default();
    match shell::call_state(call, plan).await {
        CallState::Running => Settled::Done(started(call, keeper, &command)),
        CallState::Over(RecoveredCall::Ended(ended)) => {
            let mut outcome = started(call, keeper, &command);
            call.workplace.processes.ended(call.id, &ended);
            outcome.pieces.push(Piece::Said(format!("It has ended: {}.", ended.how)));
            Settled::Done(outcome)
        }
        CallState::Over(RecoveredCall::NotStarted) => Settled::NotStarted,
        CallState::Over(RecoveredCall::Unknown(words)) => Settled::Unknown(words),
    }
}

async fn run(call: Invocation<'_>, plan: Option<&Value>) -> Result<Outcome, Outcome> {
    let arguments: Arguments = schema::arguments(call.arguments)?;
    let keeper = &call.workplace.keeper;
    let name = || {
        arguments
            .process
            .as_deref()
            .ok_or_else(|| Outcome::failed("Name the process. Nothing was done."))
    };
    match arguments.action {
        Verb::Start => {
            let command = arguments
                .command
                .as_deref()
                .ok_or_else(|| Outcome::failed("Name the command to start. Nothing was done."))?;
            start(call, plan, command).await
        }
        Verb::List => Ok(list(call).await),
        Verb::Poll => poll(call, name()?).await,
        Verb::Read => read(call, name()?, arguments.offset.unwrap_or(0)).await,
        Verb::Write => {
            let name = name()?;
            reach(call, name).await?;
            let written = match &arguments.text {
                Some(text) => {
                    call.workplace.processes.wrote(name, text);
                    keeper.write(name, text.as_bytes()).await
                }
                None => keeper.close_input(name).await,
            };
            if let Err(error) = written {
                // A part of it may have arrived.
                call.workplace.processes.input_is_unknown(name);
                return Err(Outcome::failed(error.to_string()));
            }
            Ok(Outcome::said(match arguments.text {
                Some(_) => "Written.",
                None => "Its input is closed.",
            }))
        }
        Verb::Wait => {
            let limit = match arguments.seconds {
                None => DEFAULT_WAIT,
                Some(seconds) => Duration::try_from_secs_f64(seconds)
                    .map_err(|_| Outcome::failed("`seconds` must not be negative."))?
                    .min(LONGEST_WAIT),
            };
            let name = name()?;
            reach(call, name).await?;
            // Whether it ended or the time is over, how it stands tells; a gone keeper too.
            let _ = tokio::time::timeout(limit, keeper.watch(name)).await;
            poll(call, name).await
        }
        Verb::Stop => {
            let name = name()?;
            reach(call, name).await?;
            match keeper.stop(name).await {
                Ok(()) | Err(KeeperError::Unknown(_)) => poll(call, name).await,
                Err(error) => Err(Outcome::failed(error.to_string())),
            }
        }
        Verb::Acknowledge => acknowledge(call, name()?).await,
    }
}

async fn start(
    call: Invocation<'_>,
    plan: Option<&Value>,
    command: &str,
) -> Result<Outcome, Outcome> {
    let keeper = shell::keeper_of(call, plan).await?;
    let mut job = shell::job(call, command);
    job.background = true;
    job.input = true;
    let status = call.workplace.keeper.start(&keeper, &job).await;
    let status = status.map_err(|error| {
        let failed = Outcome::failed(error.to_string());
        match error {
            // It may have begun, or begin when its keeper goes on.
            KeeperError::Silent | KeeperError::Lost => failed.fact(Fact::InDoubt),
            KeeperError::Start { .. } | KeeperError::Unknown(_) | KeeperError::Refused(_) => failed,
        }
    })?;
    let mut outcome = started(call, &keeper, command);
    if let Some(ended) = &status.ended {
        call.workplace.processes.ended(call.id, ended);
        outcome.pieces.push(Piece::Said(format!("It has ended: {}.", ended.how)));
    }
    Ok(outcome)
}

fn started(call: Invocation<'_>, keeper: &str, command: &str) -> Outcome {
    call.workplace.processes.started(call.id, keeper, command);
    Outcome::said(format!("Started process {}.", call.id)).fact(Fact::Background {
        process: call.id.to_owned(),
        keeper: keeper.to_owned(),
        command: command.to_owned(),
    })
}

/// How a process stands, wherever that is known.
enum View {
    /// Its keeper answers.
    Live(Box<Status>),
    /// Its keeper is gone and told how it ended.
    Past(Box<Ended>),
    /// Only the journal knows.
    FromJournal(String),
    Unknown,
}

async fn view(call: Invocation<'_>, name: &str) -> Result<View, KeeperError> {
    let workplace = call.workplace;
    let known = workplace.processes.get(name);
    let mut status = poll_keeper(call, name).await?;
    if status.is_none()
        && let Some(known) = known.as_ref().filter(|known| known.state == ProcessState::Running)
        // A former agent's keeper may have it still.
        && let Attached::Alive(_) = workplace.keeper.attach(&known.keeper, call.session).await
    {
        status = poll_keeper(call, name).await?;
    }
    if let Some(status) = status {
        if let Some(ended) = &status.ended {
            workplace.processes.ended(name, ended);
        }
        return Ok(View::Live(Box::new(status)));
    }
    let Some(known) = known else { return Ok(View::Unknown) };
    if let Collected::Ended(ended) = workplace.keeper.collect(&known.keeper, name) {
        workplace.processes.ended(name, &ended);
        return Ok(View::Past(Box::new(ended)));
    }
    Ok(View::FromJournal(match known.state {
        ProcessState::Ended(how) | ProcessState::Acknowledged(how) => format!("ended, {how}"),
        ProcessState::Running => "gone with its keeper; how it ended is unknown".to_owned(),
    }))
}

/// Makes sure that the keeper of a process, if it lives, can be asked.
async fn reach(call: Invocation<'_>, name: &str) -> Result<(), Outcome> {
    match view(call, name).await {
        Ok(View::Unknown) => Err(unknown(name)),
        Ok(_) => Ok(()),
        Err(error) => Err(Outcome::failed(error.to_string())),
    }
}

/// How a process stands, if a keeper that this agent is attached to knows it.
async fn poll_keeper(call: Invocation<'_>, name: &str) -> Result<Option<Status>, KeeperError> {
    match call.workplace.keeper.poll(name).await {
        Ok(status) => Ok(Some(status)),
        Err(KeeperError::Unknown(_) | KeeperError::Lost) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(call: Invocation<'_>) -> Outcome {
    let workplace = call.workplace;
    let mut names: Vec<(String, String)> =
        workplace.processes.all().into_iter().map(|known| (known.name, known.command)).collect();
    for status in workplace.keeper.list(call.session).await.unwrap_or_default() {
        let shown = status.background || !status.left.is_empty();
        if shown && !names.iter().any(|(name, _)| *name == status.key) {
            names.push((status.key, status.command));
        }
    }
    if names.is_empty() {
        return Outcome::said("There are no background processes.");
    }
    let mut lines = String::new();
    for (name, command) in names {
        let state = match view(call, &name).await {
            Ok(view) => state_text(&view),
            Err(error) => error.to_string(),
        };
        lines.push_str(&format!("{name}: {command}: {state}\n"));
    }
    Outcome::default().data(lines)
}

/// How a process stands, in words.
fn state_text(view: &View) -> String {
    match view {
        View::Live(status) => {
            let took = status.took.as_secs_f64();
            match (&status.ended, status.left.len()) {
                (None, _) => format!("running for {took:.1} s, wrote {} bytes", status.total),
                (Some(ended), 0) => format!("ended, {} ({took:.1} s)", ended.how),
                (Some(ended), left) => {
                    format!("ended, {} ({took:.1} s), and left {left} running", ended.how)
                }
            }
        }
        View::Past(ended) => format!("ended, {} ({:.1} s)", ended.how, ended.took.as_secs_f64()),
        View::FromJournal(words) => words.clone(),
        View::Unknown => "unknown".to_owned(),
    }
}

async fn poll(call: Invocation<'_>, name: &str) -> Result<Outcome, Outcome> {
    let view = view(call, name).await.map_err(|error| Outcome::failed(error.to_string()))?;
    let outcome = Outcome::said(format!("{name}: {}", state_text(&view)));
    let (from, bytes) = match &view {
        View::Live(status) => {
            let from = status.total.saturating_sub(GLANCE);
            match call.workplace.keeper.read(name, from, GLANCE).await {
                Ok((from, bytes, _)) => (from, bytes),
                Err(_) => return Ok(outcome),
            }
        }
        View::Past(ended) => {
            let whole = [&ended.output.head[..], &ended.output.tail[..]].concat();
            let start = whole.len().saturating_sub(usize::try_from(GLANCE).unwrap_or(usize::MAX));
            (ended.output.total - (whole.len() - start) as u64, whole[start..].to_vec())
        }
        View::FromJournal(_) => return Ok(outcome),
        View::Unknown => return Err(unknown(name)),
    };
    if bytes.is_empty() {
        return Ok(outcome);
    }
    let mut outcome = outcome;
    if from > 0 {
        outcome.pieces.push(Piece::Said(format!("Its output from byte {from} on:")));
    }
    Ok(outcome.data(String::from_utf8_lossy(&bytes)))
}

fn unknown(name: &str) -> Outcome {
    Outcome::failed(KeeperError::Unknown(name.to_owned()).to_string())
}

async fn read(call: Invocation<'_>, name: &str, offset: u64) -> Result<Outcome, Outcome> {
    reach(call, name).await?;
    let (from, bytes, total) = match call.workplace.keeper.read(name, offset, PAGE).await {
        Ok(part) => part,
        Err(KeeperError::Unknown(_) | KeeperError::Lost) => match view(call, name).await {
            Ok(View::Past(ended)) => ended.output.part(offset, PAGE),
            Ok(View::FromJournal(words)) => {
                return Err(Outcome::failed(format!("Its output is gone; it {words}.")));
            }
            _ => return Err(unknown(name)),
        },
        Err(error) => return Err(Outcome::failed(error.to_string())),
    };
    let end = from + bytes.len() as u64;
    let mut first = format!("Bytes {from} to {end} of {total}.");
    if from > offset {
        first.push_str(&format!(" Earlier bytes, from {offset} on, were not kept."));
    }
    Ok(Outcome::said(first).data(String::from_utf8_lossy(&bytes)))
}

async fn acknowledge(call: Invocation<'_>, name: &str) -> Result<Outcome, Outcome> {
    let view = view(call, name).await.map_err(|error| Outcome::failed(error.to_string()))?;
    let how = match &view {
        View::Live(status) => match &status.ended {
            Some(ended) => ended.how.to_string(),
            None => {
                return Err(Outcome::failed("It has not ended; there is nothing to acknowledge."));
            }
        },
        View::Past(ended) => ended.how.to_string(),
        View::FromJournal(words) => words.clone(),
        View::Unknown => return Err(unknown(name)),
    };
    call.workplace.processes.acknowledge(name, how);
    Ok(Outcome::said(format!("Acknowledged the end of {name}."))
        .fact(Fact::Acknowledged { process: name.to_owned() }))
}
