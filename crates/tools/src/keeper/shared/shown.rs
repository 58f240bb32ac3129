//! What is shown of a job's output, and how all of it is read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::protocol::Part;

/// The output of a job: all of it if it is short, else its head and its tail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The beginning.
    #[serde(with = "super::protocol::encoded")]
    pub head: Vec<u8>,
    /// The end, where there is more than the head holds. Between them may be a gap.
    #[serde(with = "super::protocol::encoded", default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub total: u64,
    /// The file with the first [`kept`](Self::kept) bytes, where the output is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How many bytes, from the beginning, are in the file.
    #[serde(default)]
    pub kept: u64,
}

impl Shown {
    /// Whether bytes are missing between head and tail.
    pub fn is_shortened(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The output as text, with a line about what is missing in the middle.
    pub fn text(&self) -> String {
        if !self.is_shortened() {
            // Head and tail are one text: a character may lie across them.
            return String::from_utf8_lossy(&[&self.head[..], &self.tail[..]].concat())
                .into_owned();
        }
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let head = String::from_utf8_lossy(whole_end(&self.head));
        let tail = String::from_utf8_lossy(whole_start(&self.tail));
        format!("{head}\n[… {missing} bytes …]\n{tail}")
    }

    /// Bytes from an offset on, at most `limit`: where they start, the bytes, and how many there
    /// are in all. They start later where bytes were dropped.
    pub fn part(&self, offset: u64, limit: u64) -> (u64, Vec<u8>, u64) {
        let part = read_part(self, offset, limit);
        (part.offset, part.bytes, part.total)
    }

    /// All that was kept, read from the spool where it is long.
    pub fn whole(&self) -> Vec<u8> {
        let Some(file) = self.file.as_ref().filter(|_| self.is_shortened()) else {
            return [&self.head[..], &self.tail[..]].concat();
        };
        let Ok(mut bytes) = std::fs::read(file) else {
            return self.text().into_bytes();
        };
        bytes.truncate(usize::try_from(self.kept).unwrap_or(usize::MAX));
        let tail_start = self.total - self.tail.len() as u64;
        if tail_start > self.kept {
            let dropped = tail_start - self.kept;
            bytes.extend_from_slice(format!("\n[… {dropped} bytes were not kept …]\n").as_bytes());
            bytes.extend_from_slice(&self.tail);
        } else {
            let overlap = usize::try_from(self.kept - tail_start).unwrap_or(usize::MAX);
            bytes.extend_from_slice(self.tail.get(overlap..).unwrap_or_default());
        }
        bytes
    }
}

/// The bytes without a character that is cut at their end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return bytes,
        };
        return if length > back { &bytes[..bytes.len() - back] } else { bytes };
    }
    bytes
}

/// The bytes without the rest of a character that was cut before them.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &bytes[rest..]
}

/// Bytes of an output from an offset on; where they were dropped, from the next one that is there.
pub(crate) fn read_part(shown: &Shown, offset: u64, limit: u64) -> Part {
    if !shown.is_shortened() {
        return part_of(
            &[&shown.head[..], &shown.tail[..]].concat(),
            0,
            shown.total,
            offset,
            limit,
        );
    }
    if offset < shown.kept
        && let Some(part) = read_file(shown, offset, limit)
    {
        return part;
    }
    let head = shown.head.len() as u64;
    if offset < head {
        return part_of(&shown.head, 0, shown.total, offset, limit);
    }
    let start = shown.total - shown.tail.len() as u64;
    part_of(&shown.tail, start, shown.total, offset, limit)
}

fn read_file(shown: &Shown, offset: u64, limit: u64) -> Option<Part> {
    let file = File::open(shown.file.as_ref()?).ok()?;
    let length = usize::try_from(limit.min(shown.kept - offset)).ok()?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(Part { offset, bytes, total: shown.total })
}

pub(crate) fn part_of(bytes: &[u8], start: u64, total: u64, offset: u64, limit: u64) -> Part {
    let end = start + bytes.len() as u64;
    let from = offset.clamp(start, end);
    let to = from.saturating_add(limit).min(end);
    let index = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
    Part { offset: from, bytes: bytes[index(from)..index(to)].to_vec(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &[u8], tail: &[u8], total: u64) -> Shown {
        Shown { head: head.to_vec(), tail: tail.to_vec(), total, ..Shown::default() }
    }

    #[test]
    fn a_character_across_head_and_tail_stays_whole() {
        let text = "aé€😀z".as_bytes();
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(shown(head, tail, text.len() as u64).text(), "aé€😀z");
        }
    }

    #[test]
    fn a_character_cut_by_the_gap_is_left_out() {
        let text = "é€😀".as_bytes();
        for cut in 0..text.len() {
            let words = shown(&text[..cut], &text[cut..], 1000).text();
            assert!(!words.contains('\u{fffd}'), "{cut}: {words}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_all_the_same() {
        assert_eq!(shown(b"a\xffb", b"", 3).text(), "a\u{fffd}b");
        assert_eq!(shown(b"a\xff", b"\x80\x80\x80\x80", 9).head.len(), 2);
    }
}
