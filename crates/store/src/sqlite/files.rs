//! The files of a store: the database, SQLite's own beside it, and ours in the side directory.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::fsatomic::resolved;
use crate::{Error, Result};

/// Where everything of one SQLite store lies.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The database. Only SQLite opens this file, its `-wal` and its `-shm`.
    pub(crate) database: PathBuf,
    /// Device and inode of the database when the store was opened.
    claimed: Option<(u64, u64)>,
}

/// What is at the place of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Nothing, and nothing that would be lost by creating a store.
    Absent,
    /// A file with bytes in it.
    Present,
}

impl Files {
    /// The files of the store at `database`. A link is followed first, as SQLite does: whoever comes
    /// through it must meet the same locks.
    pub(crate) fn new(database: &Path) -> Self {
        let target = if database.exists() { resolved(database).ok() } else { None };
        Self { database: target.unwrap_or_else(|| database.to_owned()), claimed: None }
    }

    pub(crate) fn wal(&self) -> PathBuf {
        self.beside("-wal")
    }

    pub(crate) fn shm(&self) -> PathBuf {
        self.beside("-shm")
    }

    /// The directory of locks and sockets.
    pub(crate) fn side(&self) -> PathBuf {
        self.beside(".side")
    }

    pub(crate) fn side_file(&self, name: &str) -> PathBuf {
        self.side().join(name)
    }

    /// Says, while it exists, that a restore is half done, and where the old data went.
    pub(crate) fn restoring(&self) -> PathBuf {
        self.beside(".restoring")
    }

    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(&self.database);
        name.push(suffix);
        name.into()
    }

    /// Tells the kinds of absence apart. Reads no byte of the database.
    pub(crate) fn look(&self) -> Result<Presence> {
        let path = &self.database;
        let unreadable =
            |detail: &str| Error::Unreadable { path: path.clone(), detail: detail.to_owned() };
        match fs::read(self.restoring()) {
            Ok(aside) => {
                let aside = OsString::from_vec(aside).into();
                return Err(Error::RestoreInterrupted { path: path.clone(), aside });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A directory of that name or above it is told below, in better words.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            // A marker that cannot be read is still a marker.
            Err(error) => return Err(Error::file(&self.restoring(), &error)),
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(unreadable("it is a directory")),
            Ok(found) if !found.is_file() => Err(unreadable("it is not a regular file")),
            Ok(found) if found.len() == 0 => Err(Error::Empty { path: path.clone() }),
            Ok(_) => Ok(Presence::Present),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    return Err(unreadable("it is a broken symbolic link"));
                }
                if self.wal().exists() {
                    return Err(Error::Damaged {
                        place: path.display().to_string(),
                        detail: "the database is gone but its write-ahead log is still there"
                            .to_owned(),
                    });
                }
                Ok(Presence::Absent)
            }
            Err(error) => Err(unreadable(&error.to_string())),
        }
    }

    /// Device and inode of the database, to notice when it is replaced.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.database).ok().map(|found| (found.dev(), found.ino()))
    }

    /// Takes note of which file this is, from now on.
    pub(crate) fn claimed(self) -> Self {
        Self { claimed: self.identity(), ..self }
    }

    /// Refuses when another file is in the place of the one that was opened.
    pub(crate) fn refuse_replaced(&self) -> Result<()> {
        if self.claimed.is_none() || self.claimed == self.identity() {
            return Ok(());
        }
        Err(Error::Replaced { path: self.database.clone() })
    }

    /// The size of the write-ahead log's file.
    pub(crate) fn wal_bytes(&self) -> u64 {
        fs::metadata(self.wal()).map_or(0, |found| found.len())
    }
}
