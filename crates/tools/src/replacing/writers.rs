//! Whether somebody else has a file open for writing.
//!
//! A program that saves in place opens the file first and writes then. If its file is taken away
//! between, what it writes goes with it. The kernel knows: it grants a lease on a file only while
//! nobody has it open for writing, and tells when somebody opens it so.
#![allow(unsafe_code, reason = "leases have no safe face")]

use std::fs::File;

/// A file that nobody had open for writing when it was looked at, or of which nobody can tell.
pub(crate) struct Quiet {
    file: File,
    leased: bool,
}

impl Quiet {
    /// Looks at a file that is open for reading alone. Gives it back if somebody has it open for
    /// writing. Whoever opens it so from now on waits until this is dropped.
    pub(crate) fn watch(file: File) -> Result<Self, File> {
        match take(&file) {
            Some(leased) => Ok(Self { file, leased }),
            None => Err(file),
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether the kernel watches it.
    pub(super) fn is_leased(&self) -> bool {
        self.leased
    }

    /// Whether nobody tried to open it for writing since.
    pub(crate) fn is_still(&self) -> bool {
        !self.leased || is_held(&self.file)
    }

    /// Lets those who wait open it.
    pub(super) fn release(self) -> File {
        if self.leased {
            give(&self.file);
        }
        self.file
    }
}

/// Takes a lease. Returns `Some(false)` if there are none for this file: it is somebody else's, or
/// its file system has none.
#[cfg(target_os = "linux")]
fn take(file: &File) -> Option<bool> {
    use std::os::fd::AsRawFd;
    /// Says which signal is sent; `libc` has no name for it.
    const F_SETSIG: libc::c_int = 10;
    // Whoever has a lease is sent a signal when it ends, by default one that kills; this one is ignored.
    // SAFETY: commands on a descriptor that is open, which take numbers.
    let taken = unsafe {
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0
    };
    if taken {
        return Some(true);
    }
    let busy = std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
    (!busy).then_some(false)
}

#[cfg(target_os = "linux")]
fn is_held(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: as above.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
}

#[cfg(target_os = "linux")]
fn give(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: as above.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
}

#[cfg(not(target_os = "linux"))]
fn take(_file: &File) -> Option<bool> {
    Some(false)
}

#[cfg(not(target_os = "linux"))]
fn is_held(_file: &File) -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn give(_file: &File) {}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn whoever_has_a_file_open_for_writing_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "one").unwrap();
        let file = File::open(&path).unwrap();
        let mut writing = OpenOptions::new();
        writing.write(true);
        let writer = writing.open(&path).unwrap();
        let file = Quiet::watch(file).err().unwrap();
        drop(writer);
        let quiet = Quiet::watch(file).ok().unwrap();
        assert!(quiet.is_still());
        let _reader = File::open(&path).unwrap();
        assert!(quiet.is_still());
        // One that would wait for us is told to come again; we notice it all the same.
        assert!(writing.custom_flags(libc::O_NONBLOCK).open(&path).is_err());
        assert!(!quiet.is_still());
        let _file = quiet.release();
        assert!(writing.open(&path).is_ok());
    }
}
