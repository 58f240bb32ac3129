//! Gates that go from an agent to its keeper, each with the request that it belongs to.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The end of a gate that opens it. Dropped unopened, whoever waits at it gives up.
#[derive(Debug)]
pub(crate) struct Opener(OwnedFd);

impl Opener {
    /// A gate, and the end at which it is waited.
    pub(crate) fn new() -> Result<(Self, OwnedFd), Errno> {
        let (gate, opener) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok((Self(opener), gate))
    }

    /// Opens it. False where nobody waits any more.
    pub(crate) fn open(self) -> bool {
        // One byte into an empty pipe: it neither waits nor is it interrupted.
        rustix::io::write(&self.0, &[1]).is_ok()
    }
}

/// Sends bytes, or some of them, and a gate with the first. Nothing waits.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8], gate: &OwnedFd) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let gate = [gate.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&gate)) {
        return Err(Errno::NOBUFS);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(stream, &[IoSlice::new(bytes)], &mut control, flags)
}

/// Receives bytes, and the gates that come with them. An error where one of them was lost: they are known
/// by their order.
pub(crate) fn receive(
    stream: &UnixStream,
    buffer: &mut [u8],
    gates: &mut VecDeque<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            gates.extend(descriptors);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE);
    }
    Ok(received.bytes)
}
