//! What can stop the engine itself. What can go wrong in a turn is an ending of the turn.

/// An error of the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record failed.
    #[error(transparent)]
    Journal(#[from] mainstay_journal::Error),
    /// Sessions that were begun by turns of sessions that were begun by turns, and so on.
    #[error("this turn would stand {0} budgets deep, which is more than is allowed")]
    TooDeep(i64),
    /// A hook refused what the user sent; nothing was begun or written down.
    #[error("a hook refused this: {0}")]
    Blocked(String),
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
