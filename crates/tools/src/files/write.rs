//! The `write_file` tool.

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
use super::seen::{Glimpse, fact};
use super::text::{LineEnds, hash, line_ends, printable, size};
use crate::replacing::Slot;
use crate::sandbox::Room;
use crate::schema::{arguments, parameters};
use crate::{
    Action, Concurrency, Exposure, Invocation, Outcome, Piece, Replay, Tool, Traits, Workplace,
};

/// Writes a whole file.
pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    path: String,
    /// All of the file's new content.
    content: String,
}

/// How it was before the first run, so that a run after a crash can still tell.
#[derive(Deserialize, Serialize)]
struct Plan {
    path: String,
    before: Option<String>,
    warnings: Vec<String>,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description:
                "Creates or replaces a file, with its directories. Read an existing file first; \
                          for small changes use edit_file."
                    .to_owned(),
            parameters: parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Idempotent,
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
            let plan = move |stop: &Stop| plan(&workplace, &given, target.as_deref(), stop);
            blocking::blocking(room, plan).await.ok()?.ok()
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
            let write =
                move |stop: &Stop| write(&workplace, &given, target.as_deref(), plan, slot, stop);
            with_kept(blocking::outcome(room, write).await, &kept)
        })
    }
}

/// What a call that changes the file of its argument `path` would do.
pub(super) fn action(call: &Invocation<'_>) -> Action {
    match call.arguments.get("path").and_then(Value::as_str) {
        Some(path) => match Bounds::of(call.workplace).locate_to_change(path) {
            Ok(path) => Action::Write(path),
            Err(_) => Action::Write(call.workplace.workspace.join(path)),
        },
        // Without a path the call fails before it does anything.
        None => Action::Read,
    }
}

/// Where a call works that changes the file of its argument `path`. Outside of what the sandbox lets be
/// written, only the file that was granted can be changed: where a link leads somewhere else by now,
/// the kernel refuses it. In a workspace that hidden places divide, the file that was judged can be.
pub(super) fn room(call: &Invocation<'_>) -> Room {
    let confinement = &call.workplace.confinement;
    let path = call.arguments.get("path").and_then(Value::as_str);
    match path.filter(|_| confinement.sandbox().is_some()) {
        Some(path) => match Bounds::of(call.workplace).locate_to_change(path) {
            Ok(path) if call.grant.write.contains(&path) || is_judged(call, &path) => {
                confinement.room_for(&path)
            }
            Ok(_) | Err(_) => confinement.room(),
        },
        None => confinement.room(),
    }
}

/// Whether this is the file of the workspace that the call was judged by.
fn is_judged(call: &Invocation<'_>, path: &Path) -> bool {
    let workspace = std::fs::canonicalize(&call.workplace.workspace);
    call.target == Some(path) && workspace.is_ok_and(|workspace| path.starts_with(workspace))
}

/// Finishes what processes that are gone have begun, and opens the lock of a file that a call changes:
/// both outside the sandbox. Without one the call does not wait for other processes.
pub(super) async fn slot(workplace: &Workplace, path: &str) -> OpenedSlot {
    // Another workspace may be on a disk that hangs.
    const PATIENCE: Duration = Duration::from_secs(10);
    let (workplace, path) = (workplace.clone(), path.to_owned());
    let opened = tokio::task::spawn_blocking(move || {
        let kept = workplace.edit_slots.recover();
        let path = Bounds::of(&workplace).locate_to_change(&path).ok();
        OpenedSlot { slot: path.and_then(|path| workplace.edit_slots.open(&path)), kept }
    });
    match tokio::time::timeout(PATIENCE, opened).await {
        Ok(Ok(opened)) => opened,
        _ => OpenedSlot::default(),
    }
}

/// The lock of a file, and what became known on the way to it.
#[derive(Default)]
pub(super) struct OpenedSlot {
    pub(super) slot: Option<Slot>,
    pub(super) kept: Vec<PathBuf>,
}

/// Adds to an outcome what unfinished changes of others left for somebody to look at.
pub(super) fn with_kept(mut outcome: Outcome, kept: &[PathBuf]) -> Outcome {
    outcome.pieces.extend(kept.iter().map(|path| {
        Piece::Said(format!(
            "A change that was interrupted had somebody's version of a file in hand, and the file was \
             saved again since: that version is in {}.",
            printable(&path.to_string_lossy())
        ))
    }));
    outcome
}

fn plan(
    workplace: &Workplace,
    given: &Arguments,
    target: Option<&Path>,
    stop: &Stop,
) -> Result<Value, Outcome> {
    let bounds = Bounds::of(workplace);
    let path = bounds.locate_judged(&given.path, target)?;
    let before = Before::look(&bounds, &path, stop)?;
    let last = workplace.seen.last(&path);
    let warnings = warnings(&bounds, &path, &before, last.as_ref(), given, stop);
    let before = before.hash().map(str::to_owned);
    let plan = Plan { path: path.to_string_lossy().into_owned(), before, warnings };
    serde_json::to_value(plan).map_err(|error| Outcome::failed(error.to_string()))
}

fn write(
    workplace: &Workplace,
    given: &Arguments,
    target: Option<&Path>,
    plan: Option<Plan>,
    slot: Option<Slot>,
    stop: &Stop,
) -> Result<Outcome, Outcome> {
    let bounds = Bounds::of(workplace);
    let path = bounds.locate_judged(&given.path, target)?;
    if plan.as_ref().is_some_and(|plan| plan.path != path.to_string_lossy()) {
        return Err(elsewhere(&given.path));
    }
    let _turn = turn(&path);
    let mut slot = wait_for_turn(&bounds, &path, slot, stop)?;
    let before = Before::look_to_change(&bounds, &path, stop)?;
    let last = workplace.seen.last(&path);
    let content = given.content.as_bytes();
    let hash = hash(content);
    let shown = bounds.shown(&path);
    let bytes = size(content.len() as u64);

    let (words, warnings, changed) = if before.hash() == Some(&hash) {
        make_durable(&bounds, &path)?;
        // The first run may have written it, and a crash kept it from telling.
        match plan.as_ref().filter(|plan| plan.before.as_ref() != Some(&hash)) {
            Some(plan) => (format!("Wrote {shown} ({bytes})."), plan.warnings.clone(), true),
            None => (format!("{shown} already had exactly this content."), Vec::new(), false),
        }
    } else {
        if is_stale(&before, last.as_ref()) {
            return Err(Outcome::failed(format!(
                "{shown} was changed on disk since you last read or wrote it, by someone else or by a command, so it was left alone. \
                 Read it again, then write what it should contain."
            )));
        }
        // A call that is run again after a crash, maybe days later, must not undo what came since.
        if plan.is_some_and(|plan| plan.before.as_deref() != before.hash()) {
            return Err(Outcome::failed(format!(
                "{shown} was changed by someone else after this call was requested, so it was left alone. \
                 Read it, then write what it should contain."
            )));
        }
        let mut warnings = warnings(&bounds, &path, &before, last.as_ref(), given, stop);
        match put(&bounds, &path, &before, (content, &hash), slot.as_mut(), stop)? {
            Change::Made(note) => warnings.extend(note.map(str::to_owned)),
            Change::Overtaken => {
                return Err(Outcome::failed(format!(
                    "{shown} was changed by someone else just now, so it was left alone. Read it again."
                )));
            }
        }
        let verb = if matches!(before, Before::Absent) { "Created" } else { "Wrote" };
        (format!("{verb} {shown} ({bytes})."), warnings, true)
    };
    let fact = fact(&path, hash, changed);
    workplace.seen.note(&fact);
    let mut words = vec![words];
    words.extend(warnings);
    Ok(Outcome::said(words.join(" ")).fact(fact))
}

fn warnings(
    bounds: &Bounds,
    path: &Path,
    before: &Before,
    last: Option<&Glimpse>,
    given: &Arguments,
    stop: &Stop,
) -> Vec<String> {
    let mut warnings = Vec::new();
    match (before, last) {
        (Before::Present { metadata, .. }, None) if metadata.len() > 0 => warnings.push(format!(
            "It already existed ({}) and had not been read in this session.",
            size(metadata.len())
        )),
        (Before::Absent, Some(_)) => {
            warnings.push("It had been deleted since you last read or wrote it.".to_owned());
        }
        _ => {}
    }
    if let Before::Present { content: Some((old, _)), .. } = before
        && line_ends(old) == LineEnds::Windows
        && line_ends(given.content.as_bytes()) == LineEnds::Unix
    {
        warnings.push("Its lines ended with CRLF and end with LF now.".to_owned());
    }
    warnings.extend(losses(bounds, path, before, last, stop));
    warnings
}
