//! `mainstay memory import`

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_memory::facts::{self, Added, NewFact, Prepared};
use mainstay_memory::notes::{self, Change, Scope};
use mainstay_store::{OwnerId, WriteTx};
use serde_json::json;

use super::lines::{self, MemoryLine, NoteLine};
use super::notes::About;
use crate::commands::run::current_directory;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only, redaction};

/// Import notes and facts from a file
///
/// Reads JSON Lines, as `mainstay memory export` writes them, or plain lines and Markdown lists,
/// where each line becomes a fact. What is already known stays as it is, so a file can be imported
/// again.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// File to import
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Make plain lines notes, about you or this workspace
    #[arg(long, value_enum, value_name = "ABOUT")]
    notes: Option<About>,

    /// Category of facts from plain lines
    #[arg(long)]
    category: Option<String>,
}

/// The longest file that is read, and how many facts are written at once.
const LONGEST: u64 = 256 << 20;
const TOGETHER: usize = 200;

pub(crate) fn run(args: &ImportArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("changing memories")?;
    let name = args.file.display();
    let unreadable = |error: String| {
        Error::usage(format!("could not read {name}: {error}"))
            .hint("Pass a file with JSON Lines, plain lines or a Markdown list.")
    };
    let text = contents(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let text = redaction::typed(&text, context)?;
    let wrong = |wrong: String| {
        Error::usage(format!("could not import {name}: {wrong}; nothing was remembered"))
            .hint("Fix that line; `mainstay memory export` shows the format.")
    };
    let read = lines::read(&text).map_err(wrong)?;
    let limits = super::memory_settings(context)?;
    let place = current_directory()?.display().to_string();
    // Whatever could be refused is, before anything is written.
    let (notes, facts) = sorted(args, &place, read).map_err(wrong)?;
    let (store, owner) = engine::open_store(&context.paths()?)?;
    // All notes or none: they have a limit together.
    store.write(|tx| add_notes(tx, owner, &notes, &limits))?;
    let mut new = 0_u64;
    let mut known = 0_u64;
    for some in facts.chunks(TOGETHER) {
        // A closure may run twice, so it counts anew each time.
        let added = store.write(|tx| -> mainstay_memory::Result<Vec<Added>> {
            some.iter().map(|fact| fact.add(tx, owner)).collect()
        })?;
        let fresh = added.iter().filter(|added| matches!(added, Added::New(_))).count() as u64;
        new += fresh;
        known += added.len() as u64 - fresh;
    }
    let data = json!({ "facts": { "new": new, "known": known }, "notes": notes.len() });
    let mut text = format!("Imported {name}: {new} new facts, {known} already known");
    if !notes.is_empty() {
        text.push_str(&format!(", {} notes", notes.len()));
    }
    context.output.answer(&data, &format!("{text}.\n"))?;
    Ok(Exit::Done)
}

/// What a file holds, which may also be a pipe.
fn contents(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LONGEST >> 20)));
    }
    Ok(text)
}

/// A fact to add.
enum ImportedFact {
    Line(Box<facts::Line>),
    Words(Box<Prepared>),
}

impl ImportedFact {
    fn add(&self, tx: &mut WriteTx<'_>, owner: OwnerId) -> mainstay_memory::Result<Added> {
        match self {
            ImportedFact::Line(line) => facts::import(tx, owner, line),
            ImportedFact::Words(fact) => facts::add_prepared(tx, owner, fact),
        }
    }
}

/// Notes and facts of what was read, or what is wrong with one of them.
fn sorted(
    args: &ImportArgs,
    place: &str,
    read: Vec<MemoryLine>,
) -> Result<(Vec<NoteLine>, Vec<ImportedFact>), String> {
    let (mut notes, mut facts) = (Vec::new(), Vec::new());
    for one in read {
        match (one, args.notes) {
            (MemoryLine::Note(note), _) => notes.push(note),
            (MemoryLine::Fact(line), _) => facts.push(ImportedFact::Line(line)),
            (MemoryLine::Words(_, note), Some(about)) => {
                let workspace = (about == About::Workspace).then(|| place.to_owned());
                notes.push(NoteLine { note, workspace, source: super::SOURCE.to_owned() });
            }
            (MemoryLine::Words(number, content), None) => {
                let fact = NewFact {
                    content,
                    category: args.category.clone().unwrap_or_default(),
                    source: super::SOURCE.to_owned(),
                    ..NewFact::default()
                };
                let prepared =
                    Prepared::new(&fact).map_err(|wrong| format!("line {number}: {wrong}"))?;
                facts.push(ImportedFact::Words(Box::new(prepared)));
            }
        }
    }
    Ok((notes, facts))
}

/// Adds notes. A refusal is an error, so that nothing of the file is written.
fn add_notes(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    lines: &[NoteLine],
    limits: &mainstay_agent::memory::Settings,
) -> mainstay_memory::Result<()> {
    for line in lines {
        let (scope, limit) = match &line.workspace {
            None => (Scope::User, limits.user_limit),
            Some(path) => (Scope::Workspace(path), limits.workspace_limit),
        };
        let add = [Change::Add(line.note.clone())];
        notes::change(tx, owner, scope, &add, &line.source, limit)?
            .map_err(|refused| mainstay_memory::Error::Refused(refused.to_string()))?;
    }
    Ok(())
}
