//! System calls that have no safe face.
#![allow(unsafe_code, reason = "fork and signal handlers have no safe face")]

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::PipeFlags;
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

/// The end of the pipe that the handler writes to.
static CHILD_PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn child_changed(_signal: libc::c_int) {
    // SAFETY: `write` may be called in a handler, one byte is valid, and the pipe is never closed.
    // The interrupted code may look at `errno`, which is kept.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(CHILD_PIPE.load(Ordering::Relaxed), [0_u8].as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// A descriptor that can be read when a child has ended.
///
/// A handler and a pipe, because a signal descriptor wants the signal blocked, and children would
/// inherit that: a shell that waits for SIGCHLD would wait for ever.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (signals, end) = rustix::pipe::pipe_with(flags)?;
    CHILD_PIPE.store(end.into_raw_fd(), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = child_changed;
    // SAFETY: a zeroed `sigaction` has an empty mask, and the handler does only what handlers may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
        if libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(signals)
}

/// The descriptor to which a byte is written when a child has ended, for others who see ends of
/// processes that concern this one.
pub(super) fn child_pipe() -> RawFd {
    CHILD_PIPE.load(Ordering::Relaxed)
}

/// Leaves the ends of children to other threads. The kernel tells the thread that started a child
/// first, which would be woken only to pass it on.
pub(crate) fn leave_child_signals_to_others() {
    // SAFETY: an empty set of signals is one of all zeros, and both sets are ours.
    unsafe {
        let mut ends: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ends);
        libc::sigaddset(&raw mut ends, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ends, std::ptr::null_mut());
    }
}
