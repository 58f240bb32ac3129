//! A `/dev` of their own for the commands of a keeper.
//!
//! It has what every program expects and no other device: no disk, no screen and no terminal of the
//! user. Terminals are those that commands make themselves, and what they share in `/dev/shm` and
//! `/dev/mqueue` they share among themselves.
#![allow(unsafe_code, reason = "mount, mkdir and symlink in a new process have no safe face here")]

use std::ffi::{CStr, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use super::mounts;

/// The devices that it has of the machine's.
const TAKEN: [&CStr; 6] =
    [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom", c"/dev/tty"];
const LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];
const ROOT: &CStr = c"/dev";
/// The names of the user's keys, which are not of a process either.
const EMPTY: [&CStr; 2] = [c"/proc/keys", c"/proc/key-users"];

/// Covers `/dev` in the mount namespace of this process. Returns `false`, and leaves it as it was, where
/// that cannot be done. It allocates nothing: the process was made by one with other threads.
pub(super) fn cover() -> bool {
    let mut taken: [Option<OwnedFd>; TAKEN.len()] = [const { None }; TAKEN.len()];
    for (tree, path) in taken.iter_mut().zip(TAKEN) {
        let place = mounts::open_place(path);
        *tree = place.and_then(|place| mounts::copy(place.as_raw_fd())).ok();
    }
    let (outside, alone) = (libc::MS_NOSUID, libc::MS_NODEV);
    if taken.iter().any(Option::is_none) || !mount(c"tmpfs", ROOT, outside | alone, c"mode=755") {
        return false;
    }
    if fill(&taken) {
        return true;
    }
    // SAFETY: the text is whole.
    unsafe { libc::umount2(ROOT.as_ptr(), libc::MNT_DETACH) };
    false
}

fn fill(taken: &[Option<OwnedFd>]) -> bool {
    let quiet = libc::MS_NOSUID | libc::MS_NOEXEC;
    let devices = taken.iter().flatten().zip(TAKEN).all(|(tree, path)| put(tree, path));
    // SAFETY: the texts are whole.
    let links =
        LINKS.iter().all(|(to, path)| unsafe { libc::symlink(to.as_ptr(), path.as_ptr()) == 0 });
    if !devices || !links || !directory(c"/dev/pts", 0o755) || !directory(c"/dev/shm", 0o1777) {
        return false;
    }
    // A kernel without message queues has nothing to keep apart.
    let _ = directory(c"/dev/mqueue", 0o1777)
        && mount(c"mqueue", c"/dev/mqueue", quiet | libc::MS_NODEV, c"");
    // One that is not there needs no cover.
    EMPTY.iter().for_each(|path| drop(cover_with_nothing(path)));
    mount(c"devpts", c"/dev/pts", quiet, c"newinstance,ptmxmode=0666,mode=620")
}

fn cover_with_nothing(path: &CStr) -> io::Result<()> {
    let place = mounts::open_place(path)?;
    let nothing = mounts::copy(mounts::open_place(c"/dev/null")?.as_raw_fd())?;
    mounts::mount_at(&nothing, place.as_raw_fd())
}

/// Puts a device at a path.
fn put(tree: &OwnedFd, path: &CStr) -> bool {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: the text is whole; the descriptor is ours, and closed.
    unsafe {
        let made = libc::open(path.as_ptr(), flags, 0o444);
        if made < 0 {
            return false;
        }
        let is_put = mounts::mount_at(tree, made).is_ok();
        libc::close(made);
        is_put
    }
}

fn directory(path: &CStr, mode: libc::mode_t) -> bool {
    // What the process would take from the mode is given back.
    // SAFETY: the text is whole.
    unsafe { libc::mkdir(path.as_ptr(), mode) == 0 && libc::chmod(path.as_ptr(), mode) == 0 }
}

fn mount(kind: &CStr, path: &CStr, flags: libc::c_ulong, options: &CStr) -> bool {
    let options = if options.is_empty() { ptr::null() } else { options.as_ptr().cast::<c_void>() };
    // SAFETY: the texts are whole.
    unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, options) == 0 }
}
