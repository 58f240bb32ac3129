//! What a model is asked.

use std::str::FromStr;

use mainstay_message::{Message, ToolSpec};
use serde::{Deserialize, Serialize};

use crate::Memo;

/// One request, whatever the provider. Everything is borrowed: the history may be megabytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The system prompt; empty for none.
    pub system: &'a str,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// The conversation so far.
    pub messages: &'a [Message],
    /// How many tokens may be written, reasoning included.
    pub max_output: Option<u32>,
    /// How much chance there is in the words.
    pub temperature: Option<f32>,
    /// How much thought to give it, where the model can be told.
    pub effort: Option<Effort>,
    /// Names the conversation to providers that route by it to a warm cache.
    pub cache_key: Option<&'a str>,
    /// What was written of this conversation before, where somebody keeps it.
    pub memo: Option<&'a Memo>,
}

/// How much thought to give an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual.
    Medium,
    /// A lot.
    High,
}

impl Effort {
    /// The name that providers and the configuration use.
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// The name for providers that know three levels.
    pub(crate) fn of_three(self) -> &'static str {
        match self {
            Effort::Minimal => "low",
            other => other.as_str(),
        }
    }
}

/// A name that is no effort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid effort; use minimal, low, medium or high")]
pub struct UnknownEffort(String);

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(name: &str) -> Result<Effort, UnknownEffort> {
        [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High]
            .into_iter()
            .find(|effort| effort.as_str() == name)
            .ok_or_else(|| UnknownEffort(name.to_owned()))
    }
}
