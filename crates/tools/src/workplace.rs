//! Where the calls of a session happen.

use std::path::PathBuf;

use crate::files::Seen;
use crate::keeper::Keeper;

/// Where the calls of a session happen.
#[derive(Clone)]
pub struct Workplace {
    /// The directory that relative paths start from.
    pub workspace: PathBuf,
    /// Owns the processes.
    pub keeper: Keeper,
    /// Which files were read, and how they looked then.
    pub seen: Seen,
    /// Files and directories that no tool opens: the store's, and the home's.
    pub forbidden: Vec<PathBuf>,
}
