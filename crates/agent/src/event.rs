//! What a face is told while a turn goes on.

use mainstay_journal::turn::ParkReason;
use mainstay_message::Usage;
use serde::Serialize;
use serde_json::Value;

use crate::{Question, Request};

/// Something that happened. What is durable is told after it was committed; deltas are not.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The session, first of all.
    Session {
        /// Its id.
        id: String,
        /// The directory it works in.
        workspace: String,
    },
    /// A turn begins or goes on.
    Turn {
        /// Its id.
        id: String,
        /// Its number within the session.
        number: i64,
        /// Whether it goes on after an interruption.
        resumed: bool,
    },
    /// Words of the model.
    Text {
        /// The next of them.
        delta: String,
    },
    /// Thoughts of the model.
    Reasoning {
        /// The next of them.
        delta: String,
    },
    /// A model's answer is whole and written down, be it words or calls.
    Answer {
        /// The `provider/model` that gave it.
        model: String,
        /// What it took.
        usage: Usage,
        /// What it cost, in dollars.
        cost: f64,
    },
    /// The user's words reached the turn while it goes on.
    Steered {
        /// The words.
        text: String,
    },
    /// Memories that came with the user's words.
    Recalled {
        /// The best first.
        memories: Vec<Recalled>,
    },
    /// A call. It is about to run, unless its result follows at once and says why not.
    ToolCall {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// What it was asked to do.
        arguments: Value,
    },
    /// A call has its outcome.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed.
        failed: bool,
        /// What the model reads, words only.
        text: String,
    },
    /// A summary is being made, to make room in the window.
    Compacting {
        /// Why: `window` (it fills up), `too_long` (a provider said so) or `manual`.
        why: &'static str,
        /// The tokens of the conversation.
        tokens: u64,
    },
    /// The conversation is compacted, from the next request on.
    Compacted {
        /// The number of the compaction within the session.
        number: i64,
        /// Why, as with `compacting`.
        why: &'static str,
        /// The tokens of the next request before it.
        before: u64,
        /// And after it.
        after: u64,
        /// Whether entries are replaced by a summary; if not, they are only shortened.
        summarised: bool,
    },
    /// Something worth knowing that does not end the turn.
    Notice {
        /// What it is about, in a word that programs may go by. `docs/events.md` lists them.
        about: &'static str,
        /// A sentence.
        message: String,
        /// Whether the words since the last call are void, because the model is asked again.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        void: bool,
    },
    /// The turn waits for something outside.
    Parked {
        /// Why, for code.
        why: ParkReason,
        /// Why, in a sentence.
        reason: String,
        /// When it can go on, in milliseconds since 1970, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        resume_at: Option<i64>,
        /// What a person has to decide first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        requests: Vec<Request>,
        /// What a person has to answer first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        questions: Vec<Question>,
    },
    /// The end, last of all.
    End {
        /// `answered`, `failed`, `cancelled`, `stuck`, `interrupted` or `parked`.
        outcome: &'static str,
        /// The model's last words.
        answer: String,
        /// Why, where there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What all calls of the turn took.
        usage: Usage,
        /// What they cost, in dollars.
        cost: f64,
    },
}

/// A memory that came with the user's words.
#[derive(Clone, Debug, Serialize)]
pub struct Recalled {
    /// Who has it, and what it is known by there: `facts:12`.
    pub id: String,
    /// What it says.
    pub text: String,
}

/// Takes events in. It is called between steps and must not block for long.
pub type Observer<'a> = &'a mut (dyn FnMut(Event) + Send);
