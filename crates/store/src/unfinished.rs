//! A record of files that are being made beside others and may be as large as a store: whoever comes
//! after a process that was killed meanwhile finds them by it and removes them.
//!
//! A record is there before its file and goes after it. As long as its maker lives it is
//! [occupied](crate::occupancy).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::clock::wall_millis;
use crate::fsatomic::{
    PRIVATE_FILE, create_new, private_directory, sync_directory_of, temporary_beside,
};
use crate::occupancy::{occupy, vacated};
use crate::sqlite::discard;
use crate::{Error, Id, Result};

/// How long a file on a disk that is not there is waited for.
const KEPT_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How often another name is tried where whoever clears up was faster.
const NAMES: u32 = 100;

/// A file under a temporary name that is being made. Dropped, it is gone unless it was given another
/// name, and so is its record.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: PathBuf,
    record: Option<(PathBuf, File)>,
}

impl Unfinished {
    /// A new name beside `path`, written down in `records` if there is such a directory.
    pub(crate) fn beside(path: &Path, purpose: &str, records: Option<&Path>) -> Result<Self> {
        let file = temporary_beside(path, purpose).map_err(|error| Error::file(path, &error))?;
        let record = match records.map(|records| (records, recorded(records, &file))) {
            Some((_, Ok(record))) => Some(record),
            // From a home that can only be looked at, a backup is still to be had.
            Some((_, Err(error))) if is_read_only(&error) => None,
            Some((records, Err(error))) => return Err(Error::file(records, &error)),
            None => None,
        };
        Ok(Self { file, record })
    }

    /// Its name so far.
    pub(crate) fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        discard(&self.file);
        if let Some((record, _)) = &self.record {
            forget(record);
        }
    }
}

fn recorded(records: &Path, file: &Path) -> io::Result<(PathBuf, File)> {
    write_down(records, &std::path::absolute(file)?)
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Makes a record, durably: what it is about may outlive the machine.
fn write_down(records: &Path, file: &Path) -> io::Result<(PathBuf, File)> {
    for _ in 0..NAMES {
        let record = records.join(Id::new().to_string());
        let made = private_directory(records).and_then(|()| create_new(&record, PRIVATE_FILE));
        let occupied = made.and_then(|made| Ok((made, occupy(&record)?)));
        match occupied {
            Ok((mut made, occupied)) => {
                // A record without the last byte is of a file that was not begun.
                made.write_all(&[file.as_os_str().as_bytes(), b"\0"].concat())?;
                made.sync_all()?;
                sync_directory_of(&record)?;
                return Ok((record, occupied));
            }
            // Whoever clears up took the record or the directory.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("a record is removed as soon as it is made"))
}

/// Removes a record, and the directory if it was the last.
fn forget(record: &Path) {
    let _ = fs::remove_file(record);
    if let Some(records) = record.parent() {
        let _ = fs::remove_dir(records);
    }
}

/// Removes every file that is written down in `records` and whose maker is gone.
pub fn clear_up(records: &Path) {
    for entry in fs::read_dir(records).into_iter().flatten().flatten() {
        let record = entry.path();
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<Id>().ok()) else {
            continue;
        };
        let Some(_taken) = vacated(&record) else { continue };
        let Ok(content) = fs::read(&record) else { continue };
        if let Some(file) =
            content.strip_suffix(b"\0").map(|path| Path::new(OsStr::from_bytes(path)))
        {
            // The disk may be another time.
            let is_away = file.parent().is_none_or(|directory| !directory.is_dir());
            if is_away && wall_millis() - id.created_millis() < KEPT_MILLIS {
                continue;
            }
            if is_temporary(file) {
                discard(file);
            }
        }
        forget(&record);
    }
    // Its maker may have come no further.
    let _ = fs::remove_dir(records);
}

/// Whether a name is one that this program gives for a time.
fn is_temporary(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let id = name.strip_suffix(".tmp").and_then(|rest| rest.rsplit_once('-')).map(|(_, id)| id);
    name.starts_with('.') && id.is_some_and(|id| id.parse::<Id>().is_ok())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// As if the process had been killed.
    fn killed(unfinished: Unfinished) -> PathBuf {
        let mut unfinished = std::mem::ManuallyDrop::new(unfinished);
        unfinished.record = None;
        unfinished.file.clone()
    }

    #[test]
    fn what_was_left_goes_and_what_is_being_made_stays() {
        let directory = tempfile::tempdir().unwrap();
        let records = directory.path().join("records");
        let target = directory.path().join("backup");
        let make = || Unfinished::beside(&target, "backup", Some(&records)).unwrap();
        let (left, at_work) = (killed(make()), make());
        for file in [&left, &at_work.path().to_owned()] {
            for ending in ["", "-wal", "-shm", "-journal"] {
                let mut name = file.as_os_str().to_owned();
                name.push(ending);
                fs::write(name, "x").unwrap();
            }
        }
        clear_up(&records);
        assert!(!left.exists() && at_work.path().exists());
        assert_eq!((names(directory.path()).len(), names(&records).len()), (5, 1));
        drop(at_work);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn a_record_that_was_cut_off_or_is_of_something_else_removes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let records = directory.path().join("records");
        let precious = directory.path().join("precious");
        fs::write(&precious, "x").unwrap();
        fs::create_dir(&records).unwrap();
        for content in ["", "/", precious.to_str().unwrap(), &format!("{}\0", precious.display())] {
            fs::write(records.join(Id::new().to_string()), content).unwrap();
        }
        fs::write(records.join("notes"), "mine").unwrap();
        let away = directory.path().join("away/.a.backup-00000000000000000000.tmp");
        let away = format!("{}\0", away.display());
        fs::write(records.join(Id::new().to_string()), away).unwrap();
        clear_up(&records);
        assert!(precious.exists());
        assert_eq!(names(&records).len(), 2, "notes, and one whose disk is away");
    }
}
