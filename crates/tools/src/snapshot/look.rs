//! What is at one path, with the bytes that it takes to put it back.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mainstay_store::BlobHash;

use super::escape::escaped_bytes;
use super::scan::Limits;
use super::state::{Omission, State};
use crate::Workplace;
use crate::files::{Bounds, Closed, Stop, open, whole};

/// The largest object; a longer file is several.
const PIECE: usize = 4 << 20;

/// What is at a path.
#[derive(Clone, Debug)]
pub struct Looked {
    /// What it is.
    pub state: State,
    /// Its bytes, by the hash of each piece.
    pub objects: Vec<(String, Vec<u8>)>,
    /// Whether the file has other names too.
    pub has_other_names: bool,
}

/// Where a tool that is told to change `path` would write: links are followed. Nothing for what no
/// tool opens. Looks at the disk.
pub fn real_target(workplace: &Workplace, path: &Path) -> Option<PathBuf> {
    Bounds::of(workplace).locate(path.to_str()?).ok()
}

/// Looks at a path; a link at its end is not followed.
pub fn look(workplace: &Workplace, path: &Path, limits: &Limits) -> Looked {
    let bounds = Bounds::of(workplace);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) => return Looked::of(missing(&error)),
    };
    if path.file_name().is_some_and(|name| name == ".git") {
        return Looked::of(State::Left(Omission::Git));
    }
    if bounds.is_closed(path) {
        return Looked::of(State::Left(Omission::Closed));
    }
    at(&bounds, path, &found, limits, &Stop::default())
}

/// What is at `path`, which looks like this and may be opened.
pub(super) fn at(
    bounds: &Bounds,
    path: &Path,
    found: &Metadata,
    limits: &Limits,
    stop: &Stop,
) -> Looked {
    let kind = found.file_type();
    if kind.is_dir() {
        return Looked::of(State::Directory { mode: mode(found) });
    }
    if kind.is_symlink() {
        return Looked::of(match fs::read_link(path) {
            Ok(target) => State::Link { target: escaped_bytes(target.as_os_str().as_bytes()) },
            Err(error) => missing(&error),
        });
    }
    if !kind.is_file() {
        return Looked::of(State::Left(Omission::Special));
    }
    file(bounds, path, limits, stop)
}

fn file(bounds: &Bounds, path: &Path, limits: &Limits, stop: &Stop) -> Looked {
    let (file, found) = match open(bounds, path) {
        Ok(opened) => opened,
        Err(Closed::Missing) => return Looked::of(State::Absent),
        Err(Closed::Directory | Closed::Failed(_)) => {
            return Looked::of(State::Left(Omission::Unreadable));
        }
        Err(Closed::Special) => return Looked::of(State::Left(Omission::Special)),
        Err(Closed::Forbidden) => return Looked::of(State::Left(Omission::Closed)),
    };
    if found.len() > limits.file {
        return Looked::of(State::Left(Omission::Large));
    }
    let content = match whole(file, limits.file, stop) {
        Ok(Some(content)) => content,
        Ok(None) => return Looked::of(State::Left(Omission::Large)),
        Err(_) => return Looked::of(State::Left(Omission::Unreadable)),
    };
    if limits.secret.as_ref().is_some_and(|is_secret| is_secret(&content)) {
        return Looked::of(State::Left(Omission::Secret));
    }
    let objects: Vec<_> = content
        .chunks(PIECE)
        .map(|piece| (BlobHash::of(piece).to_string(), piece.to_vec()))
        .collect();
    let names: Vec<&str> = objects.iter().map(|(hash, _)| hash.as_str()).collect();
    let state =
        State::File { mode: mode(&found), objects: names.join("+"), size: content.len() as u64 };
    let has_other_names = std::os::unix::fs::MetadataExt::nlink(&found) > 1;
    Looked { state, objects, has_other_names }
}

impl Looked {
    fn of(state: State) -> Self {
        Self { state, objects: Vec::new(), has_other_names: false }
    }
}

pub(super) fn mode(found: &Metadata) -> u32 {
    found.permissions().mode() & 0o7777
}

/// What an error says about a path: nothing is there, or nobody can tell.
pub(super) fn missing(error: &io::Error) -> State {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => State::Absent,
        _ => State::Left(Omission::Unreadable),
    }
}
