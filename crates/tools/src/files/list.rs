//! The `list` tool.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::LOOKS;
use super::blocking::{self, Stop};
use super::bounds::Bounds;
use super::text::{count, printable, size};
use super::walk::{Confirmation, Hidden, Root, Walk, root};
use crate::beneath;
use crate::schema::{arguments, parameters};
use crate::{Action, Invocation, Outcome, Tool, Traits, Workplace};

const SHOWN_ENTRIES: usize = 500;
const SHOWN_BYTES: usize = 32 << 10;
/// Entries that are not shown are counted up to here.
const COUNTED_ENTRIES: usize = 100_000;

/// Lists a directory.
pub(super) struct List;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    path: Option<String>,
    /// Levels to go down; 1 if left out.
    depth: Option<usize>,
}

impl Tool for List {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list".to_owned(),
            description: "Lists a directory, without hidden and git-ignored files.".to_owned(),
            parameters: parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        LOOKS
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        let given = arguments::<Arguments>(call.arguments);
        let workplace = call.workplace.clone();
        let room = workplace.confinement.room();
        Box::pin(blocking::outcome(room, move |stop| list(&workplace, &given?, stop)))
    }
}

fn list(workplace: &Workplace, given: &Arguments, stop: &Stop) -> Result<Outcome, Outcome> {
    let bounds = Arc::new(Bounds::of(workplace));
    let directory = match root(&bounds, given.path.as_deref())? {
        Root::Directory(path) => path,
        Root::File(path) => {
            let bytes = Confirmation::default().status(&path).map_or(0, |found| found.size);
            return Ok(Outcome::said(format!(
                "{} is a file of {}. Use read_file to read it.",
                bounds.shown(&path),
                size(bytes)
            )));
        }
    };
    let depth = given.depth.unwrap_or(1).max(1);
    let mut walk = Walk::new(&bounds, &directory, Some(depth), Hidden::Skipped, stop);
    let mut text = String::new();
    let mut shown = 0_usize;
    let mut all = 0_usize;
    let mut top = 0_usize;
    let mut confirmation = Confirmation::default();
    for entry in walk.by_ref() {
        all += 1;
        top += usize::from(entry.depth() == 1);
        if all > COUNTED_ENTRIES {
            break;
        }
        if shown < SHOWN_ENTRIES && text.len() < SHOWN_BYTES {
            shown += 1;
            line(&mut text, &entry, &mut confirmation);
        }
    }
    stop.check()?;
    let mut words = vec![format!("{}: {}.", bounds.shown(&directory), counted(all))];
    if shown < all {
        let left = counted(all - shown);
        words.push(format!("{left} are not shown; list a directory further down, or use `glob`."));
    }
    let names = beneath::directory(&directory).and_then(beneath::entries);
    let skipped = names.map_or(0, |names| names.len()).saturating_sub(top);
    if skipped > 0 && all <= COUNTED_ENTRIES {
        words.push(format!("{skipped} more entries in it are hidden, ignored or closed."));
    }
    words.extend(walk.notes(&bounds));
    let outcome = Outcome::said(words.join(" "));
    Ok(if text.is_empty() { outcome } else { outcome.data(text) })
}

fn line(text: &mut String, entry: &ignore::DirEntry, confirmation: &mut Confirmation) {
    let Some(found) = confirmation.status(entry.path()) else { return };
    let indent = "  ".repeat(entry.depth().saturating_sub(1));
    let name = printable(&entry.file_name().to_string_lossy());
    text.push_str(&match found {
        found if found.is_directory() => format!("{indent}{name}/\n"),
        found if found.is_link() => {
            let target = confirmation.target(entry.path()).unwrap_or_default();
            format!("{indent}{name} -> {}\n", printable(&target.to_string_lossy()))
        }
        found if found.is_file() => format!("{indent}{name} ({})\n", size(found.size)),
        _ => format!("{indent}{name} (not a regular file)\n"),
    });
}

fn counted(number: usize) -> String {
    if number > COUNTED_ENTRIES {
        format!("more than {COUNTED_ENTRIES} entries")
    } else {
        count(number as u64, "entry", "entries")
    }
}
