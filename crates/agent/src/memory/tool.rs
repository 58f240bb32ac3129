//! The `memory` tool: what a model keeps for later sessions, and finds of earlier ones.
//!
//! Whatever changes something is one transaction that also writes down what came of the call. A call
//! that is run again after a crash finds that, and changes nothing twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_memory::facts::{self, Added, FactId, NewFact, Within};
use mainstay_memory::notes::{self, Change, Note};
use mainstay_memory::{Error, done};
use mainstay_message::ToolSpec;
use mainstay_store::{WriteTx, wall_millis};
use mainstay_tools::{Action, Concurrency, Fact, Invocation, Outcome, Replay, Tool, Traits};
use serde_json::Value;

use super::arguments::{About, Asked, Mode, NoteChange, arguments};
use super::facts::{FACTS, as_memory};
use super::{Memory, NewMemory, Place, Query, external, frame};
use crate::agent::{Parts, blocking};

/// The tool's name.
const NAME: &str = "memory";
/// How long all of a call may take; those who are asked besides the store have limits of their own.
const WALL: Duration = Duration::from_secs(60);

/// Stands before what was found.
const BEST_FIRST: &str = "The best first:";

/// Keeps and finds memories.
pub(crate) struct MemoryTool {
    /// The agent has this tool, so it must not be held by it.
    agent: Weak<Parts>,
}

/// What is to be said of a change that was made, or why it was not.
type Done = Result<String, Error>;

impl MemoryTool {
    pub(crate) fn new(agent: Weak<Parts>) -> Self {
        Self { agent }
    }

    async fn answer(&self, call: Invocation<'_>) -> Result<Outcome, Outcome> {
        let asked = arguments(call.arguments)?;
        let gone = || Outcome::failed("The agent is going. Nothing was done.");
        let parts = self.agent.upgrade().ok_or_else(gone)?;
        match asked {
            Asked::Search { text, limit } => search(&parts, call, &text, limit).await,
            Asked::Query { mode, entities, category, limit } => {
                let within = Within { category, limit, ..Within::default() };
                query(&parts, mode, &entities, &within)
            }
            Asked::Add { text, category, tags, entities } => {
                let source = source(call);
                let fact = NewFact {
                    content: text,
                    category,
                    tags,
                    entities,
                    source: source.clone(),
                    key: Some(call.id.to_owned()),
                };
                let mut said = change(&parts, call, |tx| add(tx, &parts, &fact))?;
                said.push_str(&tell_others(&parts, call, &fact).await);
                Ok(Outcome::said(said))
            }
            Asked::Feedback { id, helpful } => {
                let id = own(&id)?;
                change(&parts, call, |tx| feedback(tx, &parts, id, helpful)).map(Outcome::said)
            }
            Asked::Forget { id } => match frame::split(&id) {
                Some((provider, own)) if provider != FACTS => {
                    forget_elsewhere(&parts, provider, own).await
                }
                _ => {
                    let id = own(&id)?;
                    change(&parts, call, |tx| forget(tx, &parts, id)).map(Outcome::said)
                }
            },
            Asked::Note { about, changes } => {
                let source = source(call);
                let workspace = call.workplace.workspace.display().to_string();
                if changes.is_empty() {
                    return show_notes(&parts, about, &workspace);
                }
                let changes: Vec<Change> = changes.into_iter().map(NoteChange::change).collect();
                change(&parts, call, |tx| note(tx, &parts, about, &workspace, &changes, &source))
                    .map(Outcome::said)
            }
        }
    }

    /// What a person is asked about.
    fn spoken(&self, asked: &Asked) -> Option<String> {
        let of = |id: &str| match self.content(id) {
            Some(text) => format!("“{text}” ({id})"),
            None => id.to_owned(),
        };
        Some(match asked {
            Asked::Search { .. } | Asked::Query { .. } => return None,
            Asked::Add { text, .. } => format!("“{text}”"),
            Asked::Feedback { id, helpful: true } => format!("that it helped to know {}", of(id)),
            Asked::Feedback { id, helpful: false } => format!("that it misled to know {}", of(id)),
            Asked::Forget { id } => format!("no longer {}", of(id)),
            Asked::Note { changes, .. } if changes.is_empty() => return None,
            Asked::Note { about, changes } => {
                let changes: Vec<String> = changes.iter().map(NoteChange::spoken).collect();
                format!("about {}: {}", about.spoken(), changes.join("; "))
            }
        })
    }

    /// What a fact says.
    fn content(&self, id: &str) -> Option<String> {
        let (parts, id) = (self.agent.upgrade()?, own(id).ok()?);
        let found = blocking(|| parts.store.read(|tx| facts::get(tx, parts.owner, id)));
        found.ok()?.map(|fact| fact.content)
    }
}

impl Tool for MemoryTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Remembers across sessions. Facts: `add` what will matter later, `search`, \
                          `query` by entities, `feedback` when one proved right or wrong, `forget`. \
                          `note` changes the notes in every session's prompt: `new` alone adds \
                          one, `old` (a unique part of one) and `new` replaces, `old` alone removes; \
                          all changes or none; without `changes` it shows them."
                .to_owned(),
            parameters: super::arguments::schema(),
        }
    }

    fn traits(&self) -> Traits {
        Traits { replay: Replay::Idempotent, concurrency: Concurrency::Exclusive, wall: WALL }
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        // What is not understood does nothing: the model is told what is wrong.
        let asked = arguments(call.arguments).ok();
        match asked.and_then(|asked| self.spoken(&asked)) {
            Some(what) => Action::Persist(what),
            None => Action::Read,
        }
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.answer(call).await {
                Ok(outcome) | Err(outcome) => outcome,
            }
        })
    }
}

/// Makes a change once, whatever becomes of the process: what came of it is known by the call's id.
fn change(
    parts: &Arc<Parts>,
    call: Invocation<'_>,
    mut work: impl FnMut(&mut WriteTx<'_>) -> Done + Send,
) -> Result<String, Outcome> {
    let done = blocking(|| {
        parts.store.write(|tx| {
            if let Some(said) = done::find(tx, parts.owner, call.id)? {
                return Ok(said);
            }
            let said = work(tx)?;
            done::note(tx, parts.owner, call.id, &said)?;
            Ok(said)
        })
    });
    done.map_err(|error: Error| unchanged(&error))
}

fn add(tx: &mut WriteTx<'_>, parts: &Parts, fact: &NewFact) -> Done {
    Ok(match facts::add(tx, parts.owner, fact)? {
        Added::New(id) => format!("Remembered:\n- [{FACTS}:{id}]"),
        Added::Known(id) => format!("That was known already:\n- [{FACTS}:{id}]"),
    })
}

fn feedback(tx: &mut WriteTx<'_>, parts: &Parts, id: FactId, helpful: bool) -> Done {
    match facts::feedback(tx, parts.owner, id, helpful)? {
        Some(trust) => Ok(format!("{FACTS}:{id} is now trusted {trust:.2}.")),
        None => Err(unknown(id)),
    }
}

fn forget(tx: &mut WriteTx<'_>, parts: &Parts, id: FactId) -> Done {
    match facts::forget(tx, parts.owner, id)? {
        true => Ok(format!("{FACTS}:{id} is forgotten.")),
        false => Err(unknown(id)),
    }
}

fn note(
    tx: &mut WriteTx<'_>,
    parts: &Parts,
    about: About,
    workspace: &str,
    changes: &[Change],
    source: &str,
) -> Done {
    let (scope, limit) = scope(parts, about, workspace);
    let notes = notes::change(tx, parts.owner, scope, changes, source, limit)?
        .map_err(|refused| Error::Refused(refused.to_string()))?;
    let said = listed(about, &notes, limit);
    Ok(format!("{said}\nSessions that begin from now on are told them."))
}

/// Shows notes, which changes nothing.
fn show_notes(parts: &Arc<Parts>, about: About, workspace: &str) -> Result<Outcome, Outcome> {
    let (scope, limit) = scope(parts, about, workspace);
    let notes = blocking(|| parts.store.read(|tx| notes::read(tx, parts.owner, scope)));
    let notes = notes.map_err(|error| unchanged(&error.into()))?;
    Ok(Outcome::said(listed(about, &notes, limit)))
}

fn scope<'a>(parts: &Parts, about: About, workspace: &'a str) -> (notes::Scope<'a>, usize) {
    let settings = &parts.settings.memory;
    match about {
        About::User => (notes::Scope::User, settings.user_limit),
        About::Workspace => (notes::Scope::Workspace(workspace), settings.workspace_limit),
    }
}

fn listed(about: About, notes: &[Note], limit: usize) -> String {
    let size = notes::size(notes.iter().map(|note| note.text.as_str()));
    let about = about.spoken();
    let mut said = format!("The notes about {about} ({size} of {limit} characters) are:");
    for note in notes {
        said.push_str(&format!("\n- {}", frame::harmless(&note.text)));
    }
    if notes.is_empty() {
        said.push_str(" none.");
    }
    said
}

async fn search(
    parts: &Arc<Parts>,
    call: Invocation<'_>,
    text: &str,
    limit: usize,
) -> Result<Outcome, Outcome> {
    let place = Place { session: call.session, workspace: &call.workplace.workspace };
    let answers = parts.memory.ask(|provider| provider.recall(Query { text, limit, place })).await;
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for answered in answers {
        let name = answered.provider.name();
        match answered.answer {
            Ok(memories) => found.extend(memories.into_iter().map(|one| (name.to_owned(), one))),
            Err(words) => troubles.push(format!("[Mainstay: {words}]")),
        }
    }
    found.sort_by(|(_, left), (_, right)| right.score.total_cmp(&left.score));
    found.truncate(limit);
    let mut outcome = shown(BEST_FIRST, &found);
    if !troubles.is_empty() {
        outcome.pieces.push(mainstay_tools::Piece::Said(troubles.join("\n")));
    }
    Ok(outcome)
}

fn query(
    parts: &Arc<Parts>,
    mode: Mode,
    entities: &[String],
    within: &Within,
) -> Result<Outcome, Outcome> {
    let found = blocking(|| parts.store.read(|tx| mode.ask(tx, parts.owner, entities, within)));
    let found = found.map_err(|error| unchanged(&error))?;
    let found: Vec<_> =
        found.into_iter().map(|(fact, score)| (FACTS.to_owned(), as_memory(fact, score))).collect();
    Ok(match mode {
        Mode::Contradict if !found.is_empty() => shown("These disagree, two by two:", &found),
        _ => shown(BEST_FIRST, &found),
    })
}

/// What was found, for the model.
fn shown(heading: &str, found: &[(String, Memory)]) -> Outcome {
    if found.is_empty() {
        return Outcome::said("Nothing is remembered of that.");
    }
    let now = wall_millis();
    let lines: Vec<String> =
        found.iter().map(|(provider, memory)| frame::line(provider, memory, now)).collect();
    let outside = found.iter().filter(|(_, memory)| memory.outside);
    let providers: BTreeSet<&str> = outside.map(|(provider, _)| provider.as_str()).collect();
    let names = found.iter().map(|(provider, memory)| frame::name(provider, &memory.id)).collect();
    let outcome = Outcome::said(heading).data(lines.join("\n")).fact(Fact::Memories { names });
    providers.into_iter().fold(outcome, |outcome, provider| {
        outcome.fact(Fact::Outside { origin: external::origin(provider) })
    })
}

/// Tells the others who keep memories of a new one. They know it by the call's id, so that telling
/// them twice is telling them once.
async fn tell_others(parts: &Arc<Parts>, call: Invocation<'_>, fact: &NewFact) -> String {
    let new = NewMemory {
        text: &fact.content,
        category: &fact.category,
        tags: &fact.tags,
        source: &fact.source,
        key: call.id,
        place: Place { session: call.session, workspace: &call.workplace.workspace },
    };
    let answers = parts.memory.ask(|provider| provider.remember(new)).await;
    let mut said = String::new();
    for answered in answers {
        match answered.answer {
            Ok(Some(id)) => {
                let name = frame::name(answered.provider.name(), &id);
                said.push_str(&format!("\n- [{name}]"));
            }
            Ok(None) => {}
            Err(words) => said.push_str(&format!("\n[Mainstay: {words}]")),
        }
    }
    said
}

async fn forget_elsewhere(
    parts: &Arc<Parts>,
    provider: &str,
    id: &str,
) -> Result<Outcome, Outcome> {
    let unknown = || Outcome::failed(format!("There is no memory {provider}:{id}."));
    let named = parts.memory.named(provider).ok_or_else(unknown)?;
    match parts.memory.heard(named, named.forget(id)).await {
        Ok(true) => Ok(Outcome::said(format!("{provider}:{id} is forgotten."))),
        Ok(false) => Err(unknown()),
        Err(words) => Err(Outcome::failed(format!("Nothing was forgotten: {words}"))),
    }
}

/// Where a memory comes from that a call leaves.
fn source(call: Invocation<'_>) -> String {
    match call.workplace.outside.first() {
        Some(origin) => format!("session {}, after words from {origin}", call.session),
        None => format!("session {}", call.session),
    }
}

/// The number of a fact of the store.
fn own(id: &str) -> Result<FactId, Outcome> {
    let number = match frame::split(id) {
        Some((FACTS, number)) => number,
        Some(_) => return Err(Outcome::failed("Only facts of the store take feedback.")),
        None => id,
    };
    number.parse().map_err(|_| {
        Outcome::failed(format!("{id:?} names no fact; they have ids such as {FACTS}:12."))
    })
}

fn unknown(id: FactId) -> Error {
    Error::Refused(format!("there is no fact {FACTS}:{id}; `search` shows ids"))
}

fn unchanged(error: &Error) -> Outcome {
    match error {
        Error::Refused(words) => Outcome::failed(words.clone()),
        error => {
            Outcome::failed(format!("The memory cannot be used now: {error}. Nothing was changed."))
        }
    }
}
