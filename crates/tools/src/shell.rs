//! The `shell` tool: a command line, run by the keeper.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::keeper::{
    Attached, BACKSTOP, Collected, Ended, Exit, Job, KeeperError, Left, Limits, Program, Status,
    Streams,
};
use crate::outcome::Piece;
use crate::sandbox::{Network, remove_planted};
use crate::tool::{Action, Concurrency, Exposure, Invocation, Replay, Tool, Traits};
use crate::{Fact, Grant, Outcome, Settled, WholeOutput, environment, schema};

const DEFAULT_LIMIT: Duration = Duration::from_secs(120);
/// A command that writes nothing for so long is taken for stuck.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// The engine's limit lies behind the keeper's, which can say what came until then.
const MARGIN: Duration = Duration::from_secs(30);

/// Runs a command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Run by `sh -c` in the workspace.
    command: String,
    /// Seconds, 120 by default, at most 1800.
    timeout: Option<f64>,
    /// It needs the network. The user may be asked.
    network: Option<bool>,
    /// Directories outside the workspace that it changes. The user may be asked.
    write: Option<Vec<String>>,
}

impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell".to_owned(),
            description: "Runs a command and waits for it. There is no terminal and no input. Use \
                          `process` for servers and other commands that keep running."
                .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Kept,
            concurrency: Concurrency::Exclusive,
            wall: BACKSTOP + MARGIN,
        }
    }

    fn exposure(&self) -> Exposure {
        Exposure::Always
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        match call.arguments.get("command").and_then(Value::as_str) {
            Some(command) => Action::Execute(command.to_owned()),
            // Nothing is run: the model is told what is missing, and nobody is asked.
            None => Action::Read,
        }
    }

    fn wants(&self, call: &Invocation<'_>) -> Grant {
        // What cannot be read is not run.
        let given = schema::arguments::<Arguments>(call.arguments).ok();
        given.map(|given| wants(call, given.network, given.write)).unwrap_or_default()
    }

    fn plan<'a>(&'a self, call: Invocation<'a>) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move { plan(call).await })
    }

    fn prepare(&self, call: Invocation<'_>, plan: Option<&Value>) {
        if let (Some(keeper), Ok((command, limit))) =
            (plan.and_then(planned), command_and_limit(call))
        {
            call.workplace.keeper.prepare(keeper, limited(call, &command, limit));
        }
    }

    fn settle<'a>(
        &'a self,
        call: Invocation<'a>,
        plan: Option<&'a Value>,
    ) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let command = match self.action(&call) {
                Action::Execute(command) => command,
                _ => String::new(),
            };
            let keeper = plan.and_then(planned).unwrap_or_default();
            match settle(call, plan).await {
                RecoveredCall::Ended(ended) => {
                    Settled::Done(outcome(call, keeper, &command, &ended))
                }
                RecoveredCall::NotStarted => Settled::NotStarted,
                RecoveredCall::Unknown(words) => Settled::Unknown(words),
            }
        })
    }

    fn run<'a>(&'a self, call: Invocation<'a>, plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match run(call, plan).await {
                Ok(outcome) | Err(outcome) => outcome,
            }
        })
    }
}

/// What a call that runs a command asks to be allowed beyond the sandbox.
pub(crate) fn wants(
    call: &Invocation<'_>,
    network: Option<bool>,
    write: Option<Vec<String>>,
) -> Grant {
    let home = call.workplace.environment.iter().find(|(name, _)| name == "HOME");
    let path = |text: String| match (text.strip_prefix("~/"), home) {
        (Some(below), Some((_, home))) => PathBuf::from(home).join(below),
        _ => PathBuf::from(text),
    };
    Grant { network: network == Some(true), write: write.into_iter().flatten().map(path).collect() }
}

/// The command that a call asks for, and how long it may take.
fn command_and_limit(call: Invocation<'_>) -> Result<(String, Duration), Outcome> {
    let Arguments { command, timeout, .. } = schema::arguments(call.arguments)?;
    let limit = match timeout {
        None => DEFAULT_LIMIT,
        Some(seconds) if seconds > 0.0 => {
            Duration::try_from_secs_f64(seconds).unwrap_or(BACKSTOP).min(BACKSTOP)
        }
        Some(_) => {
            return Err(Outcome::failed(
                "`timeout` must be more than 0 seconds. Nothing was done.",
            ));
        }
    };
    Ok((command, limit))
}

/// The job of a command that may take so long.
fn limited(call: Invocation<'_>, command: &str, limit: Duration) -> Job {
    let limits = Limits { wall: Some(limit), idle: Some(IDLE), output: None };
    Job { limits, ..job(call, command) }
}

async fn run(call: Invocation<'_>, plan: Option<&Value>) -> Result<Outcome, Outcome> {
    let (command, limit) = command_and_limit(call)?;
    let keeper = keeper_of(call, plan).await?;
    let ended = match call.workplace.keeper.begin(&keeper, call.id).await {
        Ok(Some(ended)) => Ok(ended),
        Ok(None) => call.workplace.keeper.run(&keeper, &limited(call, &command, limit)).await,
        Err(error) => Err(error),
    };
    let error = match ended {
        Ok(ended) => return Ok(outcome(call, &keeper, &command, &ended)),
        Err(KeeperError::Silent) => return Err(unheard(call, &keeper, &command, limit)),
        Err(error @ KeeperError::Lost) => error,
        Err(error) => return Err(Outcome::failed(error.to_string())),
    };
    // The keeper was lost in mid-work; its spool may know more.
    Err(match settle(call, plan).await {
        RecoveredCall::Ended(ended) => outcome(call, &keeper, &command, &ended),
        RecoveredCall::NotStarted => Outcome::failed(
            "The process keeper was lost before the command started. Nothing was done; try again.",
        ),
        RecoveredCall::Unknown(_) => Outcome::failed(error.to_string()).fact(Fact::InDoubt),
    })
}

/// What the model is told of a command whose time is over and whose keeper does not answer. That its
/// spool knows nothing proves nothing: it may take the request in when it goes on.
fn unheard(call: Invocation<'_>, keeper: &str, command: &str, limit: Duration) -> Outcome {
    if let Collected::Ended(ended) = call.workplace.keeper.collect(keeper, call.id) {
        return outcome(call, keeper, command, &ended);
    }
    Outcome::failed(format!(
        "The command's limit of {} s is over, and the process keeper does not answer. The command may \
         still run until the keeper goes on, or is ended; check what it did before you start it again.",
        limit.as_secs_f64()
    ))
    .fact(Fact::InDoubt)
}

/// The keeper that the call was planned with.
pub(crate) async fn keeper_of(
    call: Invocation<'_>,
    plan: Option<&Value>,
) -> Result<String, Outcome> {
    if let Some(name) = plan.and_then(planned) {
        return Ok(name.to_owned());
    }
    call.workplace.keeper.name().await.map_err(|error| Outcome::failed(error.to_string()))
}

pub(crate) fn planned(plan: &Value) -> Option<&str> {
    plan.get("keeper")?.as_str()
}

/// The keeper that a plan names, as it is written down.
pub fn planned_text(plan: &str) -> Option<String> {
    serde_json::from_str::<Value>(plan).ok().as_ref().and_then(planned).map(str::to_owned)
}

/// Which keeper will run the call.
pub(crate) async fn plan(call: Invocation<'_>) -> Option<Value> {
    match call.workplace.keeper.name().await {
        Ok(name) => Some(json!({ "keeper": name })),
        // The run meets the same error and tells the model.
        Err(_) => None,
    }
}

/// A job for a call, in the foreground and without limits.
pub(crate) fn job(call: Invocation<'_>, command: &str) -> Job {
    Job {
        key: call.id.to_owned(),
        session: call.session.to_owned(),
        program: Program::Line(command.to_owned()),
        directory: call.workplace.workspace.clone(),
        environment: environment::clean(call.workplace),
        limits: Limits::default(),
        input: false,
        given: None,
        streams: Streams::Together,
        background: false,
        sandbox: call.workplace.confinement.specification(call.grant),
    }
}

/// What can be found out about a call whose outcome nobody saw.
pub(crate) enum RecoveredCall {
    Ended(Box<Ended>),
    NotStarted,
    Unknown(String),
}

/// Waits for the end of a call that was interrupted, wherever it runs.
pub(crate) async fn settle(call: Invocation<'_>, plan: Option<&Value>) -> RecoveredCall {
    let error = match call_state(call, plan).await {
        CallState::Over(found) => return found,
        CallState::Running => match call.workplace.keeper.ended(call.id).await {
            Ok(ended) => return RecoveredCall::Ended(Box::new(ended)),
            Err(error) => error,
        },
    };
    // The keeper was lost meanwhile; its spool may know more.
    match call_state(call, plan).await {
        CallState::Over(RecoveredCall::Ended(ended)) => RecoveredCall::Ended(ended),
        CallState::Over(RecoveredCall::Unknown(words)) => RecoveredCall::Unknown(words),
        // It ran a moment ago.
        CallState::Over(RecoveredCall::NotStarted) | CallState::Running => {
            RecoveredCall::Unknown(error.to_string())
        }
    }
}

/// How a call that was interrupted stands.
pub(crate) enum CallState {
    Running,
    Over(RecoveredCall),
}

pub(crate) async fn call_state(call: Invocation<'_>, plan: Option<&Value>) -> CallState {
    let keeper = &call.workplace.keeper;
    let Some(name) = plan.and_then(planned) else {
        return CallState::Over(RecoveredCall::Unknown(String::new()));
    };
    // A keeper that answers may be killed before the next question.
    while let Attached::Alive(_) = keeper.attach(name, call.session).await {
        return match keeper.poll_with(name, call.id).await {
            Ok(Status { ended: None, .. }) => CallState::Running,
            Ok(Status { ended: Some(ended), .. }) => {
                CallState::Over(RecoveredCall::Ended(Box::new(ended)))
            }
            Err(KeeperError::Unknown(_)) => CallState::Over(RecoveredCall::NotStarted),
            Err(KeeperError::Lost) => continue,
            Err(error) => CallState::Over(RecoveredCall::Unknown(error.to_string())),
        };
    }
    CallState::Over(match keeper.collect(name, call.id) {
        Collected::NeverStarted => RecoveredCall::NotStarted,
        Collected::Ended(ended) => RecoveredCall::Ended(Box::new(ended)),
        Collected::Running => RecoveredCall::Unknown("Its keeper does not answer.".to_owned()),
        Collected::InDoubt(words) => RecoveredCall::Unknown(words),
    })
}

/// What may be behind a failure in a sandbox, where its words look like that.
fn hint(call: Invocation<'_>, ended: &Ended) -> Option<&'static str> {
    let sandbox = call.workplace.confinement.sandbox().filter(|_| ended.how.code() != 0)?;
    let text = ended.output.text();
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let network = ["unreachable", "resolve host", "name resolution", "Connection refused"];
    if sandbox.network == Network::Closed && !call.grant.network && says(&network) {
        return Some(
            "Commands have no network here. If this one needs it, run it again with `network` true: \
             the user is asked.",
        );
    }
    let read_only = ["Read-only file system", "EROFS"];
    let is_kept = says(&read_only) || says(&["Device or resource busy", "EBUSY"]);
    if is_kept && text.contains(".git") {
        return Some(
            "Commands run in a sandbox in which git's configuration, hooks and info are read-only. Pass \
             settings with `git -c name=value`, branch with `--no-track`, and ask the user to change \
             configuration or hooks.",
        );
    }
    let refused = ["Permission denied", "permission denied", "not permitted", "EACCES"];
    (says(&read_only) || says(&refused)).then_some(
        "Commands run in a sandbox: they write only in the workspace, temporary directories and \
         caches of build tools, and read no secrets; the rest is read-only. Only the user can change \
         that, in config.toml under [sandbox].",
    )
}

/// What the model is told at the end of a command.
fn outcome(call: Invocation<'_>, keeper: &str, command: &str, ended: &Ended) -> Outcome {
    let code = ended.how.code();
    let mut first = format!("{} ({:.1} s)", ended.how, ended.took.as_secs_f64());
    let has_run = !matches!(ended.how, Exit::Failed(_));
    if has_run && ended.output.total == 0 {
        first.push_str(", no output");
    }
    let mut outcome = if code == 0 { Outcome::said(first) } else { Outcome::failed(first) };
    if !has_run {
        return outcome;
    }
    if ended.output.total > 0 {
        outcome = outcome.data(ended.output.text());
    }
    if ended.output.is_shortened() {
        // What it left running may go on writing, and is read from there.
        let spooled = ended.output.file.clone().filter(|_| ended.left.is_empty());
        outcome.whole = Some(Box::new(WholeOutput { bytes: ended.output.whole(), spooled }));
    }
    if let Some(words) = hint(call, ended) {
        outcome.pieces.push(Piece::Said(words.to_owned()));
    }
    let planted = call.workplace.confinement.sandbox().map(remove_planted).unwrap_or_default();
    for path in planted {
        outcome.pieces.push(Piece::Said(format!(
            "{} was removed: git would have taken its configuration from elsewhere.",
            path.display()
        )));
    }
    outcome = outcome.fact(Fact::Exit { command: command.to_owned(), code });
    if ended.left.is_empty() {
        return outcome;
    }
    let left: Vec<String> = ended.left.iter().map(described).collect();
    let running = match left.len() {
        1 => "a process".to_owned(),
        several => format!("{several} processes"),
    };
    outcome.pieces.push(Piece::Said(format!(
        "It left {running} running, which `process` can read and stop as {}:",
        call.id
    )));
    // A process chooses its own arguments: they are data like all else that it says.
    outcome = outcome.data(left.join("\n"));
    call.workplace.processes.started(call.id, keeper, command);
    outcome.fact(Fact::Background {
        process: call.id.to_owned(),
        keeper: keeper.to_owned(),
        command: command.to_owned(),
    })
}

/// A process that was left running, by the number that a command has to use for it.
fn described(left: &Left) -> String {
    match left.inside {
        Some(inside) => format!("{inside} (outside the sandbox {}: {})", left.pid, left.command),
        None => format!("{} ({})", left.pid, left.command),
    }
}
