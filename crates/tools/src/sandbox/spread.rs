//! All of a tree but some places in it, as a list of what is allowed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What to allow so that closed places stay closed, and what that was read from.
#[derive(Debug, Default)]
pub(super) struct Spread {
    pub(super) open: Vec<PathBuf>,
    pub(super) split: Vec<Split>,
}

/// A directory with a closed place below it: its entries are allowed one by one. What comes to be
/// in it later is closed until that is done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    path: PathBuf,
    changed: Option<(i64, i64)>,
}

impl Split {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), changed: changed(path) }
    }

    /// Whether its entries may be others by now.
    pub(super) fn is_stale(&self) -> bool {
        changed(&self.path) != self.changed
    }
}

fn changed(path: &Path) -> Option<(i64, i64)> {
    fs::metadata(path).ok().map(|found| (found.mtime(), found.mtime_nsec()))
}

impl Spread {
    /// Adds all of a tree but the closed places. Paths are real.
    pub(super) fn add(&mut self, path: &Path, closed: &[PathBuf]) {
        if closed.iter().any(|closed| path.starts_with(closed)) {
            return;
        }
        let below: Vec<PathBuf> =
            closed.iter().filter(|closed| closed.starts_with(path)).cloned().collect();
        if below.is_empty() {
            return self.open.push(path.to_owned());
        }
        // Before its entries are read, so that a change meanwhile is noticed.
        self.split.push(Split::of(path));
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            // What a link leads to is allowed where it is.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add(&entry.path(), &below);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_closed_places_is_allowed_and_changes_beside_them_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for path in ["a/x", "b/secret", "b/other", "c"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("b/secret"), root.join("b/link")).unwrap();
        let closed = [root.join("b/secret"), root.join("b/absent"), PathBuf::from("/elsewhere")];
        let mut spread = Spread::default();
        spread.add(&root, &closed);
        spread.open.sort();
        assert_eq!(spread.open, ["a", "b/other", "c"].map(|path| root.join(path)));
        assert_eq!(spread.split.len(), 2);
        assert!(!spread.split.iter().any(Split::is_stale));
        fs::create_dir(root.join("b/new")).unwrap();
        assert!(spread.split.iter().any(Split::is_stale));
    }

    #[test]
    fn a_tree_without_closed_places_is_allowed_as_a_whole_and_one_in_them_not_at_all() {
        let closed = [PathBuf::from("/etc")];
        let mut spread = Spread::default();
        spread.add(Path::new("/usr"), &closed);
        spread.add(Path::new("/etc/ssl"), &closed);
        assert_eq!((spread.open, spread.split), (vec![PathBuf::from("/usr")], vec![]));
    }
}
