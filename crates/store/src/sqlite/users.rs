//! Who has the store open: every process holds a shared lock, and what replaces the store as a
//! whole wants it alone.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::time::Duration;

use super::files::Files;
use crate::clock::Deadline;
use crate::fsatomic::{open_side_file, private_directory};
use crate::{Error, Result};

/// How long somebody who has the store alone, or not alone, is waited for.
const MOMENT: Duration = Duration::from_millis(300);

/// A place among the users, until it is dropped.
#[derive(Debug)]
pub(crate) struct Users {
    _lock: File,
}

impl Users {
    /// Joins the users.
    pub(crate) fn join(files: &Files) -> Result<Self> {
        Self::take(files, File::try_lock_shared)
    }

    /// Becomes the only user, or says who else there is.
    pub(crate) fn alone(files: &Files) -> Result<Self> {
        Self::take(files, File::try_lock)
    }

    fn take(files: &Files, lock: fn(&File) -> Result<(), TryLockError>) -> Result<Self> {
        let path = file(files);
        let side = files.side();
        private_directory(&side).map_err(|error| Error::file(&side, &error))?;
        let handle = open_side_file(&path).map_err(|error| Error::file(&path, &error))?;
        // A moment's patience: a process that is just being started has a copy of its parent's
        // handles until its own program begins.
        let deadline = Deadline::after(MOMENT);
        loop {
            match lock(&handle) {
                Ok(()) => return Ok(Self { _lock: handle }),
                Err(TryLockError::WouldBlock) if !deadline.passed() => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::InUse {
                        what: format!("the store {}", files.database.display()),
                        holder: names(&somebody(files)),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(Error::file(&path, &error)),
            }
        }
    }
}

/// The others, when there must be some: the kernel's list of locks can miss one that changes while
/// it is being read.
fn somebody(files: &Files) -> Vec<u32> {
    (0..10).map(|_| others(files)).find(|pids| !pids.is_empty()).unwrap_or_default()
}

/// The processes, other than this one, that have the store open.
pub(crate) fn others(files: &Files) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::metadata(file(files)) else { return Vec::new() };
    let Ok(locks) = fs::read_to_string("/proc/locks") else { return Vec::new() };
    let inode = format!(":{}", found.ino());
    let mut pids: Vec<u32> = locks
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(4);
            let pid = fields.next()?.parse().ok()?;
            fields.next()?.ends_with(&inode).then_some(pid)
        })
        .filter(|pid| *pid != std::process::id())
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn names(pids: &[u32]) -> String {
    match pids {
        [] => "another process".to_owned(),
        [pid] => format!("process {pid}"),
        pids => {
            let list: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("processes {}", list.join(", "))
        }
    }
}

fn file(files: &Files) -> PathBuf {
    files.side_file("users")
}
