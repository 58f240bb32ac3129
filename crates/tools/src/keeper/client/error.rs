//! What can go wrong between an agent and its keeper.

use std::io;
use std::path::PathBuf;

/// What can go wrong between an agent and its keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It could not be started.
    #[error("The keeper of processes cannot be started in {}: {cause}. Make sure that the directory can be written to.", spool.display())]
    Start {
        /// Its spool.
        spool: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It went away in the middle of the work. Its guard has killed what it kept.
    #[error(
        "The keeper of processes was lost. Its processes are killed; look at what they did before you start them again."
    )]
    Lost,
    /// It does not answer in time.
    #[error("The keeper of processes does not answer. Look whether it is stopped, and try again.")]
    Silent,
    /// It knows no such job.
    #[error("No process is called {0}. List the processes to see their names.")]
    Unknown(String),
    /// It refused, and says why.
    #[error("{0}")]
    Refused(String),
}
