//! What happens: the agent works, is killed, and another one goes on.

use clap::builder::styling::AnsiColor;
use serde_json::Value;

use super::below::{self, LOOK, Process};
use super::scene::{Program, Scene};
use super::script::{self, HALFWAY, ScriptStep};
use super::stage::Stage;
use crate::error::Error;
use crate::wording;

/// Below a step.
const INDENT: &str = "    ";

/// What was seen.
pub(super) struct Seen {
    /// The agent that was killed.
    pub(super) agent: u32,
    /// The process of the command that it was waiting for.
    pub(super) command: i32,
    /// Whether that process went on without its agent.
    pub(super) went_on: bool,
    /// What the journal holds of the session.
    pub(super) session: Value,
    /// The model's last words, if it came so far.
    pub(super) answer: Option<String>,
}

/// Shows it, and answers what was seen.
pub(super) async fn play(stage: Stage, scene: &Scene) -> Result<Seen, Error> {
    stage.say(
        "This is a demo. The model is a script inside this program: no AI is asked, and nothing \
         leaves this machine. Everything else is real: the engine, the tools, the store.",
    )?;
    stage.gap()?;
    stage.say(&format!("Directory: {}", scene.root().display()))?;
    stage.say(&format!("Task: {}", script::TASK))?;
    stage.gap()?;

    let steps = script::steps();
    let mut agent = scene.start(&["run", "--yes", "--json", script::TASK])?;
    let session = work_until_halfway(stage, &steps, &mut agent).await?;
    let command = running(&mut agent).await?;
    stage.below(INDENT, &format!("runs as process {}", command.pid))?;
    stage.gap()?;

    let number = agent.pid();
    agent.kill().map_err(|error| Error::failed(format!("could not kill the agent: {error}")))?;
    let went_on = below::below().iter().any(|process| process.pid == command.pid);
    stage.line("SIGKILL", AnsiColor::Red, &format!("to the agent, process {number}"))?;
    stage.say(&if went_on {
        format!("The command keeps running: process {} belongs to the keeper.", command.pid)
    } else {
        "The command has ended meanwhile; the keeper knows how.".to_owned()
    })?;
    stage.say("A new agent takes over: mainstay resume")?;
    stage.gap()?;

    let mut agent = scene.start(&["resume", &session, "--yes", "--json"])?;
    let answer = work_to_the_end(stage, &steps, &mut agent).await?;
    let session = journal(scene, &session).await?;
    Ok(Seen { agent: number, command: command.pid, went_on, session, answer })
}

/// Shows the work of the first agent, up to the call in which it is to be killed. Answers the
/// session's id.
async fn work_until_halfway(
    stage: Stage,
    steps: &[ScriptStep],
    agent: &mut Program,
) -> Result<String, Error> {
    let mut session = String::new();
    let mut calls = 0;
    while let Some(event) = next(agent).await? {
        match event["type"].as_str() {
            Some("session") => session = event["id"].as_str().unwrap_or_default().to_owned(),
            Some("tool_call") => {
                calls += 1;
                show_call(stage, steps, calls)?;
                if calls == HALFWAY {
                    return Ok(session);
                }
            }
            Some("end") => return Err(too_soon(&event)),
            _ => show_other(stage, &event)?,
        }
    }
    Err(too_soon(&Value::Null))
}

/// Shows the work of the second agent. Answers the model's last words.
async fn work_to_the_end(
    stage: Stage,
    steps: &[ScriptStep],
    agent: &mut Program,
) -> Result<Option<String>, Error> {
    let mut answer = None;
    let mut calls = HALFWAY - 1;
    while let Some(event) = next(agent).await? {
        match event["type"].as_str() {
            Some("tool_call") => {
                calls += 1;
                show_call(stage, steps, calls)?;
                if calls == HALFWAY {
                    stage.below(INDENT, "waiting for the same process; it is not started again")?;
                }
            }
            Some("end") if event["outcome"] == "answered" => {
                answer = event["answer"].as_str().map(str::to_owned);
            }
            Some("end") => return Err(too_soon(&event)),
            _ => show_other(stage, &event)?,
        }
    }
    let ended = agent.ended().await;
    let ended = ended.map_err(|error| Error::failed(format!("lost the agent: {error}")))?;
    if !ended.success() {
        return Err(Error::failed(format!("the agent ended with {ended}")));
    }
    if let Some(answer) = &answer {
        stage.gap()?;
        stage.say(&format!("Answer: {answer}"))?;
    }
    Ok(answer)
}

fn show_call(stage: Stage, steps: &[ScriptStep], number: usize) -> Result<(), Error> {
    let what = match steps.get(number - 1) {
        Some(step) => format!("{} {}", step.tool, step.shown),
        None => "an unexpected call".to_owned(),
    };
    stage.line(&format!("{number}/{}", steps.len()), AnsiColor::Cyan, &what)
}

fn show_other(stage: Stage, event: &Value) -> Result<(), Error> {
    match event["type"].as_str() {
        Some("tool_result") => {
            stage.below(INDENT, &brief(event["text"].as_str().unwrap_or_default()))
        }
        Some("notice") => {
            let message = event["message"].as_str().unwrap_or_default();
            stage.below(INDENT, &format!("note: {}", wording::line(message)))
        }
        _ => Ok(()),
    }
}

/// What the tool says of itself, and the first line that a command wrote.
fn brief(text: &str) -> String {
    let mut lines = text.lines();
    let said = lines.next().unwrap_or_default().trim_end_matches(':');
    match lines.find(|line| !line.starts_with("<data ")) {
        Some(wrote) if said.starts_with("exit code") => format!("{said}: {wrote}"),
        _ => said.to_owned(),
    }
}

/// Waits until the command of the call runs.
async fn running(agent: &mut Program) -> Result<Process, Error> {
    loop {
        let found = below::below().into_iter().find(|process| process.line.contains(script::SLOW));
        if let Some(process) = found {
            return Ok(process);
        }
        let event = tokio::select! {
            event = next(agent) => event?.unwrap_or_default(),
            () = tokio::time::sleep(LOOK) => continue,
        };
        if event["type"] != "notice" {
            return Err(too_soon(&event));
        }
    }
}

/// What the journal holds of a session.
async fn journal(scene: &Scene, session: &str) -> Result<Value, Error> {
    let mut program = scene.start(&["sessions", "show", session, "--json"])?;
    let mut text = String::new();
    while let Some(line) = program.line().await {
        text.push_str(&line);
        text.push('\n');
    }
    // Its end comes with that of its output.
    let _ = program.ended().await;
    serde_json::from_str(&text).map_err(|error| unreadable(&error, &text))
}

async fn next(agent: &mut Program) -> Result<Option<Value>, Error> {
    match agent.line().await {
        Some(line) => {
            serde_json::from_str(&line).map(Some).map_err(|error| unreadable(&error, &line))
        }
        None => Ok(None),
    }
}

fn unreadable(error: &serde_json::Error, text: &str) -> Error {
    Error::failed(format!("the program did not print JSON ({error}): {}", wording::line(text)))
}

/// The agent ended where it had more to do.
fn too_soon(end: &Value) -> Error {
    let words = [&end["error"]["message"], &end["reason"], &end["answer"]];
    let why = words.iter().find_map(|words| words.as_str().filter(|words| !words.is_empty()));
    Error::failed(match why {
        Some(why) => format!("the agent did not finish: {}", wording::line(why)),
        None => "the agent ended before its work was done".to_owned(),
    })
    .hint("Check the installation: `mainstay doctor`")
}
