//! Puts another database in the place of a store, and the old one aside.
//!
//! While the files are being moved a marker says so; a store with a marker is not opened and not
//! created, so a restore that is killed half-way never looks like an empty store.

use std::fs;
use std::path::{Path, PathBuf};

use super::backup::pour;
use super::connection::{Link, Role};
use super::create::remove_leftovers;
use super::files::{Files, Presence};
use super::users::Users;
use crate::copy::{Copied, Progress};
use crate::fsatomic::{PRIVATE_FILE, remove, rename, rename_into_vacancy, write};
use crate::location::Journal;
use crate::unfinished::Unfinished;
use crate::{Error, Result};

/// Puts a copy of the database at `source` at `path`. What was there goes to `aside`, or to a
/// name like it that is free; nothing ever replaces what was put aside. Answers where the data
/// from before the restore is, if there was any.
pub(crate) fn replace(
    source: &Path,
    path: &Path,
    journal: Journal,
    aside: &Path,
    records: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Copied, Option<PathBuf>)> {
    let files = Files::new(path);
    let path = files.database.as_path();
    // What cannot be replaced is refused before a side directory is made beside it.
    acceptable(files.look())?;
    super::refuse_network(path, journal)?;
    let _alone = Users::alone(&files)?;
    let found = files.look();
    acceptable(found.clone())?;
    remove_leftovers(path, "restore");
    let unfinished = Unfinished::beside(path, "restore", records)?;
    let temporary = unfinished.path();
    let swapped = pour(source, temporary, journal, progress).and_then(|copied| {
        let kept = match found {
            Ok(Presence::Absent) => {
                rename_into_vacancy(temporary, path).map_err(|error| Error::file(path, &error))?;
                None
            }
            // What the interrupted one had moved belongs together with what it had not.
            Err(Error::RestoreInterrupted { aside: begun, .. }) => {
                let done = begun.exists() && path.exists();
                let to = if done { vacant(aside) } else { begun.clone() };
                swap(&files, temporary, &to)?;
                Some(begun)
            }
            _ => {
                let to = vacant(aside);
                swap(&files, temporary, &to)?;
                Some(to)
            }
        };
        Ok((copied, kept))
    });
    swapped.map_err(|error| error.about(temporary, path))
}

/// Whether what was found at the store's place can be put aside.
fn acceptable(found: Result<Presence>) -> Result<()> {
    match found {
        Ok(_)
        | Err(Error::Empty { .. } | Error::Damaged { .. } | Error::RestoreInterrupted { .. }) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// `wanted`, or the first name like it that nothing has.
fn vacant(wanted: &Path) -> PathBuf {
    let names = (2..).map(|number| Files::new(wanted).beside(&format!("-{number}")));
    std::iter::once(wanted.to_owned())
        .chain(names)
        .find(|name| {
            let files = Files::new(name);
            [&files.database, &files.wal(), &files.shm(), &files.beside("-journal")]
                .iter()
                .all(|path| fs::symlink_metadata(path).is_err())
        })
        .unwrap_or_else(|| wanted.to_owned())
}

fn swap(files: &Files, new: &Path, aside: &Path) -> Result<()> {
    let path = &files.database;
    let failed = |error: std::io::Error| Error::file(path, &error);
    let marker = files.restoring();
    if fs::symlink_metadata(&marker).is_err() {
        fold_in(files);
        let note = aside.as_os_str().as_encoded_bytes();
        write(&marker, note, PRIVATE_FILE).map_err(failed)?;
    }
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
        let _ = link.checkpoint("TRUNCATE", std::time::Duration::ZERO);
    }
}
