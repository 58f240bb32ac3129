//! What a job writes: its head and its tail in memory, all of it, up to a cap, in a file.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use mainstay_message::Redactor;
use mainstay_message::redactor::Flow;

use crate::keeper::shared::protocol::Part;
use crate::keeper::shared::{Shown, part_of, read_part};

/// How much of the beginning is shown.
pub(super) const HEAD: usize = 12 << 10;
/// How much of the end is shown.
pub(super) const TAIL: usize = 20 << 10;
/// How much is kept in a file unless the job says otherwise: with the tail and a note between, all of
/// it fits into a blob of the store.
pub(super) const CAP: u64 = (mainstay_store::BLOB_LIMIT - 2 * TAIL) as u64;

/// The output of one job. As long as it fits into head and tail there is no file.
pub(super) struct Output {
    head: Vec<u8>,
    /// At least the last [`TAIL`] bytes after the head.
    tail: Vec<u8>,
    total: u64,
    path: PathBuf,
    file: Option<File>,
    kept: u64,
    cap: u64,
    /// Keeps secrets out of all of it.
    redactor: Redactor,
    flow: Flow,
}

impl Output {
    pub(super) fn new(path: PathBuf, cap: u64) -> Self {
        let head = Vec::new();
        let tail = Vec::new();
        let redactor = Redactor::default();
        let flow = Flow::default();
        Self { head, tail, total: 0, path, file: None, kept: 0, cap, redactor, flow }
    }

    /// One of which only head and tail are kept.
    pub(super) fn in_memory() -> Self {
        Self::new(PathBuf::new(), 0)
    }

    /// The same without secrets.
    pub(super) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        self.redactor = redactor.clone();
        self
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Takes in what was read. What may be the beginning of a secret waits for more.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.redactor.count() == 0 {
            return self.take(bytes);
        }
        let clean = self.flow.push(&self.redactor, bytes);
        self.take(&clean);
    }

    /// Takes in what waited, because nothing may follow.
    pub(super) fn settle(&mut self) {
        let rest = self.flow.rest(&self.redactor);
        self.take(&rest);
    }

    fn take(&mut self, bytes: &[u8]) {
        let fits = self.total + bytes.len() as u64 <= (HEAD + TAIL) as u64;
        if !fits && self.total <= (HEAD + TAIL) as u64 {
            self.spill();
        }
        self.keep(bytes);
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Only now and then, so that a byte is moved once on average.
        if self.tail.len() > 4 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// Opens the file and puts everything so far into it.
    fn spill(&mut self) {
        if self.cap == 0 {
            return;
        }
        // Without a file, on a full disk, head and tail are what there is.
        self.file = mainstay_store::fsatomic::create_new(
            &self.path,
            mainstay_store::fsatomic::PRIVATE_FILE,
        )
        .ok();
        let (head, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        self.keep(&head);
        self.keep(&tail);
        (self.head, self.tail) = (head, tail);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(self.cap - self.kept).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        if file.write_all(part).is_ok() {
            self.kept += part.len() as u64;
        } else {
            // What was half written lies beyond `kept`, and no more is added.
            self.cap = self.kept;
        }
    }

    fn shown_tail(&self) -> &[u8] {
        &self.tail[self.tail.len().saturating_sub(TAIL)..]
    }

    pub(super) fn shown(&self) -> Shown {
        Shown {
            head: self.head.clone(),
            tail: self.shown_tail().to_vec(),
            total: self.total,
            file: self.file.is_some().then(|| self.path.clone()),
            kept: self.kept,
        }
    }

    /// Bytes from an offset on; where they were dropped, from the next one that is there.
    pub(super) fn read(&self, offset: u64, limit: u64) -> Part {
        if self.file.is_none() && self.total <= (HEAD + TAIL) as u64 {
            let all = [&self.head[..], &self.tail[..]].concat();
            return part_of(&all, 0, self.total, offset, limit);
        }
        read_part(&self.shown(), offset, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(length: usize, step: usize, cap: u64) -> (tempfile::TempDir, Output, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let mut output = Output::new(directory.path().join("output"), cap);
        let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
        bytes.chunks(step.max(1)).for_each(|piece| output.push(piece));
        (directory, output, bytes)
    }

    #[test]
    fn a_short_output_is_whole_and_has_no_file() {
        for length in [0, 1, HEAD, HEAD + 1, HEAD + TAIL] {
            let (_directory, output, bytes) = written(length, 1000, CAP);
            let shown = output.shown();
            assert_eq!((shown.file.is_none(), shown.is_shortened()), (true, false));
            assert_eq!(shown.whole(), bytes);
        }
    }

    #[test]
    fn a_long_output_is_whole_in_its_file() {
        for step in [7, 1000, 65536, 300_000] {
            let (_directory, output, bytes) = written(300_000, step, CAP);
            let shown = output.shown();
            assert_eq!(
                (&shown.head[..], &shown.tail[..]),
                (&bytes[..HEAD], &bytes[300_000 - TAIL..])
            );
            assert_eq!(shown.whole(), bytes);
        }
    }

    #[test]
    fn beyond_the_cap_the_middle_is_dropped_and_said() {
        let (_directory, output, bytes) = written(300_000, 4096, 100_000);
        let shown = output.shown();
        assert_eq!(shown.kept, 100_000);
        let whole = shown.whole();
        assert!(whole.starts_with(&bytes[..100_000]) && whole.ends_with(&bytes[300_000 - TAIL..]));
        let note = format!("{} bytes were not kept", 200_000 - TAIL);
        assert!(String::from_utf8_lossy(&whole).contains(&note));
    }

    #[test]
    fn all_that_is_kept_fits_into_a_blob() {
        let (_directory, output, _) = written(2 * mainstay_store::BLOB_LIMIT, 1 << 20, CAP);
        let whole = output.shown().whole();
        assert!(whole.len() <= mainstay_store::BLOB_LIMIT, "{}", whole.len());
    }

    #[test]
    fn every_offset_can_be_read() {
        for length in [100, HEAD + TAIL, 200_000] {
            let (_directory, output, bytes) = written(length, 5000, CAP);
            let mut read = Vec::new();
            while read.len() < length {
                let part = output.read(read.len() as u64, 7777);
                assert_eq!(part.offset, read.len() as u64);
                assert!(!part.bytes.is_empty());
                read.extend(part.bytes);
            }
            assert_eq!(read, bytes);
            assert!(output.read(length as u64, 10).bytes.is_empty());
        }
        let (_directory, output, bytes) = written(300_000, 5000, 100_000);
        let part = output.read(150_000, 10);
        assert_eq!(part.offset, (300_000 - TAIL) as u64);
        assert_eq!(part.bytes, bytes[300_000 - TAIL..300_000 - TAIL + 10]);
    }
}
