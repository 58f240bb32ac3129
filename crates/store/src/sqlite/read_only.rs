//! A store that can only be looked at: its disk is mounted read-only, or its files are not ours to
//! write.
//!
//! SQLite needs its write-ahead log and the index of that beside the database, or the right to make
//! them. Without a log the file is all there is, and is opened as one that nobody changes. A log that
//! somebody left behind is part of the store: with its index SQLite reads it where it lies; without,
//! both are copied to a temporary directory, where SQLite can make the index.

use std::fs;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::files::Files;
use crate::fsatomic::directory_of;
use crate::scratch::Scratch;
use crate::{Error, Result};

/// Whether neither the store nor anything beside it can be written.
pub(super) fn is_read_only(files: &Files) -> bool {
    let refused = |path: &Path| {
        matches!(access(path, Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
    };
    refused(&files.database) && refused(directory_of(&files.database))
}

/// What a write on such a store is answered with.
pub(super) fn refusal(files: &Files) -> Error {
    let detail = "it or its directory is read-only".to_owned();
    Error::Unreadable { path: files.database.clone(), detail }
}

/// The address by which SQLite opens a file that nobody changes and that has no log.
pub(super) fn unchanging(path: &Path) -> String {
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    let mut address = String::from("file:");
    for byte in bytes {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address.push_str("?immutable=1");
    address
}

/// A copy of a store with its log, in a directory that goes with it.
pub(super) struct Copy {
    /// The copied files.
    pub(super) files: Files,
    _directory: Scratch,
}

impl Copy {
    /// Copies the store if its log cannot be read where it lies.
    pub(super) fn if_needed(files: &Files) -> Result<Option<Self>> {
        if files.wal_bytes() == 0 || files.shm().exists() {
            return Ok(None);
        }
        let directory = Scratch::new("read-only")
            .map_err(|error| Error::file(&std::env::temp_dir(), &error))?;
        let files_there = Files::new(&directory.path().join("store.db"));
        let copy = Self { files: files_there, _directory: directory };
        let wanted =
            [(&files.database, copy.files.database.clone()), (&files.wal(), copy.files.wal())];
        for (from, to) in wanted {
            // Nobody has these files open here, and a process that has must be elsewhere: closing a
            // handle drops no lock.
            fs::copy(from, &to).map_err(|error| Error::file(&to, &error))?;
        }
        Ok(Some(copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_every_byte_of_a_path() {
        let address = unchanging(Path::new("/a b/st?ore#%.db"));
        assert_eq!(address, "file:/a%20b/st%3Fore%23%25.db?immutable=1");
    }
}
