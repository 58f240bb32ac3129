//! Whether git holds what is in a file, found by reading git's index.
//!
//! Running `git` would run what the repository's configuration names: hooks, filters, a monitor.
//! The index knows the hash of every tracked file, and that is enough.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::blocking::Stop;
use super::bounds::Bounds;
use super::git_index::{Entries, Entry, Hash, entries};
use super::open::{open, whole};
use super::text::to_unix;

/// A bigger index belongs to a repository of more than half a million files.
const INDEX_LIMIT: u64 = 64 << 20;

/// Whether git holds what is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The file is in no repository.
    NoRepository,
    /// The index holds this content: it is staged or committed.
    Yes,
    /// The index holds another content.
    Modified,
    /// The index does not hold the file.
    Untracked,
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}

/// Whether git holds `content`, which is in the file at `path` now.
pub(super) fn held(
    bounds: &Bounds,
    path: &Path,
    content: &[u8],
    metadata: &Metadata,
    stop: &Stop,
) -> Held {
    let Some((root, directory)) = repository(bounds, path, stop) else {
        return Held::NoRepository;
    };
    let Some(hash) = hash_of(bounds, &directory, stop) else {
        return Held::Unknown("its configuration cannot be read");
    };
    let Ok(name) = path.strip_prefix(&root) else {
        return Held::Unknown("the file's place in the repository is not clear");
    };
    let at = directory.join("index");
    let index = match fs::metadata(&at) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Held::Untracked,
        Err(_) => return Held::Unknown("its index cannot be read"),
    };
    let Some(bytes) = small(bounds, &at, INDEX_LIMIT, stop) else {
        return Held::Unknown("its index cannot be read");
    };
    let found = match entries(&bytes, hash, name.as_os_str().as_bytes()) {
        Some(Entries::Found(found)) => found,
        Some(Entries::Absent) => return Held::Untracked,
        Some(Entries::Elsewhere) => return Held::Unknown("its index is split or sparse"),
        None => return Held::Unknown("its index is of an unknown kind"),
    };
    let ids = [id(hash, content), id(hash, &to_unix(content))];
    if found.iter().any(|entry| ids.contains(&entry.id) || looks_clean(entry, metadata, &index)) {
        Held::Yes
    } else {
        Held::Modified
    }
}

/// Whether git itself would take the file for unchanged without looking into it. Filters (large
/// file storage, encodings) make the hash in the index differ from that of the file.
fn looks_clean(entry: &Entry, file: &Metadata, index: &Metadata) -> bool {
    let modified = (file.mtime(), file.mtime_nsec());
    // A file changed in the moment in which the index was written may look unchanged.
    let settled = modified < (index.mtime(), index.mtime_nsec());
    let same_time = i64::from(entry.seconds) == modified.0
        && (entry.nanoseconds == 0 || i64::from(entry.nanoseconds) == modified.1);
    settled && same_time && u64::from(entry.size) == file.len() && entry.size != 0
}

/// The name that git gives to this content.
fn id(hash: Hash, content: &[u8]) -> Vec<u8> {
    let header = format!("blob {}\0", content.len());
    match hash {
        Hash::Sha1 => Sha1::new().chain_update(&header).chain_update(content).finalize().to_vec(),
        Hash::Sha256 => {
            Sha256::new().chain_update(&header).chain_update(content).finalize().to_vec()
        }
    }
}

/// The root of the working tree that `path` is in, and git's directory for it.
fn repository(bounds: &Bounds, path: &Path, stop: &Stop) -> Option<(PathBuf, PathBuf)> {
    for root in path.ancestors().skip(1) {
        let at = root.join(".git");
        match fs::metadata(&at) {
            Ok(found) if found.is_dir() => return Some((root.to_owned(), at)),
            // A further working tree, or a submodule: the file names git's directory.
            Ok(found) if found.is_file() => {
                let text = String::from_utf8(small(bounds, &at, 8 << 10, stop)?).ok()?;
                let named = text.strip_prefix("gitdir:")?.trim();
                return Some((root.to_owned(), root.join(named)));
            }
            _ => {}
        }
    }
    None
}

/// Which hash the repository uses.
fn hash_of(bounds: &Bounds, directory: &Path, stop: &Stop) -> Option<Hash> {
    let shared = match small(bounds, &directory.join("commondir"), 8 << 10, stop) {
        Some(named) => directory.join(String::from_utf8(named).ok()?.trim()),
        None => directory.to_owned(),
    };
    let configuration = small(bounds, &shared.join("config"), 1 << 20, stop)?;
    let uses_sha256 = String::from_utf8_lossy(&configuration)
        .to_ascii_lowercase()
        .lines()
        .filter_map(|line| line.split_once('='))
        .any(|(key, value)| key.trim() == "objectformat" && value.trim() == "sha256");
    Some(if uses_sha256 { Hash::Sha256 } else { Hash::Sha1 })
}

fn small(bounds: &Bounds, path: &Path, limit: u64, stop: &Stop) -> Option<Vec<u8>> {
    let path = fs::canonicalize(path).ok()?;
    if bounds.is_closed(&path) {
        return None;
    }
    let (file, _) = open(bounds, &path).ok()?;
    whole(file, limit, stop).ok().flatten()
}
