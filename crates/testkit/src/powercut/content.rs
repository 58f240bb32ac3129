//! A file's bytes, as they are and as they are durable.

use std::sync::Arc;

use super::choice::Choice;

/// One change of a file's bytes or size.
#[derive(Clone)]
pub(super) enum Change {
    Write { offset: u64, data: Arc<[u8]> },
    Resize(u64),
}

/// The bytes that are sure, those that are seen, and the changes between the two.
pub(super) struct Content {
    durable: Arc<Vec<u8>>,
    live: Arc<Vec<u8>>,
    pending: Vec<Change>,
}

impl Content {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        let bytes = Arc::new(bytes);
        Self { durable: Arc::clone(&bytes), live: bytes, pending: Vec::new() }
    }

    pub(super) fn change(&mut self, change: Change) {
        let live = Arc::make_mut(&mut self.live);
        match &change {
            Change::Write { offset, data } => write_at(live, *offset, data),
            Change::Resize(size) => live.resize(*size as usize, 0),
        }
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable = Arc::clone(&self.live);
        self.pending.clear();
    }

    /// The bytes after a power cut.
    pub(super) fn after(&self, choice: &mut Choice) -> Arc<Vec<u8>> {
        if choice.is_everything() {
            return Arc::clone(&self.live);
        }
        let mut bytes = Arc::clone(&self.durable);
        for change in &self.pending {
            match change {
                Change::Write { offset, data } => {
                    for part in choice.parts(*offset, data.len()) {
                        let start = offset + part.start as u64;
                        write_at(Arc::make_mut(&mut bytes), start, &data[part]);
                    }
                }
                Change::Resize(size) if choice.happened() => {
                    Arc::make_mut(&mut bytes).resize(*size as usize, 0);
                }
                Change::Resize(_) => {}
            }
        }
        bytes
    }
}

/// Writes as a file does: a gap is filled with zeros.
fn write_at(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = offset as usize;
    let end = start + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(data);
}
