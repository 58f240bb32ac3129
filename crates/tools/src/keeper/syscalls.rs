//! System calls that have no safe face.
#![allow(unsafe_code, reason = "fork and signal descriptors have no safe face")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Which side of a fork this is.
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Splits the process in two. Only for a process with a single thread.
pub(super) fn fork() -> io::Result<Side> {
    // SAFETY: the keeper's process has one thread, so the child finds every lock free.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => Pid::from_raw(pid).map(Side::Parent).ok_or_else(io::Error::last_os_error),
    }
}

/// A descriptor that can be read when a child changed its state.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, and the others read it only after that.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        if libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}
