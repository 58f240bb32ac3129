//! The system calls about mounts that have no other face. None of them allocates.
#![allow(unsafe_code, reason = "open_tree, move_mount and mount_setattr have no safe face here")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 1;
const AT_RECURSIVE: libc::c_int = 0x8000;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Opens a place without looking into it. A link on the way, or in its place, is not followed: whoever
/// may write there could lead elsewhere by it.
pub(super) fn open_place(path: &CStr) -> io::Result<OwnedFd> {
    let (flags, links) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), links)?)
}

/// A copy of what is mounted at a place and below it, which is mounted nowhere yet.
pub(super) fn copy(place: RawFd) -> io::Result<OwnedFd> {
    let flags =
        OPEN_TREE_CLONE.cast_signed() | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | AT_RECURSIVE;
    // SAFETY: the text is whole, and the kernel makes the descriptor for us alone.
    unsafe {
        let tree = libc::syscall(libc::SYS_open_tree, place, c"".as_ptr(), flags);
        let tree = i32::try_from(tree).unwrap_or(-1);
        if tree < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(tree))
    }
}

/// Makes all that is mounted at a place and below it read-only.
pub(super) fn make_read_only(place: RawFd) -> io::Result<()> {
    let attributes =
        MountAttributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the text and the structure are whole.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place,
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Mounts a copy at a place.
pub(super) fn mount_at(tree: &OwnedFd, place: RawFd) -> io::Result<()> {
    // SAFETY: the texts are whole, and the descriptors are open.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            place,
            c"".as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
