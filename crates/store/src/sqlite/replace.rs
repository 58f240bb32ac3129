//! Puts another database in the place of a store, and the old one aside.
//!
//! While the files are being moved a marker says so; a store with a marker is not opened and not
//! created, so a restore that is killed half-way never looks like an empty store.

use std::fs;
use std::path::{Path, PathBuf};

use super::backup::pour;
use super::connection::{Link, Role};
use super::create::{discard, remove_leftovers};
use super::files::{Files, Presence};
use super::users::Users;
use crate::copy::{Copied, Progress};
use crate::fsatomic::{PRIVATE_FILE, remove, rename, temporary_beside, write};
use crate::location::Journal;
use crate::{Error, Result};

/// Puts a copy of the database at `source` at `path`. What was there goes to `aside`, unless there
/// was nothing. Answers where the old data is.
pub(crate) fn replace(
    source: &Path,
    path: &Path,
    journal: Journal,
    aside: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Copied, Option<PathBuf>)> {
    let files = Files::new(path);
    let earlier = match files.look() {
        Ok(Presence::Absent) => None,
        Ok(Presence::Present) | Err(Error::Empty { .. } | Error::Damaged { .. }) => {
            Some(aside.to_owned())
        }
        // Goes on where an interrupted one stopped, with the name it had chosen.
        Err(Error::RestoreInterrupted { aside: chosen, .. }) if !chosen.exists() => Some(chosen),
        Err(Error::RestoreInterrupted { .. }) => Some(aside.to_owned()),
        Err(error) => return Err(error),
    };
    super::refuse_network(path, journal)?;
    let _alone = Users::alone(&files)?;
    remove_leftovers(path);
    let temporary = temporary_beside(path).map_err(|error| Error::file(path, &error))?;
    let swapped = pour(source, &temporary, journal, progress).and_then(|copied| {
        swap(&files, &temporary, earlier.as_deref())?;
        Ok((copied, earlier))
    });
    if swapped.is_err() {
        discard(&temporary);
    }
    swapped
}

fn swap(files: &Files, new: &Path, aside: Option<&Path>) -> Result<()> {
    let path = &files.database;
    let failed = |error: std::io::Error| Error::file(path, &error);
    let Some(aside) = aside else {
        return rename(new, path).map_err(failed);
    };
    fold_in(files);
    let marker = files.restoring();
    let note = aside.as_os_str().as_encoded_bytes();
    write(&marker, note, PRIVATE_FILE).map_err(failed)?;
    let moved = Files::new(aside);
    for (from, to) in [
        (path, &moved.database),
        (&files.wal(), &moved.wal()),
        (&files.shm(), &moved.shm()),
        (&files.beside("-journal"), &moved.beside("-journal")),
    ] {
        if fs::symlink_metadata(from).is_ok() {
            rename(from, to).map_err(failed)?;
        }
    }
    rename(new, path).map_err(failed)?;
    remove(&marker).map_err(failed)
}

/// Folds the old write-ahead log into the old file where that is possible, so that one file goes
/// aside instead of three.
fn fold_in(files: &Files) {
    if let Ok(link) = Link::open(&files.database, Role::Writer) {
        // Where it fails, the log is moved along.
        let _ = link.integer("PRAGMA wal_checkpoint(TRUNCATE)");
    }
}
