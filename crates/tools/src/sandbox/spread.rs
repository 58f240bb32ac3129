//! All of a tree but some places in it, as a list of what is allowed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
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
    changed: Option<Changed>,
}

/// Which directory it is, and when its entries last changed.
type Changed = (u64, u64, i64, i64);

impl Split {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), changed: changed(path) }
    }

    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// How it is now. Returns `None` if its entries are the same.
    pub(super) fn changed(&self) -> Option<Self> {
        let now = changed(&self.path);
        (now != self.changed).then(|| Self { path: self.path.clone(), changed: now })
    }

    /// Whether its entries may be others by now.
    pub(super) fn is_stale(&self) -> bool {
        changed(&self.path) != self.changed
    }
}

fn changed(path: &Path) -> Option<Changed> {
    let found = rustix::fs::stat(path).ok()?;
    let time = (found.st_mtime as i64, found.st_mtime_nsec as i64);
    Some((found.st_dev as u64, found.st_ino as u64, time.0, time.1))
}

impl Spread {
    /// Adds all of a tree but the closed places. Paths are real.
    pub(super) fn add(&mut self, path: &Path, closed: &[PathBuf]) {
        // Written the one way, so that what is within another can be told from the letters.
        let plain = |path: &Path| path.components().collect::<PathBuf>();
        let closed: Vec<PathBuf> = closed.iter().map(|closed| plain(closed)).collect();
        let closed: Vec<&Path> = closed.iter().map(PathBuf::as_path).collect();
        self.add_part(&plain(path), &closed);
    }

    fn add_part(&mut self, path: &Path, closed: &[&Path]) {
        if closed.iter().any(|closed| is_within(path, closed)) {
            return;
        }
        let below: Vec<&Path> =
            closed.iter().copied().filter(|closed| is_within(closed, path)).collect();
        if below.is_empty() {
            return self.open.push(path.to_owned());
        }
        // Before its entries are read, so that a change meanwhile is noticed.
        self.split.push(Split::of(path));
        let Ok(entries) = fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            // What a link leads to is allowed where it is.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add_part(&entry.path(), &below);
            }
        }
    }
}

/// Whether a place is in a tree, or is it. Their letters are compared: there are many, and taking each
/// path apart took most of a keeper's start.
fn is_within(path: &Path, tree: &Path) -> bool {
    let (path, tree) = (path.as_os_str().as_bytes(), tree.as_os_str().as_bytes());
    let rest = path.strip_prefix(tree);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || tree == b"/")
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
        let closed = ["b//secret/", "b/absent"].map(|path| root.join(path));
        let closed = [&closed[..], &[PathBuf::from("/elsewhere")]].concat();
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
    fn another_directory_in_the_place_of_one_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap().join("work");
        let closed = [root.join("a/secret")];
        for (moved, other) in [("work/a", "work/a"), ("work", "work/a")] {
            fs::create_dir_all(root.join("a/secret")).unwrap();
            let mut spread = Spread::default();
            spread.add(&root, &closed);
            assert_eq!(spread.split.len(), 2);
            assert!(!spread.split.iter().any(Split::is_stale));
            let above = directory.path();
            mainstay_store::fsatomic::rename(&above.join(moved), &above.join("gone")).unwrap();
            assert!(spread.split.iter().any(Split::is_stale), "{moved} is gone");
            fs::create_dir_all(above.join(other)).unwrap();
            assert!(spread.split.iter().any(Split::is_stale), "{moved} is another");
            fs::remove_dir_all(above.join("gone")).unwrap();
            fs::remove_dir_all(&root).unwrap();
        }
    }

    #[test]
    fn what_is_within_a_tree_is_told_by_whole_names() {
        for (path, tree, expected) in [
            ("/a/b", "/a", true),
            ("/a", "/a", true),
            ("/a", "/", true),
            ("/", "/", true),
            ("/ab", "/a", false),
            ("/a", "/a/b", false),
            ("/", "/a", false),
        ] {
            assert_eq!(is_within(Path::new(path), Path::new(tree)), expected, "{path} in {tree}");
        }
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
