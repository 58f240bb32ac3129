//! Whether every step ran exactly once, by what it left behind and by the journal.

use clap::builder::styling::AnsiColor;
use mainstay_journal::entry::Body;
use mainstay_message::AssistantPart;
use mainstay_tools::Fact;
use serde::Serialize;
use serde_json::Value;

use super::below::{self, LOOK};
use super::play::Seen;
use super::scene::Scene;
use super::script::{self, REPORT, ScriptStep, Trace};
use super::stage::Stage;
use crate::error::Error;
use crate::wording;

/// How often it is looked whether the keeper is gone: two seconds in all.
const LOOKS: u32 = 400;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    /// Whether everything is as it must be.
    good: bool,
    steps: Vec<StepFound>,
    killed_agent: u32,
    command: i32,
    /// Whether the command went on when its agent was killed.
    command_went_on: bool,
    answer: Option<String>,
    left_behind: Vec<String>,
    millis: i64,
}

/// What was found of one step.
#[derive(Debug, Serialize)]
struct StepFound {
    number: usize,
    tool: &'static str,
    what: &'static str,
    /// How many outcomes the journal has of it.
    outcomes: usize,
    /// Whether one of them is in doubt.
    in_doubt: bool,
    /// What it leaves in the workspace; `None` for a step that only looks.
    trace: Option<String>,
    /// How often that is there.
    traces: usize,
}

impl Verdict {
    /// Looks at everything, and clears up.
    pub(super) fn of(seen: &Seen, scene: &Scene, millis: i64) -> Self {
        let steps = steps_found(&seen.session, |name| scene.file(name));
        let mut left_behind = processes_left();
        if let Err(error) = scene.strike() {
            left_behind.push(format!("{}: {error}", scene.root().display()));
        }
        Self {
            good: seen.answer.is_some()
                && left_behind.is_empty()
                && steps.iter().all(StepFound::ran_once),
            steps,
            killed_agent: seen.agent,
            command: seen.command,
            command_went_on: seen.went_on,
            answer: seen.answer.clone(),
            left_behind,
            millis,
        }
    }

    /// Whether everything is as it must be.
    pub(super) fn is_good(&self) -> bool {
        self.good
    }

    /// Tells it, and how to go on.
    pub(super) fn tell(&self, stage: Stage) -> Result<(), Error> {
        stage.gap()?;
        stage.say(
            "Did every step run exactly once? Each left this in the workspace and the journal:",
        )?;
        for step in &self.steps {
            let (mark, colour) = if step.ran_once() {
                ("once ", AnsiColor::Green)
            } else {
                ("WRONG", AnsiColor::Red)
            };
            stage.line(mark, colour, &step.summary_line(self.steps.len()))?;
        }
        stage.gap()?;
        for left in &self.left_behind {
            stage.say(&format!("WRONG: left behind: {left}"))?;
        }
        #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
        let seconds = self.millis as f64 / 1000.0;
        if !self.good {
            stage.line(
                "No.",
                AnsiColor::Red,
                "This is a bug; please report it with this output.",
            )?;
            return Ok(());
        }
        stage.line(
            "Yes.",
            AnsiColor::Green,
            &format!("Every step ran once, in {seconds:.1} s."),
        )?;
        stage.say("Nothing is left behind: no process, no file.")?;
        stage.gap()?;
        stage.say(
            "Now try it with your own model. On the first run, Mainstay looks for one on this machine, or \
             tells you how to set a key:",
        )?;
        stage.command("mainstay")
    }
}

impl StepFound {
    fn ran_once(&self) -> bool {
        let traces = usize::from(self.trace.is_some());
        self.outcomes == 1 && !self.in_doubt && self.traces == traces
    }

    fn summary_line(&self, of: usize) -> String {
        let count = |number, thing| wording::count(u64::try_from(number).unwrap_or(0), thing);
        let traces = match &self.trace {
            Some(trace) => format!("{} {trace}", self.traces),
            None => "only reads".to_owned(),
        };
        let doubt = if self.in_doubt { ", in doubt" } else { "" };
        let (number, tool, outcomes) = (self.number, self.tool, count(self.outcomes, "outcome"));
        format!("{number}/{of} {tool}: {traces}, {outcomes}{doubt}")
    }
}

/// What the journal and the files of the workspace say of every step.
fn steps_found(session: &Value, file: impl Fn(&str) -> String) -> Vec<StepFound> {
    let outcomes = outcomes(session);
    let found = |(index, step): (usize, ScriptStep)| {
        let outcomes = outcomes.get(index).map(Vec::as_slice).unwrap_or_default();
        let (trace, traces) = match step.trace {
            Trace::Line(line) => {
                let lines = file(REPORT).lines().filter(|each| *each == line).count();
                (Some(format!("line \"{line}\"")), lines)
            }
            Trace::File(name, content) => {
                (Some(format!("file {name}")), usize::from(file(name) == content))
            }
            Trace::Nothing => (None, 0),
        };
        StepFound {
            number: index + 1,
            tool: step.tool,
            what: step.shown,
            outcomes: outcomes.len(),
            in_doubt: outcomes.contains(&Sure::No),
            trace,
            traces,
        }
    };
    script::steps().into_iter().enumerate().map(found).collect()
}

/// Whether an outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sure {
    Yes,
    No,
}

/// The outcomes of every call that the journal holds, in the order of the calls.
fn outcomes(session: &Value) -> Vec<Vec<Sure>> {
    let mut calls: Vec<(String, Vec<Sure>)> = Vec::new();
    for entry in session["log"].as_array().into_iter().flatten() {
        match serde_json::from_value(entry["body"].clone()) {
            Ok(Body::Assistant { parts, .. }) => {
                calls.extend(parts.into_iter().filter_map(|part| match part {
                    AssistantPart::Call(call) => Some((call.id, Vec::new())),
                    _ => None,
                }));
            }
            Ok(Body::Result { result, facts, .. }) => {
                let doubt = facts.into_iter().any(|fact| {
                    serde_json::from_value::<Fact>(fact).is_ok_and(|fact| fact == Fact::InDoubt)
                });
                let found = calls.iter_mut().find(|(id, _)| *id == result.call);
                found
                    .into_iter()
                    .for_each(|(_, found)| found.push(if doubt { Sure::No } else { Sure::Yes }));
            }
            _ => {}
        }
    }
    calls.into_iter().map(|(_, found)| found).collect()
}

/// What still runs, once the keeper has had time to go.
fn processes_left() -> Vec<String> {
    for _ in 0..LOOKS {
        if below::below().is_empty() {
            return Vec::new();
        }
        std::thread::sleep(LOOK);
    }
    let told = |process: below::Process| format!("process {}: {}", process.pid, process.line);
    below::below().into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A session in which every step was called, with these facts for each of its outcomes.
    fn session(outcomes: &[&[Value]]) -> Value {
        let mut log = Vec::new();
        for (number, facts) in outcomes.iter().enumerate() {
            let id = format!("call_{number}");
            let call = json!({ "call": { "id": id, "name": "shell", "arguments": "{}" } });
            log.push(json!({ "body": { "assistant": { "parts": [call], "model": "m" } } }));
            for fact in *facts {
                let result = json!({ "call": id, "name": "shell", "content": [] });
                let facts = if fact.is_null() { json!([]) } else { json!([fact]) };
                log.push(json!({ "body": { "result": { "result": result, "facts": facts } } }));
            }
        }
        json!({ "log": log })
    }

    fn wrong(session: &Value, report: &str) -> Vec<usize> {
        let file = |name: &str| match script::steps().remove(0).trace {
            Trace::File(script, content) if script == name => content.to_owned(),
            _ => report.to_owned(),
        };
        let steps = steps_found(session, file);
        steps.iter().filter(|step| !step.ran_once()).map(|step| step.number).collect()
    }

    #[test]
    fn a_step_that_ran_twice_or_not_at_all_or_perhaps_is_found() {
        let once: &[Value] = &[Value::Null];
        let good = session(&[once; 6]);
        let report = "north 42\nsouth 58\ntotal 100\nchecked yes\n";
        assert_eq!(wrong(&good, report), [0; 0]);
        assert_eq!(wrong(&good, &report.replace("south 58", "south 58\nsouth 58")), [3]);
        assert_eq!(wrong(&good, &report.replace("checked yes\n", "")), [6]);
        let twice: &[Value] = &[Value::Null, Value::Null];
        assert_eq!(wrong(&session(&[once, twice, once, &[], once, once]), report), [2, 4]);
        let doubt = json!(Fact::InDoubt);
        assert_eq!(wrong(&session(&[once, once, &[doubt], once, once, once]), report), [3]);
        assert_eq!(wrong(&session(&[]), report), [1, 2, 3, 4, 5, 6]);
    }
}
