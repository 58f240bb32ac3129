//! What was chosen for a turn when it began.

use serde::{Deserialize, Serialize};

/// What was chosen for a turn. It is written with the turn, and whoever takes the turn up uses it:
/// a turn belongs to no process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnChoices {
    /// The models as `provider/model`, the first one first, the others as fallbacks.
    pub models: Vec<String>,
    /// The profile of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What the turn may spend, in millionths of a dollar, where that was chosen for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<i64>,
    /// What is asked before it is done.
    #[serde(default)]
    pub mode: Mode,
}

/// What is asked before it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What the policy says.
    #[default]
    Ask,
    /// Nothing: every question of the policy is answered with yes.
    Yes,
}
