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
//!
//! Where the kernel gives namespaces there is more on top of that: processes of their own in an
//! [`enclosure`], devices of their own, and a [`view`] of the files in which all is read-only but where
//! they may write. A [`filter`] refuses the few system calls that are about none of these.

mod caches;
mod capabilities;
mod chamber;
mod devices;
mod enclosure;
mod filter;
mod held;
mod kept;
mod landlock;
mod layers;
mod listening;
mod made_caches;
mod mounts;
mod network;
mod planted;
mod repositories;
mod rooms;
mod secrets;
mod spread;
mod support;
#[cfg(test)]
mod tests;
mod usual;
mod view;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Grant;
pub(crate) use chamber::{Chambers, Spawning};
pub(crate) use enclosure::Doors;
pub use held::unheld;
pub use made_caches::{MadeCaches, clear_up as clear_up_caches};
pub(crate) use planted::remove_planted;
pub use rooms::Confinement;
pub(crate) use rooms::Room;
pub use support::{NetworkWay, ProcessWay, Support};
pub use usual::{Mode, Wishes};

/// What may be written, what may not be read, and whether there is a network. Paths are real.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// Files and directories that may be changed, with all below them.
    pub write: Vec<PathBuf>,
    /// Files and directories that are not read. They are not changed either.
    pub hide: Vec<PathBuf>,
    /// What is read all the same in a directory that is hidden.
    pub show: Vec<PathBuf>,
    /// What is not changed though it is in a place that may be. What is named in `write` below it is.
    pub except: Vec<PathBuf>,
    /// What commands neither change nor replace though they change what is beside it, because it would
    /// be run outside. Mounts hold that, and nothing does where there are none.
    pub keep: Vec<PathBuf>,
    /// Files that commands must not leave behind for the same reason, and that are not there.
    pub absent: Vec<PathBuf>,
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
            path.starts_with(place)
                && !self.hide.iter().any(|hidden| hidden.starts_with(place))
                && !self
                    .except
                    .iter()
                    .any(|except| except.starts_with(place) && !place.starts_with(except))
        };
        self.write.iter().any(open)
    }

    /// What a call is in that may do more.
    pub(crate) fn with(&self, grant: &Grant) -> Self {
        let mut wider = self.clone();
        if grant.network {
            wider.network = Network::Open;
        }
        for path in &grant.write {
            // Also what is kept elsewhere: a person said that it may be written.
            let is_granted = |place: &PathBuf| place.starts_with(path);
            wider.except.retain(|place| !is_granted(place));
            wider.keep.retain(|place| !is_granted(place));
            wider.absent.retain(|place| !is_granted(place));
            if !wider.write.contains(path) {
                wider.write.push(path.clone());
            }
        }
        wider
    }

    /// The same without anything that lasts: commands write scratch, nothing of the workspace, and have
    /// no network. A workspace that lies in scratch is not written either; commands make nothing new
    /// beside it then.
    pub fn read_only(&self, workspace: &Path) -> Self {
        let is_scratch = |path: &&PathBuf| {
            !path.starts_with(workspace)
                && usual::SCRATCH.iter().any(|scratch| path.starts_with(scratch))
        };
        let write: Vec<PathBuf> = self.write.iter().filter(is_scratch).cloned().collect();
        let mut except = self.except.clone();
        if write.iter().any(|scratch| workspace.starts_with(scratch)) {
            except.push(workspace.to_owned());
        }
        Self { write, except, network: Network::Closed, ..self.clone() }
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
