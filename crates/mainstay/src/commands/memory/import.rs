//! `mainstay memory import`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_memory::facts::{self, Added, NewFact};
use mainstay_memory::notes::{self, Change, Scope};
use mainstay_store::{OwnerId, WriteTx};
use serde_json::json;

use super::lines::{self, NoteLine, Read};
use super::notes::About;
use crate::commands::run::current_directory;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, person, redaction};

/// Remember what a file says
///
/// The file has lines of JSON, as `mainstay memory export` writes them, or plain lines or a list in
/// Markdown, each of which becomes a fact. What is known already stays as it is, so a file can be
/// imported again.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Make notes of plain lines, about you or this workspace
    #[arg(long, value_enum, value_name = "ABOUT")]
    notes: Option<About>,

    /// The category of facts from plain lines
    #[arg(long)]
    category: Option<String>,
}

/// The longest file that is read, and how many facts are written at once.
const LONGEST: u64 = 256 << 20;
const TOGETHER: usize = 200;

pub(crate) fn run(args: &ImportArgs, context: &Context) -> Result<Exit, Error> {
    person::only("to change what is remembered")?;
    let name = args.file.display();
    let unreadable = |error: String| {
        Error::usage(format!("{name} cannot be read: {error}"))
            .hint("Name a file of lines: JSON, plain text or a list in Markdown.")
    };
    let size = args.file.metadata().map_err(|error| unreadable(error.to_string()))?.len();
    if size > LONGEST {
        return Err(unreadable(format!("it has more than {} MiB", LONGEST >> 20)));
    }
    let text =
        std::fs::read_to_string(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let text = redaction::typed(&text, context)?;
    let read = lines::read(&text).map_err(|wrong| {
        Error::usage(format!("{name} cannot be imported: {wrong}; nothing was remembered"))
            .hint("Mend that line; `mainstay memory export` shows how lines look.")
    })?;
    let limits = super::settings(context)?;
    let (store, owner) = engine::open_store(&context.settings()?)?;
    let place = current_directory()?.display().to_string();
    let (notes, facts) = sorted(args, &place, read);
    // All notes or none: they have a limit together.
    let limits = (limits.user_limit, limits.workspace_limit);
    store.write(|tx| add_notes(tx, owner, &notes, limits))?;
    let (mut new, mut known) = (0_u64, 0_u64);
    for some in facts.chunks(TOGETHER) {
        // A closure may run twice, so it counts anew each time.
        let added = store.write(|tx| -> mainstay_memory::Result<Vec<Added>> {
            some.iter().map(|fact| fact.add(tx, owner)).collect()
        })?;
        let fresh = added.iter().filter(|added| matches!(added, Added::New(_))).count() as u64;
        (new, known) = (new + fresh, known + added.len() as u64 - fresh);
    }
    let data = json!({ "facts": { "new": new, "known": known }, "notes": notes.len() });
    let mut text = format!("Read {name}: {new} new facts, {known} known already");
    if !notes.is_empty() {
        text.push_str(&format!(", {} notes", notes.len()));
    }
    context.output.answer(&data, &format!("{text}.\n"))?;
    Ok(Exit::Done)
}

/// A fact to add.
enum Fact {
    Line(Box<facts::Line>),
    Words(NewFact),
}

impl Fact {
    fn add(&self, tx: &mut WriteTx<'_>, owner: OwnerId) -> mainstay_memory::Result<Added> {
        match self {
            Fact::Line(line) => facts::import(tx, owner, line),
            Fact::Words(fact) => facts::add(tx, owner, fact),
        }
    }
}

/// Notes and facts of what was read.
fn sorted(args: &ImportArgs, place: &str, read: Vec<Read>) -> (Vec<NoteLine>, Vec<Fact>) {
    let (mut notes, mut facts) = (Vec::new(), Vec::new());
    for one in read {
        match (one, args.notes) {
            (Read::Note(note), _) => notes.push(note),
            (Read::Fact(line), _) => facts.push(Fact::Line(line)),
            (Read::Words(note), Some(about)) => {
                let workspace = (about == About::Workspace).then(|| place.to_owned());
                notes.push(NoteLine { note, workspace, source: super::SOURCE.to_owned() });
            }
            (Read::Words(content), None) => facts.push(Fact::Words(NewFact {
                content,
                category: args.category.clone().unwrap_or_default(),
                source: super::SOURCE.to_owned(),
                ..NewFact::default()
            })),
        }
    }
    (notes, facts)
}

/// Adds notes. A refusal is an error, so that nothing of the file is written.
fn add_notes(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    lines: &[NoteLine],
    (user, workspace): (usize, usize),
) -> mainstay_memory::Result<()> {
    for line in lines {
        let (scope, limit) = match &line.workspace {
            None => (Scope::User, user),
            Some(path) => (Scope::Workspace(path), workspace),
        };
        let add = [Change::Add(line.note.clone())];
        notes::change(tx, owner, scope, &add, &line.source, limit)?
            .map_err(|refused| mainstay_memory::Error::Refused(refused.to_string()))?;
    }
    Ok(())
}
