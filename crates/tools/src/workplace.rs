//! Where the calls of a session happen.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::files::Seen;
use crate::keeper::Keeper;
use crate::outside::Outside;
use crate::process::Processes;
use crate::reader::Reader;
use crate::replacing::EditSlots;
use crate::sandbox::{Confinement, MadeCaches};
use crate::todo::Steps;

/// Where the calls of a session happen.
#[derive(Clone)]
pub struct Workplace {
    /// The directory that relative paths start from.
    pub workspace: PathBuf,
    /// Owns the processes.
    pub keeper: Keeper,
    /// Which background processes are known.
    pub processes: Processes,
    /// The agent's environment. Only what is known to be harmless reaches a process.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that reach processes too.
    pub pass: Vec<String>,
    /// Which files were read, and how they looked then.
    pub seen: Seen,
    /// By which processes change a file one after the other.
    pub edit_slots: EditSlots,
    /// Files and directories that no tool opens: the store's, and the home's.
    pub forbidden: Vec<PathBuf>,
    /// Directories in those that are read all the same, and never changed. Links are followed.
    pub lent: Vec<PathBuf>,
    /// The sandbox that commands and file tools are in.
    pub confinement: Confinement,
    /// Caches that were made for the tools that commands use.
    pub caches: Option<Arc<MadeCaches>>,
    /// The steps that the model means to take.
    pub steps: Steps,
    /// Where words from outside came from.
    pub outside: Outside,
    /// Reads documents; without one they cannot be read.
    pub reader: Option<Reader>,
}

impl Workplace {
    /// A workplace in a directory, with an empty environment and no sandbox, where nothing was read yet.
    pub fn new(workspace: impl Into<PathBuf>, keeper: Keeper) -> Self {
        Self {
            workspace: workspace.into(),
            keeper,
            processes: Processes::default(),
            environment: Vec::new(),
            pass: Vec::new(),
            seen: Seen::default(),
            edit_slots: EditSlots::default(),
            forbidden: Vec::new(),
            lent: Vec::new(),
            confinement: Confinement::default(),
            caches: None,
            steps: Steps::default(),
            outside: Outside::default(),
            reader: None,
        }
    }
}
