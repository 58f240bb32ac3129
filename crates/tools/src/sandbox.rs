//! The sandbox: what commands and file tools can reach is decided by the kernel, by landlock.
//!
//! A [`Sandbox`] says what may be written and what may not be read. A kernel with landlock lets a
//! thread take rights away from itself and from all that it starts, for ever. So there are threads
//! that have done that, and everything happens in them: the keeper starts commands from a
//! [`chamber`], the file tools work in [`rooms`]. A command costs a hand-over to such a thread and
//! nothing more, and all commands of a sandbox are of one domain: they can signal each other, and
//! nobody else.
//!
//! Two layers lie on top of each other. The outer one is about writing, signals and the network, and
//! stays. The inner one is about reading. Landlock knows only what is allowed, and a right holds for
//! all below a directory; so around a hidden place each of its neighbours is allowed by itself, and
//! the inner layer is made anew when there are other neighbours.

mod caches;
mod capabilities;
mod chamber;
mod enclosure;
mod landlock;
mod layers;
mod made_caches;
mod network;
mod rooms;
mod spread;
mod support;
#[cfg(test)]
mod tests;
mod usual;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use chamber::{Chambers, Spawning};
pub(crate) use enclosure::Doors;
pub use made_caches::{MadeCaches, clear_up as clear_up_caches};
pub use rooms::Confinement;
pub(crate) use rooms::Room;
pub use support::{NetworkWay, ProcessWay, Support};
pub use usual::{Mode, Wishes};

/// What may be written, what may not be read, and whether there is a network. Paths are real.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Files and directories that may be changed, with all below them.
    pub write: Vec<PathBuf>,
    /// Files and directories that are not read. They are not changed either.
    pub hide: Vec<PathBuf>,
    /// What is read all the same in a directory that is hidden.
    pub show: Vec<PathBuf>,
    /// Whether commands reach the network.
    pub network: Network,
    /// Whether nothing runs where the kernel cannot hold it to this.
    pub required: bool,
}

/// A sandbox as it travels to the keeper: a text, so that one that it knows is told at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Specification(String);

impl Specification {
    fn read(&self) -> io::Result<Sandbox> {
        Ok(serde_json::from_str(&self.0)?)
    }
}

impl From<&Sandbox> for Specification {
    fn from(sandbox: &Sandbox) -> Self {
        // Paths that are no text cannot be written; one that is empty is refused by the keeper.
        Self(serde_json::to_string(sandbox).unwrap_or_default())
    }
}

/// Whether commands reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// As everybody does.
    #[default]
    Open,
    /// They reach each other at most.
    Closed,
}

impl Sandbox {
    /// Whether a path, which is real, is hidden.
    pub fn hides(&self, path: &Path) -> bool {
        self.hide.iter().any(|hidden| path.starts_with(hidden))
            && !self.show.iter().any(|shown| path.starts_with(shown))
    }

    /// Whether a path, which is real, may be written with all that may come to be beside it.
    fn writes(&self, path: &Path) -> bool {
        let open = |place: &PathBuf| {
            path.starts_with(place) && !self.hide.iter().any(|hidden| hidden.starts_with(place))
        };
        self.write.iter().any(open)
    }

    /// Whether secrets are in the workspace itself. Then commands make nothing new beside them.
    pub fn is_divided(&self, workspace: &Path) -> bool {
        self.hide.iter().any(|hidden| hidden.starts_with(workspace))
    }

    /// Why nothing runs in it here, where it is required and cannot be had.
    pub(crate) fn refusal(&self, support: &Support) -> Option<String> {
        let missing = match (support.missing(), self.network) {
            (Some(missing), _) => missing,
            (None, Network::Closed) if support.network == NetworkWay::Open => {
                "the network cannot be blocked for commands here".to_owned()
            }
            (None, _) => return None,
        };
        self.required.then(|| {
            format!(
                "Nothing was run: {missing}, and the configuration requires a sandbox ([sandbox] \
                 mode = \"require\")."
            )
        })
    }
}
