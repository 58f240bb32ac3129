//! What can go wrong with the record.

/// An error of the journal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] mainstay_store::Error),
    /// A record does not read back.
    #[error("{what} cannot be read: {detail}")]
    Damaged {
        /// Which record.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// The journal's results.
pub type Result<T> = std::result::Result<T, Error>;
