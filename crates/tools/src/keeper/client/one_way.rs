//! Waiting for one way of a socket.
#![allow(unsafe_code, reason = "waiting for one way only has no safe face")]

use std::io;
use std::os::unix::net::UnixStream;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A socket that wakes whoever waits for one way of it only.
pub(super) fn one_way(stream: UnixStream, way: Interest) -> io::Result<AsyncFd<UnixStream>> {
    // SAFETY: a stream has the same descriptor from its beginning to its end, and keeps it open.
    unsafe { AsyncFd::register_with_interest(stream, way) }.map_err(Into::into)
}
