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
    /// What is done without asking, and what holds it.
    #[serde(default)]
    pub mode: Mode,
}

/// What is done without asking, and what holds it. Later ones let more be done.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only looking: commands run where nothing but scratch can be written, without a network.
    Plan,
    /// What a turn has that was begun before there were modes: running code is asked too.
    #[default]
    Ask,
    /// Commands run unasked in a box without a network that writes only the workspace; what leaves the
    /// box is asked.
    Auto,
    /// Every question is answered with yes.
    Yes,
}

impl Mode {
    /// Each of them, the strictest first.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Auto, Self::Yes];

    /// Its name, as it is typed and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Auto => "auto",
            Self::Yes => "yes",
        }
    }

    /// The mode with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Whether the kernel decides what a command can do, and the command line is read only to ask before
    /// something leaves the box.
    pub fn is_boxed(self) -> bool {
        match self {
            Self::Plan | Self::Auto => true,
            Self::Ask | Self::Yes => false,
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}
