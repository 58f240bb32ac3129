//! What can go wrong between an agent and its keeper.

use std::io;
use std::path::PathBuf;

/// What can go wrong between an agent and its keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It could not be started.
    #[error("Could not start the process keeper in {}: {cause}. Make sure the directory is writable.", spool.display())]
    Start {
        /// Its spool.
        spool: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It went away in the middle of the work. Its guard has killed what it kept.
    #[error(
        "The process keeper was lost. Its processes were killed; check what they did before you start them again."
    )]
    Lost,
    /// It does not answer in time.
    #[error("The process keeper does not answer. Check whether it is stopped, then try again.")]
    Silent,
    /// It knows no such job.
    #[error("There is no process named {0}. List the processes to see their names.")]
    Unknown(String),
    /// It refused, and says why.
    #[error("{0}")]
    Refused(String),
}
