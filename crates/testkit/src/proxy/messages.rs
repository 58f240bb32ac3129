//! The frame of PostgreSQL's messages: a type byte, and a length that counts itself.

use std::io::{self, Read};

/// No message of a test is longer; a length beyond it means that we have lost the frame.
const LONGEST: usize = 64 << 20;

/// One message, with its bytes as they came.
pub(super) struct Message {
    bytes: Vec<u8>,
    head: usize,
}

impl Message {
    /// Reads a message with a type byte.
    pub(super) fn read(source: &mut impl Read) -> io::Result<Self> {
        Self::read_after(source, 1)
    }

    /// Reads a message of the connection's beginning, which has no type byte.
    pub(super) fn read_first(source: &mut impl Read) -> io::Result<Self> {
        Self::read_after(source, 0)
    }

    fn read_after(source: &mut impl Read, type_bytes: usize) -> io::Result<Self> {
        let head = type_bytes + 4;
        let mut bytes = vec![0; head];
        source.read_exact(&mut bytes)?;
        let length = bytes[type_bytes..].try_into().map_or(0, u32::from_be_bytes) as usize;
        if !(4..=LONGEST).contains(&length) {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        bytes.resize(type_bytes + length, 0);
        source.read_exact(&mut bytes[head..])?;
        Ok(Self { bytes, head })
    }

    /// The type; only of a message that has one.
    pub(super) fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// What follows the length.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// The message as it is sent on.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
