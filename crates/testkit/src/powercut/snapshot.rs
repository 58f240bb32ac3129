//! What is in a directory before a recording begins.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The files and directories below a directory. Sockets, pipes and symbolic links are left out.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Parents come before their children.
    pub(super) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) path: PathBuf,
    pub(super) inode: u64,
    pub(super) mode: u32,
    /// The bytes of a file; nothing for a directory.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Snapshot {
    /// Reads everything below a directory.
    pub fn of(directory: &Path) -> Self {
        let mut snapshot = Self::default();
        snapshot.read(directory, Path::new(""));
        snapshot
    }

    fn read(&mut self, root: &Path, below: &Path) {
        let entries = fs::read_dir(root.join(below))
            .unwrap_or_else(|error| panic!("Could not read {}: {error}.", root.display()));
        for entry in entries {
            let entry = entry.expect("an entry of a directory that is not changing");
            let metadata = entry.metadata().expect("an entry of a directory that is not changing");
            let path = below.join(entry.file_name());
            if !metadata.is_dir() && !metadata.is_file() {
                continue;
            }
            let bytes = metadata.is_file().then(|| {
                fs::read(entry.path())
                    .unwrap_or_else(|error| panic!("Could not read {}: {error}.", path.display()))
            });
            let mode = metadata.permissions().mode() & 0o7777;
            self.items.push(Item { path: path.clone(), inode: metadata.ino(), mode, bytes });
            if metadata.is_dir() {
                self.read(root, &path);
            }
        }
    }
}
