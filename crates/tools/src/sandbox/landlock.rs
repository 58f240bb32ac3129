//! Landlock's system calls, and what each version of it can do.
#![allow(unsafe_code, reason = "landlock and prctl have no safe face here")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
/// Removing and making, of every kind but devices, which nobody makes in a sandbox.
const CHANGES: u64 =
    REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
/// Moving between directories. Where it is not known, that is never allowed.
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// What can be allowed for a file; the rest is about directories.
const OF_FILES: u64 = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const BIND_TCP: u64 = 1;
const CONNECT_TCP: u64 = 1 << 1;

const SCOPE_ABSTRACT_SOCKET: u64 = 1;
const SCOPE_SIGNAL: u64 = 1 << 1;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: i32 = 1;

/// What a version of landlock can do; 0 stands for a kernel without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Abi(pub(super) i32);

impl Abi {
    /// The kernel's.
    pub(super) fn of_kernel() -> Self {
        static ABI: OnceLock<Abi> = OnceLock::new();
        *ABI.get_or_init(|| {
            // SAFETY: with this flag the call takes neither a pointer nor a size.
            let version = unsafe {
                libc::syscall(
                    libc::SYS_landlock_create_ruleset,
                    std::ptr::null::<u8>(),
                    0_usize,
                    CREATE_RULESET_VERSION,
                )
            };
            Self(i32::try_from(version).unwrap_or(0).max(0))
        })
    }

    /// All rights to write that it knows.
    pub(super) fn writing(self) -> u64 {
        WRITE_FILE | CHANGES | MAKE_CHAR | MAKE_BLOCK | self.refer() | self.later_writing()
    }

    fn later_writing(self) -> u64 {
        (if self.0 >= 3 { TRUNCATE } else { 0 }) | (if self.0 >= 5 { IOCTL_DEV } else { 0 })
    }

    /// Moving between directories.
    pub(super) fn refer(self) -> u64 {
        if self.0 >= 2 { REFER } else { 0 }
    }

    /// What is allowed where one may write.
    pub(super) fn writable(self) -> u64 {
        self.writing() & !(MAKE_CHAR | MAKE_BLOCK)
    }

    /// The right to read a file.
    pub(super) fn reading(self) -> u64 {
        READ_FILE
    }

    /// Connections by TCP, where it knows of them.
    pub(super) fn tcp(self) -> u64 {
        if self.0 >= 4 { BIND_TCP | CONNECT_TCP } else { 0 }
    }

    /// What reaches other processes, where it knows of that.
    pub(super) fn scopes(self) -> u64 {
        if self.0 >= 6 { SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL } else { 0 }
    }
}

/// Rights that are taken away, and where they are not.
pub(super) struct Ruleset(OwnedFd);

#[repr(C)]
struct Attributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

impl Ruleset {
    /// Takes rights on files, rights on the network and ways to other processes away.
    pub(super) fn new(files: u64, network: u64, scoped: u64) -> io::Result<Self> {
        let attributes =
            Attributes { handled_access_fs: files, handled_access_net: network, scoped };
        // A kernel that knows fewer fields takes the rest if it is zero.
        // SAFETY: the pointer and the size are those of a whole structure.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                size_of::<Attributes>(),
                0_u32,
            )
        };
        let descriptor = i32::try_from(descriptor).unwrap_or(-1);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made it, for us alone; it is closed on exec.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Leaves rights for a path and all below it. A path that is not there, or no longer, has none.
    pub(super) fn allow(&self, path: &Path, rights: u64) -> io::Result<()> {
        let Ok(place) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            return Ok(());
        };
        self.allow_place(&place, rights)
    }

    /// The same for a path below a directory that is open.
    pub(super) fn allow_below(
        &self,
        directory: &OwnedFd,
        path: &Path,
        rights: u64,
    ) -> io::Result<()> {
        match openat(directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => self.allow_place(&place, rights),
            Err(_) => Ok(()),
        }
    }

    /// Leaves rights for a place that is open, and all below it.
    pub(super) fn allow_place(&self, place: &OwnedFd, rights: u64) -> io::Result<()> {
        let directory = FileType::from_raw_mode(fstat(place)?.st_mode) == FileType::Directory;
        let rights = if directory { rights } else { rights & OF_FILES };
        if rights == 0 {
            return Ok(());
        }
        let rule = PathBeneath { allowed_access: rights, parent_fd: place.as_raw_fd() };
        // SAFETY: both descriptors are open, and the rule is a whole structure.
        let done = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.0.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0_u32,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes the rights away from this thread and from all that it will start, for ever.
    pub(super) fn restrict_self(&self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        // SAFETY: the descriptor is open.
        let done =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.as_raw_fd(), 0_u32) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
