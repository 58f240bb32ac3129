//! The `edit_file` tool.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocking::{self, Stop};
use super::bounds::{Bounds, elsewhere};
use super::change::{Before, Change, is_stale, losses, make_durable, put, turn, wait_for_turn};
use super::diff::diff;
use super::open::Closed;
use super::patch::apply;
use super::replace::{Miss, Places, replace};
use super::seen::fact;
use super::text::{BYTE_ORDER_MARK, hash, is_binary, printable, size};
use super::write::{OpenedSlot, action, room, slot, with_kept};
use crate::replacing::Slot;
use crate::schema::{arguments, parameters};
use crate::{
    Action, Concurrency, Exposure, Invocation, Outcome, Replay, Settled, Tool, Traits, Workplace,
};

/// Bigger files are for programs to change: 16 MiB.
const EDIT_LIMIT: u64 = 16 << 20;

/// Changes a part of a file.
pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    /// Exact text that is there once.
    old: Option<String>,
    new: Option<String>,
    /// Replace every `old`.
    all: Option<bool>,
    /// Instead of old and new: a unified diff.
    patch: Option<String>,
}

/// The file before and after, by which a crash is settled.
#[derive(Deserialize, Serialize)]
struct Plan {
    path: String,
    before: String,
    after: String,
}

impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file".to_owned(),
            description:
                "Changes a file: replaces `old` by `new`, or applies `patch`. Shows the change."
                    .to_owned(),
            parameters: parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Unknown,
            concurrency: Concurrency::Exclusive,
            wall: Duration::from_secs(60),
        }
    }

    fn exposure(&self) -> Exposure {
        Exposure::Always
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        action(call)
    }

    fn plan<'a>(&'a self, call: Invocation<'a>) -> BoxFuture<'a, Option<Value>> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = room(&call);
        let target = call.target.map(Path::to_owned);
        Box::pin(async move {
            let given = given.ok()?;
            let prepare = move |stop: &Stop| {
                let (bounds, path) = given.locate(&workplace, target.as_deref())?;
                let before = Before::look(&bounds, &path, stop)?;
                Edit::prepare(&bounds, path, before, &given, stop)
            };
            let edit = blocking::blocking(room, prepare);
            // An edit that does not fit is told by the run, which finds the same.
            let edit = edit.await.ok()?.ok()?;
            serde_json::to_value(edit.plan()).ok()
        })
    }

    fn settle<'a>(
        &'a self,
        call: Invocation<'a>,
        plan: Option<&'a Value>,
    ) -> BoxFuture<'a, Settled> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = room(&call);
        let plan = plan.and_then(|plan| Plan::deserialize(plan).ok());
        Box::pin(async move {
            if let Ok(given) = &given {
                // What is in the file is judged by only after others' unfinished changes are finished.
                slot(&workplace, &given.path).await;
            }
            let settle = move |stop: &Stop| match (given, plan) {
                (Ok(given), Some(plan)) => settle(&workplace, &given, plan, stop),
                // What does not fit gets no plan, and fails when it is run.
                _ => Settled::Unknown(
                    "The edit did not fit the file when it was asked for. Read the file."
                        .to_owned(),
                ),
            };
            let settled = blocking::blocking(room, settle).await;
            settled.unwrap_or_else(|_| Settled::Unknown(String::new()))
        })
    }

    fn run<'a>(&'a self, call: Invocation<'a>, plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = room(&call);
        let target = call.target.map(Path::to_owned);
        let plan = plan.and_then(|plan| Plan::deserialize(plan).ok());
        Box::pin(async move {
            let given = match given {
                Ok(given) => given,
                Err(outcome) => return outcome,
            };
            let OpenedSlot { slot, kept } = slot(&workplace, &given.path).await;
            let run = move |stop: &Stop| {
                run(&workplace, &given, target.as_deref(), plan.as_ref(), slot, stop)
            };
            with_kept(blocking::outcome(room, run).await, &kept)
        })
    }
}

/// An edit that fits, not yet made.
struct Edit {
    path: PathBuf,
    before: Before,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Edit {
    fn prepare(
        bounds: &Bounds,
        path: PathBuf,
        before: Before,
        given: &Arguments,
        stop: &Stop,
    ) -> Result<Self, Outcome> {
        let Before::Present { metadata, content } = &before else {
            return Err(Closed::Missing.outcome(bounds, &path));
        };
        let old = match content {
            Some((content, _)) if metadata.len() <= EDIT_LIMIT => content.clone(),
            _ => {
                return Err(Outcome::failed(format!(
                    "{} is too large to edit ({}). Use `shell`.",
                    bounds.shown(&path),
                    size(metadata.len())
                )));
            }
        };
        let new = given.apply(&old, stop).map_err(|miss| {
            let words = format!("{} is unchanged. {}", bounds.shown(&path), miss.words);
            match miss.lines {
                Some(lines) => Outcome::failed(words).data(lines),
                None => Outcome::failed(words),
            }
        })?;
        stop.check()?;
        Ok(Self { path, before, old, new })
    }

    fn plan(&self) -> Plan {
        let path = self.path.to_string_lossy().into_owned();
        Plan { path, before: hash(&self.old), after: hash(&self.new) }
    }
}

impl Arguments {
    fn locate(
        &self,
        workplace: &Workplace,
        target: Option<&Path>,
    ) -> Result<(Bounds, PathBuf), Outcome> {
        let bounds = Bounds::of(workplace);
        let path = bounds.locate_judged(&self.path, target)?;
        Ok((bounds, path))
    }

    /// Whether the edit was certainly not made, though somebody else changed the file: it would fit, and
    /// would not fit again after it was made.
    fn is_not_made_in(&self, content: &[u8], stop: &Stop) -> bool {
        let made = self.apply(content, stop);
        made.is_ok_and(|made| self.apply(&made, stop).is_err())
    }

    /// What the file's content is after the edit. A byte order mark stays what the file begins with.
    fn apply(&self, content: &[u8], stop: &Stop) -> Result<Vec<u8>, Miss> {
        let mark: &[u8] = if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { b"" };
        let text = &content[mark.len()..];
        if is_binary(text) {
            return Err(Miss::said("It is a binary file. Use `shell`."));
        }
        let changed = match (&self.old, &self.new, &self.patch) {
            (Some(old), Some(new), None) => {
                let places = if self.all == Some(true) { Places::All } else { Places::One };
                let [old, new] = [old, new].map(|text| {
                    if mark.is_empty() { text } else { text.trim_start_matches('\u{FEFF}') }
                });
                replace(text, old, new, places, stop)?
            }
            (None, None, Some(patch)) => apply(text, patch, stop)?,
            _ => {
                return Err(Miss::said("Give either `old` and `new`, or `patch` alone."));
            }
        };
        if changed == text {
            return Err(Miss::said("The edit changes nothing."));
        }
        Ok([mark, &changed].concat())
    }
}

/// Makes the edit in what is in the file now. Where somebody else changed that since the edit was
/// planned, or does so meanwhile, it is made all the same if what it replaces is still there, once.
fn run(
    workplace: &Workplace,
    given: &Arguments,
    target: Option<&Path>,
    plan: Option<&Plan>,
    slot: Option<Slot>,
    stop: &Stop,
) -> Result<Outcome, Outcome> {
    // Whoever is not of this home takes no turns by the slot, and can be quicker again and again.
    const ATTEMPTS: usize = 100;
    let (bounds, path) = given.locate(workplace, target)?;
    let shown = bounds.shown(&path);
    if plan.is_some_and(|plan| plan.path != path.to_string_lossy()) {
        return Err(elsewhere(&given.path));
    }
    let _turn = turn(&path);
    let mut slot = wait_for_turn(&bounds, &path, slot, stop)?;
    let last = workplace.seen.last(&path);
    for _ in 0..ATTEMPTS {
        let before = Before::look_to_change(&bounds, &path, stop)?;
        let edit = Edit::prepare(&bounds, path.clone(), before, given, stop)?;
        let mut words = vec![format!("Changed {shown}:")];
        if is_stale(&edit.before, last.as_ref()) {
            words.push(
                "The file had been changed on disk since you last read or wrote it; the rest of it may be new to you."
                    .to_owned(),
            );
        }
        words.extend(losses(&bounds, &path, &edit.before, last.as_ref(), stop));
        let after = hash(&edit.new);
        match put(&bounds, &path, &edit.before, (&edit.new, &after), slot.as_mut(), stop)? {
            Change::Overtaken => continue,
            Change::Made(note) => words.extend(note.map(str::to_owned)),
        }
        let fact = fact(&path, after, true);
        workplace.seen.note(&fact);
        return Ok(Outcome::said(words.join(" ")).data(diff(&edit.old, &edit.new)).fact(fact));
    }
    Err(Outcome::failed(format!(
        "{shown} is being changed by someone else all the time, so it was left alone. Try again later."
    )))
}

fn settle(workplace: &Workplace, given: &Arguments, plan: Plan, stop: &Stop) -> Settled {
    let bounds = Bounds::of(workplace);
    let found = bounds.locate_to_change(&given.path).and_then(|path| {
        let now = Before::look(&bounds, &path, stop)?;
        Ok((path, now))
    });
    let (path, now) = match found {
        Ok(found) if found.0.to_string_lossy() == plan.path => found,
        Ok(_) => {
            return Settled::Unknown(format!(
                "{} now points somewhere else.",
                printable(&given.path)
            ));
        }
        Err(_) => {
            return Settled::Unknown(format!("Could not read {} now.", printable(&given.path)));
        }
    };
    let shown = bounds.shown(&path);
    match (&now, now.hash()) {
        (_, Some(hash)) if hash == plan.after => {
            if let Err(outcome) = make_durable(&bounds, &path) {
                return Settled::Done(outcome);
            }
            let fact = fact(&path, plan.after, true);
            workplace.seen.note(&fact);
            let words = format!("Changed {shown}. The edit was made before the interruption.");
            Settled::Done(Outcome::said(words).fact(fact))
        }
        (_, Some(hash)) if hash == plan.before => Settled::NotStarted,
        (Before::Absent, _) => Settled::Unknown(format!("{shown} no longer exists.")),
        (Before::Present { content: Some((content, _)), .. }, _)
            if given.is_not_made_in(content, stop) =>
        {
            Settled::NotStarted
        }
        _ => Settled::Unknown(format!(
            "{shown} is neither as it was before the edit nor as it should be after it: someone else changed it. \
             Read it before you continue."
        )),
    }
}
