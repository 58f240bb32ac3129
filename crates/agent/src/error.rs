//! What can stop the engine itself. What can go wrong in a turn is an ending of the turn.

/// An error of the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record failed.
    #[error(transparent)]
    Journal(#[from] mainstay_journal::Error),
    /// The input has a key that belongs to a turn of another session.
    #[error("the key {key} belongs to a turn of session {session}")]
    KeyOfAnotherSession {
        /// The key.
        key: String,
        /// The session whose turn has it.
        session: String,
    },
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
