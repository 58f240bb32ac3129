//! `mainstay memory`

mod add;
mod edit;
mod export;
mod feedback;
mod forget;
mod import;
mod lines;
mod list;
mod notes;
mod providers;
mod search;

use std::collections::BTreeSet;

use clap::Subcommand;
use mainstay_journal::{SessionId, session};
use mainstay_memory::facts::{Fact, FactId};
use mainstay_store::{Id, Store};
use serde_json::{Value, json};

use crate::config::{self, Config};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::plain_text::clean;
use crate::{redaction, wording};

/// Show and change what is remembered across sessions
///
/// Facts are recalled when they are relevant to a turn. Notes are short, and every new session gets
/// them: notes about you everywhere, notes about a workspace only there. Both stay when the session
/// that they come from is deleted.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    List(list::ListArgs),
    Add(add::AddArgs),
    Search(search::SearchArgs),
    Edit(edit::EditArgs),
    Feedback(feedback::FeedbackArgs),
    Forget(forget::ForgetArgs),
    Notes(notes::NotesArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Providers(providers::ProvidersArgs),
}

pub(crate) fn run(command: &MemoryCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        MemoryCommand::List(args) => list::run(args, context),
        MemoryCommand::Add(args) => add::run(args, context),
        MemoryCommand::Search(args) => search::run(args, context),
        MemoryCommand::Edit(args) => edit::run(args, context),
        MemoryCommand::Feedback(args) => feedback::run(args, context),
        MemoryCommand::Forget(args) => forget::run(args, context),
        MemoryCommand::Notes(args) => notes::run(args, context),
        MemoryCommand::Export(args) => export::run(args, context),
        MemoryCommand::Import(args) => import::run(args, context),
        MemoryCommand::Providers(args) => providers::run(args, context),
    }
}

/// Who says what a person adds here.
const SOURCE: &str = "user";

/// The fact that was named: `12`, `#12` or `facts:12`.
fn fact_id(typed: &str) -> Result<FactId, Error> {
    let number = typed.trim();
    let number = number.strip_prefix("facts:").unwrap_or(number);
    number.parse().map_err(|_| {
        Error::usage(format!("{typed:?} is not a valid fact number"))
            .hint("`mainstay memory list` and `mainstay memory search WORDS` show the numbers.")
    })
}

fn no_fact(id: FactId) -> Error {
    Error::usage(format!("fact {id} does not exist")).hint("List the facts: `mainstay memory list`")
}

/// Words that are to be kept, without secrets.
fn worded(text: &str, context: &Context) -> Result<String, Error> {
    let text = redaction::typed(text, context)?;
    match text.trim() {
        "" => Err(Error::usage("the text is empty").hint("Write a sentence to remember.")),
        text => Ok(text.to_owned()),
    }
}

/// The settings of memory.
fn memory_settings(context: &Context) -> Result<mainstay_agent::memory::Settings, Error> {
    let config = Config::load(&context.paths()?, None, context.output)?;
    config::memory_settings(&config)
}

/// The sessions that facts come from and that are there no more.
fn gone<'a>(
    store: &Store,
    facts: impl IntoIterator<Item = &'a Fact>,
) -> Result<BTreeSet<String>, Error> {
    let sources: BTreeSet<&str> =
        facts.into_iter().filter_map(|fact| session_of(&fact.source)).collect();
    let mut gone = BTreeSet::new();
    for source in sources {
        let Ok(id) = source.parse::<Id>().map(SessionId::from) else { continue };
        if store.read(|tx| session::get(tx, id))?.is_none() {
            gone.insert(source.to_owned());
        }
    }
    Ok(gone)
}

/// The session that a source names.
fn session_of(source: &str) -> Option<&str> {
    let id = source.strip_prefix("session ")?;
    Some(id.split([',', ' ']).next().unwrap_or(id))
}

fn is_gone(fact: &Fact, gone: &BTreeSet<String>) -> bool {
    session_of(&fact.source).is_some_and(|id| gone.contains(id))
}

/// A fact as data.
fn data(fact: &Fact, gone: &BTreeSet<String>) -> Value {
    json!({
        "source_gone": is_gone(fact, gone),
        "id": fact.id.number(), "content": fact.content, "category": fact.category,
        "tags": fact.tags, "entities": fact.entities, "source": fact.source,
        "trust": fact.trust, "helpful": fact.helpful, "unhelpful": fact.unhelpful,
        "created_at": fact.created_at, "changed_at": fact.changed_at,
    })
}

/// A fact as lines: what it says, and what is known of it.
fn shown(fact: &Fact, gone: &BTreeSet<String>, width: usize) -> String {
    // Whatever others wrote moves no cursor.
    let content = clean(&fact.content);
    let content: Vec<&str> = content.split_whitespace().collect();
    let tags: String = fact.tags.iter().map(|tag| format!("  #{}", clean(tag))).collect();
    format!(
        "{:>width$}  {}\n{:width$}  {}  trust {:.2}  {}  {}{}{tags}\n",
        fact.id.to_string(),
        content.join(" "),
        "",
        clean(&fact.category),
        fact.trust,
        wording::minute(fact.changed_at),
        clean(&fact.source),
        if is_gone(fact, gone) { " (deleted)" } else { "" },
    )
}

/// How wide the numbers of these facts are.
fn width<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> usize {
    facts.into_iter().map(|fact| fact.id.to_string().len()).max().unwrap_or(1)
}
