//! What a model may ask of its memory.

use std::borrow::Cow;

use mainstay_memory::facts::{self, Fact, Within};
use mainstay_memory::notes::Change;
use mainstay_message::Schema;
use mainstay_store::{OwnerId, ReadTx};
use mainstay_tools::Outcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// How many memories are found by default, and at most.
const USUAL: usize = 5;
const MOST: usize = 50;

// What a model writes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryArguments {
    action: Verb,
    /// The fact, or what to search for.
    text: Option<String>,
    /// Such as facts:12.
    id: Option<String>,
    helpful: Option<bool>,
    /// probe: facts on an entity; related: near it; reason: on all of several; contradict: that
    /// disagree.
    mode: Option<Mode>,
    entities: Option<Vec<String>>,
    category: Option<String>,
    tags: Option<Vec<String>>,
    limit: Option<usize>,
    about: Option<About>,
    changes: Option<Vec<NoteChange>>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Add,
    Search,
    Query,
    Feedback,
    Forget,
    Note,
}

/// A question to the vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Probe,
    Related,
    Reason,
    Contradict,
}

/// What notes are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum About {
    User,
    Workspace,
}

/// A change of a note.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub(super) struct NoteChange {
    #[schemars(description = "")]
    old: Option<String>,
    #[schemars(description = "")]
    new: Option<String>,
}

/// What a model asks for, with all that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MemoryRequest {
    Add { text: String, category: String, tags: Vec<String>, entities: Option<Vec<String>> },
    Search { text: String, limit: usize },
    Query { mode: Mode, entities: Vec<String>, category: Option<String>, limit: usize },
    Feedback { id: String, helpful: bool },
    Forget { id: String },
    Note { about: About, changes: Vec<NoteChange> },
}

/// The schema of the arguments.
pub(super) fn schema() -> Schema {
    mainstay_tools::parameters::<MemoryArguments>()
}

/// Reads a call's arguments; a failure tells the model what is missing.
pub(super) fn arguments(arguments: &Value) -> Result<MemoryRequest, Outcome> {
    let given: MemoryArguments = mainstay_tools::arguments(arguments)?;
    let missing = |what: &str| Outcome::failed(format!("{what} Nothing was done."));
    let text = given.text.filter(|text| !text.trim().is_empty());
    let text = |what| text.clone().ok_or_else(|| missing(what));
    let id = given.id.filter(|id| !id.trim().is_empty());
    let id = || id.clone().ok_or_else(|| missing("Say which memory: `id`, such as facts:12."));
    let limit = given.limit.unwrap_or(USUAL).clamp(1, MOST);
    Ok(match given.action {
        Verb::Add => MemoryRequest::Add {
            text: text("Say what to remember: `text`.")?,
            category: given.category.unwrap_or_default(),
            tags: given.tags.unwrap_or_default(),
            entities: given.entities,
        },
        Verb::Search => {
            MemoryRequest::Search { text: text("Say what to look for: `text`.")?, limit }
        }
        Verb::Query => {
            let mode = given
                .mode
                .ok_or_else(|| missing("Say how: `mode` probe, related, reason or contradict."))?;
            let entities = given.entities.unwrap_or_default();
            match (mode, entities.len()) {
                (Mode::Contradict, _) | (Mode::Reason, 1..) | (_, 1) => {}
                (_, 0) => return Err(missing("Say whom or what it is about: `entities`.")),
                _ => return Err(missing("That takes one of `entities`; `reason` takes several.")),
            }
            MemoryRequest::Query { mode, entities, category: given.category, limit }
        }
        Verb::Feedback => MemoryRequest::Feedback {
            id: id()?,
            helpful: given.helpful.ok_or_else(|| missing("Say whether it was `helpful`."))?,
        },
        Verb::Forget => MemoryRequest::Forget { id: id()? },
        Verb::Note => {
            let about = given.about.ok_or_else(|| missing("Say `about`: user or workspace."))?;
            let changes = given.changes.unwrap_or_default();
            if changes.iter().any(NoteChange::is_none) {
                return Err(missing(
                    "Say what to change: `changes`, each with `old`, `new` or both.",
                ));
            }
            MemoryRequest::Note { about, changes }
        }
    })
}

impl NoteChange {
    fn is_none(&self) -> bool {
        self.old.is_none() && self.new.is_none()
    }

    /// What it does to the notes.
    pub(super) fn change(self) -> Change {
        match (self.old, self.new) {
            (Some(old), Some(new)) => Change::Replace { old, new },
            (Some(old), None) => Change::Remove(old),
            (None, new) => Change::Add(new.unwrap_or_default()),
        }
    }

    /// The same in words, after "to remember".
    pub(super) fn describe(&self) -> String {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!("“{new}” instead of “{old}”"),
            (Some(old), None) => format!("no longer “{old}”"),
            (None, new) => format!("“{}”", new.as_deref().unwrap_or_default()),
        }
    }
}

impl About {
    pub(super) fn subject(self) -> &'static str {
        match self {
            About::User => "the user",
            About::Workspace => "this workspace",
        }
    }
}

impl Mode {
    /// Asks the vectors. Facts that disagree come in pairs, the newer one first.
    pub(super) fn ask(
        self,
        tx: &mut ReadTx<'_>,
        owner: OwnerId,
        entities: &[String],
        within: &Within,
    ) -> mainstay_memory::Result<Vec<(Fact, f64)>> {
        let entities: Vec<&str> = entities.iter().map(String::as_str).collect();
        let first = entities.first().copied().unwrap_or_default();
        let answers = match self {
            Mode::Probe => facts::probe(tx, owner, first, within)?,
            Mode::Related => facts::related(tx, owner, first, within)?,
            Mode::Reason => facts::reason(tx, owner, &entities, within)?,
            Mode::Contradict => {
                let pairs = facts::contradictions(tx, owner, within)?;
                let both = pairs
                    .into_iter()
                    .flat_map(|pair| [(pair.newer, pair.score), (pair.older, pair.score)]);
                return Ok(both.collect());
            }
        };
        Ok(answers.into_iter().map(|answer| (answer.fact, answer.score)).collect())
    }
}

macro_rules! words {
    ($type:ty, $name:literal, $words:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "enum": $words })
            }
        }
    };
}

words!(Verb, "Verb", ["add", "search", "query", "feedback", "forget", "note"]);
words!(Mode, "Mode", ["probe", "related", "reason", "contradict"]);
words!(About, "About", ["user", "workspace"]);
