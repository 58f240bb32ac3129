//! One state of the disk.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Variant;

/// What a power cut left.
#[derive(Clone)]
pub struct State {
    /// How many operations had been done.
    pub at: usize,
    /// Which of the changes that were not durable have happened.
    pub variant: Variant,
    /// Everything that was acknowledged before the cut.
    pub acked: Vec<u8>,
    /// Parents come before their children.
    pub(super) items: Vec<(PathBuf, Item)>,
}

/// A directory entry and what it leads to.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) mode: u32,
    /// Names of one file have the same number.
    pub(super) node: usize,
    /// The bytes of a file; nothing for a directory.
    pub(super) bytes: Option<Arc<Vec<u8>>>,
}

impl State {
    /// The name by which the state can be asked for again.
    pub fn name(&self) -> String {
        format!("{}:{}", self.at, self.variant)
    }

    /// The bytes of a file, if it is there.
    pub fn file(&self, path: impl AsRef<Path>) -> Option<&[u8]> {
        let item = self.items.iter().find(|(name, _)| name == path.as_ref())?;
        item.1.bytes.as_deref().map(Vec::as_slice)
    }

    /// Writes the state into an empty directory.
    pub fn materialise(&self, directory: &Path) {
        let mut written: HashMap<usize, PathBuf> = HashMap::new();
        for (path, item) in &self.items {
            let path = directory.join(path);
            let done = match (&item.bytes, written.get(&item.node)) {
                (Some(_), Some(first)) => fs::hard_link(first, &path),
                (Some(bytes), None) => fs::write(&path, bytes.as_slice()),
                (None, _) => fs::create_dir(&path),
            };
            done.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(item.mode)))
                .unwrap_or_else(|error| panic!("Could not write {}: {error}.", path.display()));
            written.insert(item.node, path);
        }
    }

    /// Says whether a check could tell the two apart.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.acked == other.acked
            && self.items.len() == other.items.len()
            && self.items.iter().zip(&other.items).all(
                |((path, item), (other_path, other_item))| {
                    path == other_path && item.same_as(other_item)
                },
            )
    }
}

impl Item {
    fn same_as(&self, other: &Self) -> bool {
        let bytes = match (&self.bytes, &other.bytes) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs) || mine == theirs,
            (None, None) => true,
            _ => false,
        };
        bytes && self.mode == other.mode
    }
}
