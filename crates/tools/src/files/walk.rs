//! Goes through a directory tree: sorted, without what is ignored, hidden or closed.
//!
//! The ignore crate opens `.gitignore` and `.ignore` by itself and follows links there. A link to a
//! pipe would make it wait for ever, one to the store would cost SQLite its locks; so a directory
//! with such a file is left out. `.git/info/exclude` is not honoured: where it is, is named by files
//! that nobody vouches for.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::{DirEntry, WalkBuilder};
use mainstay_store::lock;

use super::blocking::Stop;
use super::bounds::Bounds;
use super::open::Closed;
use super::text::count;
use crate::Outcome;
use crate::beneath::{self, Entry, LinkMet, Status};

/// A file with rules that is longer is not believed to be one.
const RULES_LIMIT: u64 = 4 << 20;

/// Whether files whose name begins with a dot are gone through. `.git` never is, unless it is the
/// root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    Skipped,
    Included,
}

/// What comes of a directory tree, and what was left out.
pub(super) struct Walk {
    entries: ignore::Walk,
    stop: Stop,
    left_out: Arc<Mutex<Vec<PathBuf>>>,
    unreadable: usize,
}

impl Walk {
    /// Goes through the tree below `root`, which is real and a directory.
    pub(super) fn new(
        bounds: &Arc<Bounds>,
        root: &Path,
        depth: Option<usize>,
        hidden: Hidden,
        stop: &Stop,
    ) -> Self {
        let left_out: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
        let root_is_plain = has_plain_rules(bounds, root);
        let parents_are_plain =
            root.ancestors().skip(1).all(|directory| has_plain_rules(bounds, directory));
        let mut builder = WalkBuilder::new(root);
        builder
            .max_depth(depth)
            .hidden(hidden == Hidden::Skipped)
            .ignore(root_is_plain)
            .git_ignore(root_is_plain)
            .parents(root_is_plain && parents_are_plain)
            .git_exclude(false)
            .follow_links(false)
            .sort_by_file_name(Ord::cmp);
        builder.filter_entry({
            let bounds = bounds.clone();
            let left_out = left_out.clone();
            let stop = stop.clone();
            move |entry| {
                if entry.depth() == 0 {
                    return true;
                }
                if stop.is_set() {
                    return false;
                }
                if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                    return true;
                }
                if entry.file_name() == ".git"
                    || entry.metadata().is_ok_and(|found| bounds.closes(&found))
                {
                    return false;
                }
                let plain = has_plain_rules(&bounds, entry.path());
                if !plain {
                    let mut left_out = lock(&left_out);
                    left_out.push(entry.path().to_owned());
                }
                plain
            }
        });
        let entries = builder.build();
        Self { entries, stop: stop.clone(), left_out, unreadable: 0 }
    }

    /// Says what was left out, if anything.
    pub(super) fn notes(&self, bounds: &Bounds) -> Vec<String> {
        let mut notes = Vec::new();
        let left_out = lock(&self.left_out);
        let mut confirmation = Confirmation::default();
        if let Some(first) = left_out.iter().find(|path| confirmation.status(path).is_some()) {
            notes.push(format!(
                "{} left out because of a .gitignore or .ignore that is not a regular file, including {}.",
                count(left_out.len() as u64, "directory was", "directories were"),
                bounds.shown(first)
            ));
        }
        if self.unreadable > 0 {
            let entries = count(self.unreadable as u64, "entry", "entries");
            notes.push(format!("{entries} could not be read."));
        }
        notes
    }
}

impl Iterator for Walk {
    type Item = DirEntry;

    fn next(&mut self) -> Option<DirEntry> {
        loop {
            if self.stop.is_set() {
                return None;
            }
            match self.entries.next()? {
                Ok(entry) if entry.depth() == 0 => {}
                Ok(entry) => return Some(entry),
                Err(_) => self.unreadable += 1,
            }
        }
    }
}

/// Looks again at what a walk came upon. The walk goes by names, and a directory that became a link
/// since would lead it elsewhere: what is told of a file is found without links.
#[derive(Default)]
pub(super) struct Confirmation {
    /// The directory of the last one; files of a directory come one after the other.
    directory: Option<(PathBuf, File)>,
}

impl Confirmation {
    /// What is there. Returns `None` if nothing is, or a link is in the way.
    pub(super) fn status(&mut self, path: &Path) -> Option<Status> {
        let (directory, name) = self.locate(path)?;
        Status::at(directory, name).ok()
    }

    /// Where a link leads.
    pub(super) fn target(&mut self, path: &Path) -> Option<PathBuf> {
        let (directory, name) = self.locate(path)?;
        beneath::target(directory, name).ok()
    }

    fn locate<'a>(&mut self, path: &'a Path) -> Option<(&File, &'a OsStr)> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        if self.directory.as_ref().is_none_or(|(known, _)| known != parent) {
            self.directory = Some((parent.to_owned(), beneath::directory(parent).ok()?));
        }
        self.directory.as_ref().map(|(_, directory)| (directory, name))
    }
}

/// What a model named as the place to look: a directory, or a single file.
pub(super) enum Root {
    Directory(PathBuf),
    File(PathBuf),
}

/// The place that a model named; the workspace if it named none.
pub(super) fn root(bounds: &Bounds, path: Option<&str>) -> Result<Root, Outcome> {
    let path = bounds.locate(path.filter(|path| !path.is_empty()).unwrap_or("."))?;
    if path.file_name().is_none() {
        return Ok(Root::Directory(path));
    }
    match Entry::of(&path).and_then(|entry| entry.status()) {
        Ok(found) if found.is_directory() => Ok(Root::Directory(path)),
        Ok(found) if found.is_file() => Ok(Root::File(path)),
        Ok(found) if found.is_link() => Err(Closed::Elsewhere.outcome(bounds, &path)),
        Ok(_) => Err(Closed::Special.outcome(bounds, &path)),
        Err(error) if LinkMet::is(&error) => Err(Closed::Elsewhere.outcome(bounds, &path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Outcome::failed(format!(
                "{} does not exist. Use `list` on the directory above it.",
                bounds.shown(&path)
            )))
        }
        Err(error) => Err(Closed::Failed(error).outcome(bounds, &path)),
    }
}

/// Whether the files with rules in `directory` can be opened without harm.
fn has_plain_rules(bounds: &Bounds, directory: &Path) -> bool {
    [".gitignore", ".ignore"].iter().all(|name| is_plain(bounds, &directory.join(name)))
}

fn is_plain(bounds: &Bounds, path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return true };
    if found.is_file() {
        return found.len() <= RULES_LIMIT && !bounds.closes(&found);
    }
    if !found.is_symlink() {
        // The ignore crate opens no directory for rules.
        return found.is_dir();
    }
    // A dangling link does no harm. Files under /proc that wait for ever say that they are empty.
    let Ok(target) = fs::canonicalize(path) else { return true };
    !bounds.is_closed(&target)
        && fs::metadata(&target).is_ok_and(|found| {
            found.is_dir() || (found.is_file() && (1..=RULES_LIMIT).contains(&found.len()))
        })
}
