//! What is written to a job's input.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// More than this does not wait for a job that does not read.
const MOST_WAITING: usize = 1 << 20;

/// The open input of a job.
pub(super) struct Input {
    pipe: OwnedFd,
    waiting: Vec<u8>,
    closing: bool,
}

/// Whether an input is still open.
#[derive(PartialEq, Eq)]
pub(super) enum Open {
    Yes,
    No,
}

impl Input {
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self { pipe, waiting: Vec::new(), closing: false }
    }

    /// An input that holds these bytes and then ends.
    pub(super) fn given(pipe: OwnedFd, bytes: Vec<u8>) -> Self {
        Self { pipe, waiting: bytes, closing: true }
    }

    pub(super) fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes bytes; an error says why it does not.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.closing {
            return Err("Its input is closed.".to_owned());
        }
        if self.waiting.len() + bytes.len() > MOST_WAITING {
            return Err("It does not read its input, and the buffer is full.".to_owned());
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Writes what the pipe takes.
    pub(super) fn flush(&mut self) -> Open {
        while !self.waiting.is_empty() {
            match rustix::io::write(&self.pipe, &self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::AGAIN) => return Open::Yes,
                Err(Errno::INTR) => {}
                // Nobody reads it any more.
                Err(_) => return Open::No,
            }
        }
        if self.closing { Open::No } else { Open::Yes }
    }
}
