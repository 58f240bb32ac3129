//! Where the file tools may go: paths made real, and the files that no tool opens.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::text::printable;
use crate::beneath::Status;
use crate::sandbox::Confinement;
use crate::{Outcome, Workplace};

/// A file, whatever its names: device and inode.
type Identity = (u64, u64);

/// As many files are looked at in the closed directories when a file with several names comes up.
const INSIDE_LIMIT: usize = 100_000;

/// Where the calls of a workplace may go.
///
/// The files of the store must not even be opened: closing a handle on an SQLite database drops
/// SQLite's locks. So they are known by path and by device and inode, before anything is opened.
pub(crate) struct Bounds {
    workspace: PathBuf,
    closed: Vec<PathBuf>,
    /// What is read in closed directories, and not changed.
    lent: Vec<PathBuf>,
    confinement: Confinement,
    identities: HashSet<Identity>,
    /// The files inside the closed directories; `None` when there are too many to know.
    inside: OnceLock<Option<HashSet<Identity>>>,
}

impl Bounds {
    /// Looks at the disk: for blocking threads.
    pub(crate) fn of(workplace: &Workplace) -> Self {
        let closed: Vec<PathBuf> = workplace
            .forbidden
            .iter()
            .map(|path| real(path).unwrap_or_else(|_| path.clone()))
            .collect();
        let identities = closed
            .iter()
            .filter_map(|path| fs::metadata(path).ok())
            .map(|found| Status::from(&found).identity)
            .collect();
        let workspace =
            fs::canonicalize(&workplace.workspace).unwrap_or_else(|_| workplace.workspace.clone());
        let confinement = workplace.confinement.clone();
        let lent = workplace.lent.clone();
        Self { workspace, closed, lent, confinement, identities, inside: OnceLock::new() }
    }

    /// The real path of what a model named: absolute, links followed, also when nothing is there
    /// yet. Fails, in words, for what no tool opens.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf, Outcome> {
        if path.is_empty() || path.contains('\0') {
            return Err(Outcome::failed(
                "The path is empty or contains a NUL byte. Give the path of a file.",
            ));
        }
        let real = real(&self.workspace.join(path)).map_err(|error| {
            Outcome::failed(format!("Could not resolve {}: {error}.", printable(path)))
        })?;
        if self.is_closed(&real) { Err(self.refusal(&real)) } else { Ok(real) }
    }

    /// The same for what is to be changed. It must be what was judged, if something was: a link on the
    /// way may have been put there since.
    pub(crate) fn locate_judged(
        &self,
        path: &str,
        judged: Option<&Path>,
    ) -> Result<PathBuf, Outcome> {
        let real = self.locate_to_change(path)?;
        if judged.is_some_and(|judged| judged != real) {
            return Err(elsewhere(path));
        }
        Ok(real)
    }

    /// The same for what is to be changed.
    pub(crate) fn locate_to_change(&self, path: &str) -> Result<PathBuf, Outcome> {
        let real = self.locate(path)?;
        if self.lender(&real).is_none() {
            return Ok(real);
        }
        Err(Outcome::failed(format!(
            "{} belongs to one of the user's skills, which tools cannot change. Propose the change \
             with `propose_skill`.",
            self.shown(&real)
        )))
    }

    /// The directory by which a path, which is real, is lent.
    fn lender(&self, path: &Path) -> Option<&PathBuf> {
        self.lent.iter().find(|lent| path.starts_with(lent))
    }

    /// Whether no tool may open `path`, which is real.
    pub(crate) fn is_closed(&self, path: &Path) -> bool {
        // What the process knows of itself, its environment among it; the kernel lets a thread look.
        if path.starts_with(format!("/proc/{}", std::process::id())) {
            return true;
        }
        if let Some(lent) = self.lender(path) {
            // What is closed may be mounted or linked to in there.
            let inner = path.ancestors().take_while(|at| at != lent);
            return inner.into_iter().any(|at| fs::metadata(at).is_ok_and(|it| self.closes(&it)));
        }
        if self.closed.iter().any(|closed| path.starts_with(closed)) {
            return true;
        }
        // A directory can be mounted at a second place; its identity stays the same.
        path.ancestors().any(|at| fs::metadata(at).is_ok_and(|found| self.closes(&found)))
    }

    /// Whether no tool may open the file that looks like this. Its directory was looked at before.
    pub(crate) fn closes(&self, found: impl Into<Status>) -> bool {
        let found = found.into();
        if self.identities.contains(&found.identity) {
            return true;
        }
        // Only a file with a second name can be inside a closed directory and here.
        found.is_file()
            && found.links > 1
            && self.inside().as_ref().is_none_or(|inside| inside.contains(&found.identity))
    }

    /// What a model is told of a file that no tool opens.
    pub(super) fn refusal(&self, path: &Path) -> Outcome {
        Outcome::failed(format!(
            "{} belongs to Mainstay's own state, which tools cannot open. Work on other files.",
            self.shown(path)
        ))
    }

    /// Why the kernel refuses a path, if that is why.
    pub(super) fn hidden(&self, path: &Path) -> Option<&'static str> {
        let sandbox = self.confinement.sandbox()?;
        sandbox.hides(path).then_some(
            " The sandbox hides it because secrets are kept there; no tool or command can read it.",
        )
    }

    /// A path as a model reads it: relative inside the workspace, on one line.
    pub(super) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => printable(&inside.to_string_lossy()),
            Err(_) => printable(&path.to_string_lossy()),
        }
    }

    fn inside(&self) -> &Option<HashSet<Identity>> {
        self.inside.get_or_init(|| {
            let mut found = HashSet::new();
            let mut left = self.closed.clone();
            while let Some(directory) = left.pop() {
                let Ok(entries) = fs::read_dir(&directory) else { continue };
                for entry in entries.flatten() {
                    let Ok(metadata) = entry.metadata() else { continue };
                    if metadata.is_dir() {
                        // What is lent may have as many names as it likes.
                        if !self.lent.contains(&entry.path()) {
                            left.push(entry.path());
                        }
                    } else if found.len() == INSIDE_LIMIT {
                        return None;
                    } else {
                        found.insert(Status::from(&metadata).identity);
                    }
                }
            }
            Some(found)
        })
    }
}

/// What a model is told of a path that leads somewhere else than when its call was judged.
pub(super) fn elsewhere(path: &str) -> Outcome {
    Outcome::failed(format!("{} now points somewhere else, so it was left alone.", printable(path)))
}

/// Follows all links, also to what does not exist yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many links as the kernel follows.
    for _ in 0..40 {
        match fs::canonicalize(&path) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(error) => {
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                    return Err(error);
                };
                match fs::read_link(&path) {
                    Ok(target) => path = parent.join(target),
                    Err(_) => return Ok(real(parent)?.join(name)),
                }
            }
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}
