//! The operation log: what was done, in the order in which it was done.
//!
//! An entry is `tag u8, inode u64, number u64, path, target, data`, the last three each a `u32`
//! length and bytes; integers are little-endian. Paths are relative to `FAULTSHIM_UNDER`, or
//! absolute where a rename or link crosses its border. `mainstay-testkit::oplog` reads it.

use std::mem::zeroed;
use std::sync::{Mutex, MutexGuard};

use libc::{c_char, c_int, stat};

use crate::errno;

/// What an entry tells. The numbers are the file format.
#[derive(Clone, Copy)]
pub(crate) enum Tag {
    /// `number` is the offset.
    Write = 1,
    /// `number` is the new size.
    Truncate = 2,
    SyncFile = 3,
    SyncDirectory = 4,
    /// `number` is the mode.
    Create = 5,
    /// `number` is the mode.
    MakeDirectory = 6,
    Rename = 7,
    Link = 8,
    Unlink = 9,
    RemoveDirectory = 10,
    Acknowledge = 11,
}

/// One entry, before it is encoded.
pub(crate) struct Entry<'a> {
    pub(crate) tag: Tag,
    pub(crate) inode: u64,
    pub(crate) number: u64,
    pub(crate) path: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) data: &'a [u8],
}

impl<'a> Entry<'a> {
    /// An entry about one path; the other parts are empty.
    pub(crate) fn new(tag: Tag, path: &'a [u8]) -> Self {
        Self { tag, inode: 0, number: 0, path, target: &[], data: &[] }
    }
}

/// The right to do a call and log it, with no other thread or process in between.
pub(crate) struct Turn {
    log: c_int,
    _threads: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for the turn. Never taken around calls that may block on another process's lock.
    pub(crate) fn take(log: c_int) -> Self {
        static THREADS: Mutex<()> = Mutex::new(());
        let threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: a raw call on our own descriptor; `flock` itself is interposed.
        unsafe { libc::syscall(libc::SYS_flock, log, libc::LOCK_EX) };
        Self { log, _threads: threads }
    }

    /// Appends an entry with one write, and leaves `errno` alone.
    pub(crate) fn append(&self, entry: &Entry<'_>) {
        let kept = errno::get();
        let mut bytes =
            Vec::with_capacity(29 + entry.path.len() + entry.target.len() + entry.data.len());
        bytes.push(entry.tag as u8);
        bytes.extend(entry.inode.to_le_bytes());
        bytes.extend(entry.number.to_le_bytes());
        for part in [entry.path, entry.target, entry.data] {
            bytes.extend((part.len() as u32).to_le_bytes());
            bytes.extend(part);
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            // SAFETY: the pointer and length are those of a live slice.
            let written =
                unsafe { libc::syscall(libc::SYS_write, self.log, rest.as_ptr(), rest.len()) };
            match usize::try_from(written) {
                Ok(count) => rest = &rest[count..],
                // A log with a gap would replay to a state that never was.
                Err(_) if errno::get() != libc::EINTR => std::process::abort(),
                Err(_) => {}
            }
        }
        errno::set(kept);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let kept = errno::get();
        // SAFETY: as in `take`.
        unsafe { libc::syscall(libc::SYS_flock, self.log, libc::LOCK_UN) };
        errno::set(kept);
    }
}

/// What `fstat` says of a descriptor; zeros where it fails.
pub(crate) fn status_of_descriptor(descriptor: c_int) -> stat {
    // SAFETY: `stat` is plain data, for which zeros are a value.
    let mut status: stat = unsafe { zeroed() };
    // SAFETY: the pointer is to a live `stat`.
    unsafe { libc::fstat(descriptor, &raw mut status) };
    status
}

/// What `fstatat` says of a path itself, links not followed; zeros where it fails.
pub(crate) fn status_of_path(directory: c_int, path: *const c_char) -> stat {
    // SAFETY: as in `status_of_descriptor`.
    let mut status: stat = unsafe { zeroed() };
    // SAFETY: the path came from the program's own call, which has just succeeded with it.
    unsafe { libc::fstatat(directory, path, &raw mut status, libc::AT_SYMLINK_NOFOLLOW) };
    status
}
