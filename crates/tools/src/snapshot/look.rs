//! What is at one path, with the bytes that it takes to put it back.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mainstay_store::BlobHash;

use super::escape::escaped_bytes;
use super::scan::Limits;
use super::state::{Omission, State};
use crate::Workplace;
use crate::beneath::{Entry, LinkMet, Status, first_link, target};
use crate::files::{Bounds, Closed, Stop, open_in, whole};

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
    /// The link that is in the way, so that nothing is there.
    pub behind: Option<PathBuf>,
}

/// Whether no tool opens what a path names, which is real. Looks at the disk.
pub fn is_closed(workplace: &Workplace, path: &Path) -> bool {
    Bounds::of(workplace).is_closed(path)
}

/// Looks at a path, which was real when it was written down. A link in it is not followed, wherever it
/// is: below one that came since, nothing is there.
pub fn look(workplace: &Workplace, path: &Path, limits: &Limits) -> Looked {
    let bounds = Bounds::of(workplace);
    let found = Entry::of(path).and_then(|entry| Ok((entry.status()?, entry)));
    let (found, entry) = match found {
        Ok(found) => found,
        Err(error) if LinkMet::is(&error) => {
            let behind = Some(first_link(path).unwrap_or_else(|| path.to_owned()));
            return Looked { behind, ..Looked::of(State::Absent) };
        }
        Err(error) => return Looked::of(missing(&error)),
    };
    if entry.name == ".git" {
        return Looked::of(State::Left(Omission::Git));
    }
    if bounds.is_closed(path) {
        return Looked::of(State::Left(Omission::Closed));
    }
    let directory = entry.directory.as_fd();
    at(&bounds, directory, &entry.name, &found, limits, &Stop::default())
}

/// What has a name in a directory, looks like this and may be opened.
pub(super) fn at(
    bounds: &Bounds,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    found: &Status,
    limits: &Limits,
    stop: &Stop,
) -> Looked {
    if found.is_directory() {
        return Looked::of(State::Directory { mode: found.permissions() });
    }
    if found.is_link() {
        return Looked::of(match target(directory, name) {
            Ok(target) => State::Link { target: escaped_bytes(target.as_os_str().as_bytes()) },
            Err(error) => missing(&error),
        });
    }
    if !found.is_file() {
        return Looked::of(State::Left(Omission::Special));
    }
    file(bounds, directory, name, limits, stop)
}

fn file(
    bounds: &Bounds,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    limits: &Limits,
    stop: &Stop,
) -> Looked {
    let (file, found) = match open_in(bounds, directory, name) {
        Ok(opened) => opened,
        Err(Closed::Missing) => return Looked::of(State::Absent),
        Err(Closed::Directory | Closed::Elsewhere | Closed::Failed(_)) => {
            return Looked::of(State::Left(Omission::Unreadable));
        }
        Err(Closed::Special) => return Looked::of(State::Left(Omission::Special)),
        Err(Closed::Forbidden) => return Looked::of(State::Left(Omission::Closed)),
    };
    let found = Status::from(&found);
    if found.size > limits.file {
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
    let (mode, objects_named) = (found.permissions(), names.join("+"));
    let state = State::File { mode, objects: objects_named, size: content.len() as u64 };
    Looked { state, objects, has_other_names: found.links > 1, behind: None }
}

impl Looked {
    fn of(state: State) -> Self {
        Self { state, objects: Vec::new(), has_other_names: false, behind: None }
    }
}

/// What an error says about a path: nothing is there, or nobody can tell.
pub(super) fn missing(error: &io::Error) -> State {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => State::Absent,
        _ => State::Left(Omission::Unreadable),
    }
}
