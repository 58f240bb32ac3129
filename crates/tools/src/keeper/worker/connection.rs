//! One agent's connection to the worker.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;

use crate::keeper::shared::gates::receive;
use crate::keeper::shared::protocol::{Incoming, Surroundings};

/// An agent that does not read so much is cut off.
const MOST_WAITING: usize = 64 << 20;

/// A stranger that brings more gates is cut off.
const STRANGERS_GATES: usize = 64;

/// An agent.
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    /// Whether it began with the token.
    pub(super) greeted: bool,
    pub(super) incoming: Incoming,
    /// The gates that came with it, in the order of the requests that they belong to.
    pub(super) gates: VecDeque<OwnedFd>,
    pub(super) outgoing: Vec<u8>,
    /// What it told of the surroundings of its jobs.
    pub(super) around: Surroundings,
    pub(super) sessions: BTreeSet<String>,
    /// The number of its request to leave.
    pub(super) leaving: Option<u64>,
    /// Whether it has left and asked for nothing since.
    pub(super) left: bool,
    /// Requests to stop a session that wait until it is empty.
    pub(super) stopping: Vec<(u64, String)>,
    pub(super) closed: bool,
}

impl Connection {
    /// One that has said nothing yet.
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            greeted: false,
            incoming: Incoming::default(),
            gates: VecDeque::new(),
            outgoing: Vec::new(),
            around: Surroundings::default(),
            sessions: BTreeSet::new(),
            leaving: None,
            left: false,
            stopping: Vec::new(),
            closed: false,
        }
    }

    pub(super) fn receive(&mut self) {
        let mut buffer = [0; 16 << 10];
        loop {
            let gates = self.gates.len();
            match receive(&self.stream, &mut buffer, &mut self.gates) {
                Ok(0) => return self.closed = true,
                Ok(length) => {
                    self.incoming.push(&buffer[..length]);
                    if !self.greeted && self.gates.len() > STRANGERS_GATES {
                        return self.closed = true;
                    }
                    // There is rarely more; if so, it is seen next time. Behind a gate nothing is read
                    // on, whatever is there.
                    if length < buffer.len() && self.gates.len() == gates {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.closed = true,
            }
        }
    }

    /// The gate of the next request that has one.
    pub(super) fn gate(&mut self) -> Option<OwnedFd> {
        self.gates.pop_front()
    }

    pub(super) fn send(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.closed |= self.outgoing.len() > MOST_WAITING;
                    return;
                }
                Err(_) => return self.closed = true,
            }
        }
    }
}
