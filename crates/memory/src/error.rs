//! What can go wrong with memories.

/// An error of the memory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] mainstay_store::Error),
    /// What was given cannot be remembered; says why.
    #[error("{0}")]
    Refused(String),
    /// A record does not read back.
    #[error("could not read {what}: {detail}")]
    Damaged {
        /// Which record.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// The memory's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
