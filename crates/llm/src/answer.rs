//! What comes back.

use std::sync::Arc;
use std::time::Duration;

use mainstay_message::{AssistantPart, Usage};
use serde::{Deserialize, Serialize};

use crate::{Attempt, Candidate};

/// A whole answer: its end marker was seen.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What the model thought, said and asked for, in order. May be empty: some models end a turn
    /// without a word.
    pub parts: Vec<AssistantPart>,
    /// Why it stopped.
    pub stop: Stop,
    /// What it took, where the provider said so.
    pub usage: Option<Usage>,
    /// What it cost in micro-USD, where usage and prices are known.
    pub cost: Option<i64>,
    /// Who gave it.
    pub candidate: Arc<Candidate>,
    /// All attempts, the successful one last.
    pub attempts: Vec<Attempt>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said all.
    End,
    /// It waits for the results of its calls.
    Calls,
    /// It came to the limit of output; what there is may be cut in a word or in a call's arguments.
    Length,
    /// It or its provider declined to go on.
    Refused,
    /// The provider paused a long answer; sending it back lets it go on.
    Paused,
}

/// What happens during a call, as it happens.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Words of the answer.
    Text(&'a str),
    /// Words of the thought.
    Reasoning(&'a str),
    /// A call has begun; its arguments are still coming.
    Call {
        /// The tool's name.
        name: &'a str,
    },
    /// An attempt failed: what was streamed of it is void.
    Failed(&'a Attempt),
    /// Nothing will happen for a while.
    Waiting {
        /// The candidate and its fault.
        why: &'a str,
        /// For how long.
        wait: Duration,
    },
}
