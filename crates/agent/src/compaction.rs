//! Compaction: making room in a model's window without forgetting what matters.
//!
//! A compaction is an entry that changes the view (see `mainstay_journal::compaction`). This module
//! decides when one is due ([`limits`]), what it covers ([`draft`]), has a model write its summary
//! ([`summary`], [`summary_request`]) and applies it between two rounds ([`apply`], [`make_room`]), or when a
//! person asks for it ([`manual`]).
//!
//! Whatever fails here changes nothing: the turn goes on as far as the window allows, and then ends in
//! words that say what fills it ([`window_contents`]). What bounds the tries ([`limits::CompactionState`]) is found again
//! after a crash in the journal and the ledger of model calls ([`history`]).

mod apply;
mod draft;
mod history;
mod limits;
mod make_room;
mod manual;
mod material;
mod summary;
mod summary_request;
mod window_contents;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use limits::CompactionState;
use mainstay_llm::Candidate;
pub use manual::{Compacted, Restored};

/// How conversations are compacted.
#[derive(Clone, Debug)]
pub struct Compacting {
    /// At which share of the window, what an answer needs left out of it.
    pub at: f64,
    /// What is done where no model gives a summary.
    pub on_failure: OnFailure,
    /// The model that writes summaries. `None` stands for those of the turn.
    pub model: Option<Arc<Candidate>>,
    /// How long a summary may take.
    pub timeout: Duration,
}

impl Default for Compacting {
    fn default() -> Self {
        Self {
            at: 0.75,
            on_failure: OnFailure::Abort,
            model: None,
            timeout: Duration::from_secs(120),
        }
    }
}

/// What is done where no model gives a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing changes.
    Abort,
    /// A summary is made without a model, of the ledger and the beginnings of what was said.
    Local,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The window fills up.
    Share,
    /// A provider found the conversation too long.
    TooLong,
    /// A person asked for it.
    Hand,
}

impl Trigger {
    /// The word for faces.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Trigger::Share => "window",
            Trigger::TooLong => "too_long",
            Trigger::Hand => "manual",
        }
    }

    /// The word for hooks, which know two.
    pub(crate) fn for_hooks(self) -> &'static str {
        match self {
            Trigger::Share | Trigger::TooLong => "auto",
            Trigger::Hand => "manual",
        }
    }
}
