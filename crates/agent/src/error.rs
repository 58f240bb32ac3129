//! What can stop the engine itself. What can go wrong in a turn is an ending of the turn.

/// An error of the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record failed.
    #[error(transparent)]
    Journal(#[from] mainstay_journal::Error),
    /// Sessions that were begun by turns of sessions that were begun by turns, and so on.
    #[error("this turn would be nested {0} budgets deep, more than is allowed")]
    TooDeep(i64),
    /// Objects that a snapshot builds on were swept away; what is about to change is saved again.
    #[error("old snapshots were removed at the same moment")]
    SnapshotsSwept,
    /// An undo would overwrite what somebody else did, and nobody decided about that.
    #[error("{0} files have changed since the turn; nothing was undone")]
    Conflicts(usize),
    /// A hook refused what the user sent; nothing was begun or written down.
    #[error("a hook refused this: {0}")]
    Blocked(String),
    /// What a session must be told of its user cannot be read; it was not begun.
    #[error("could not begin the session: {0}")]
    Memory(String),
    /// A skill was not changed.
    #[error(transparent)]
    Skills(#[from] crate::skills::SkillError),
    /// The configuration names no model.
    #[error("no model is configured")]
    NoModel,
}

impl From<mainstay_store::Error> for Error {
    fn from(error: mainstay_store::Error) -> Self {
        Self::Journal(error.into())
    }
}

/// The agent's results.
pub type Result<T> = std::result::Result<T, Error>;
