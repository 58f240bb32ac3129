//! Why a turn is parked.

use serde::{Deserialize, Serialize};

use crate::SessionId;

/// Why a turn is parked. Faces, schedules and boards decide by it; the sentence beside it is for
/// people only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ParkReason {
    /// A person has to decide about a call.
    Approval,
    /// A person has to answer a question of the model.
    Answer,
    /// A budget has no room for the next model call.
    Budget {
        /// Whose budget that is.
        scope: BudgetScope,
        /// Which of its limits is reached.
        #[serde(default)]
        limit: BudgetLimit,
    },
    /// No model of the turn can be asked before this time.
    Provider {
        /// In milliseconds since 1970.
        until: i64,
    },
    /// The turn was worked on for as long as one may be without a pause.
    TurnTime,
    /// A child session of the turn is parked itself, or could not go on.
    Child {
        /// The child.
        session: SessionId,
        /// Why the child is parked; `None` if it could not go on for another reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<Box<ParkReason>>,
    },
    /// Another version of the program parked it: an earlier one that recorded a sentence only, or a later
    /// one for a reason that is not known here.
    #[serde(other)]
    Unrecorded,
}

/// Whose budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// The turn's.
    Turn,
    /// The session's.
    Session,
    /// The owner's of this day.
    Day,
}

/// Which limit of a budget is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// That of money.
    #[default]
    Money,
    /// That of tokens.
    Tokens,
    /// That of model calls.
    Calls,
}

/// A parked turn: why, for code and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Why, for code.
    pub reason: ParkReason,
    /// Why, in a sentence.
    pub text: String,
}

impl ParkReason {
    /// When the turn can go on, in milliseconds since 1970. Returns `None` if that is not a matter
    /// of time.
    pub fn resume_at(&self) -> Option<i64> {
        match self {
            Self::Provider { until } => Some(*until),
            Self::Child { because, .. } => because.as_ref()?.resume_at(),
            Self::Approval
            | Self::Answer
            | Self::Budget { .. }
            | Self::TurnTime
            | Self::Unrecorded => None,
        }
    }

    /// The reason at the bottom: a child's, where a child is waited for.
    pub fn root(&self) -> &Self {
        match self {
            Self::Child { because: Some(because), .. } => because.root(),
            Self::Child { because: None, .. }
            | Self::Approval
            | Self::Answer
            | Self::Budget { .. }
            | Self::Provider { .. }
            | Self::TurnTime
            | Self::Unrecorded => self,
        }
    }
}
