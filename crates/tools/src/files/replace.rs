//! Replaces a text that must be there exactly, and helps when it is not.

use std::borrow::Cow;

use similar::TextDiff;

use super::blocking::Stop;
use super::text::{LineEnds, clip, line_ends, to_unix, to_windows};

/// Lines compared in search of one that was meant; the rest of a long file is not looked at.
const COMPARED_LINES: usize = 20_000;
/// Longer lines are compared by their beginning.
const COMPARED_BYTES: usize = 200;
const SHOWN_BYTES: usize = 400;
const SHOWN_NUMBERS: usize = 10;

/// How many places are to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// The one place there is.
    One,
    /// All of them.
    All,
}

/// Why nothing was replaced: words of the harness, and lines of the file that may have been meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) words: String,
    pub(super) lines: Option<String>,
}

impl Miss {
    pub(super) fn said(words: impl Into<String>) -> Self {
        Self { words: words.into(), lines: None }
    }
}

/// Replaces `old` by `new`. Lines of a file whose lines all end with CRLF are found by their text.
pub(super) fn replace(
    content: &[u8],
    old: &str,
    new: &str,
    places: Places,
    stop: &Stop,
) -> Result<Vec<u8>, Miss> {
    if old.is_empty() {
        return Err(Miss::said("`old` is empty. Give the text to replace, or use write_file."));
    }
    let windows = |text: &str| Cow::Owned(to_windows(text.as_bytes()));
    let ends = line_ends(content);
    let (mut old_bytes, mut new_bytes): (Cow<'_, [u8]>, Cow<'_, [u8]>) = match ends {
        LineEnds::Windows => (windows(old), windows(new)),
        _ => (Cow::Borrowed(old.as_bytes()), Cow::Borrowed(new.as_bytes())),
    };
    let mut found = positions(content, &old_bytes, stop);
    if found.is_empty() && ends == LineEnds::Mixed {
        (old_bytes, new_bytes) = (windows(old), windows(new));
        found = positions(content, &old_bytes, stop);
    }
    if old_bytes == new_bytes {
        return Err(Miss::said("`old` and `new` are the same. Nothing was changed."));
    }
    match (found.len(), places) {
        (0, _) => Err(no_match(content, old, new, stop)),
        (1, _) | (_, Places::All) => Ok(splice(content, &found, old_bytes.len(), &new_bytes)),
        (count, Places::One) => {
            let numbers: Vec<String> = found
                .iter()
                .take(SHOWN_NUMBERS)
                .map(|&at| line_number(content, at).to_string())
                .collect();
            let more = if count > SHOWN_NUMBERS { ", …" } else { "" };
            Err(Miss::said(format!(
                "`old` occurs {count} times, in lines {}{more}. \
                 Add surrounding lines until it is unique, or set `all`.",
                numbers.join(", ")
            )))
        }
    }
}

/// Where `wanted` is, without overlaps.
fn positions(content: &[u8], wanted: &[u8], stop: &Stop) -> Vec<usize> {
    let mut found = Vec::new();
    let Some((&first, rest)) = wanted.split_first() else { return found };
    let mut at = 0;
    while let Some(skipped) = content[at..].iter().position(|&byte| byte == first) {
        let start = at + skipped;
        if content[start + 1..].starts_with(rest) {
            found.push(start);
            at = start + wanted.len();
        } else {
            at = start + 1;
        }
        if stop.is_set() {
            break;
        }
    }
    found
}

fn splice(content: &[u8], at: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(content.len() + new.len() * at.len());
    let mut copied = 0;
    for &start in at {
        result.extend_from_slice(&content[copied..start]);
        result.extend_from_slice(new);
        copied = start + length;
    }
    result.extend_from_slice(&content[copied..]);
    result
}

fn line_number(content: &[u8], at: usize) -> usize {
    1 + content[..at].iter().filter(|&&byte| byte == b'\n').count()
}

fn no_match(content: &[u8], old: &str, new: &str, stop: &Stop) -> Miss {
    if !new.trim().is_empty()
        && !positions(&to_unix(content), &to_unix(new.as_bytes()), stop).is_empty()
    {
        return Miss::said(
            "`old` is not in the file, but `new` already is. Read the file before you continue.",
        );
    }
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.lines().take(COMPARED_LINES).collect();
    let Some((index, wanted)) = old.lines().enumerate().find(|(_, line)| !line.trim().is_empty())
    else {
        return Miss::said(
            "`old` is not in the file; it contains only whitespace. Read the file again.",
        );
    };
    let Some((at, likeness)) = nearest(&lines, wanted, stop) else {
        return Miss::said("`old` is not in the file, nor anything like it. Read the file again.");
    };
    let first = at.saturating_sub(index);
    let mut shown = String::new();
    for (offset, line) in lines[first..].iter().take(old.lines().count().min(8)).enumerate() {
        let (line, left) = clip(line, SHOWN_BYTES);
        let more = if left > 0 { " […]" } else { "" };
        shown.push_str(&format!("{}\t{line}{more}\n", first + offset + 1));
    }
    let words = match likeness {
        Likeness::Space => "`old` is not in the file. With different whitespace it is near line",
        Likeness::Same => "`old` is not in the file as a whole. Its beginning is in line",
        Likeness::Near => "`old` is not in the file. The line most like it is line",
    };
    Miss {
        words: format!("{words} {}. Copy the text exactly, without line numbers.", at + 1),
        lines: Some(shown),
    }
}

enum Likeness {
    Same,
    Space,
    Near,
}

/// The line that was most likely meant.
fn nearest(lines: &[&str], wanted: &str, stop: &Stop) -> Option<(usize, Likeness)> {
    if let Some(at) = lines.iter().position(|line| *line == wanted) {
        return Some((at, Likeness::Same));
    }
    let wanted = wanted.trim();
    if let Some(at) = lines.iter().position(|line| line.trim() == wanted) {
        return Some((at, Likeness::Space));
    }
    let wanted = clip(wanted, COMPARED_BYTES).0;
    let mut best = (0.6, None);
    for (at, line) in lines.iter().enumerate() {
        if stop.is_set() {
            break;
        }
        let line = clip(line.trim(), COMPARED_BYTES).0;
        if shared_bytes(line, wanted) <= best.0 {
            continue;
        }
        let likeness = TextDiff::from_chars(line, wanted).ratio();
        if likeness > best.0 {
            best = (likeness, Some(at));
        }
    }
    best.1.map(|at| (at, Likeness::Near))
}

/// How alike two lines are in any order of their bytes: quickly told, and rarely below what they
/// are in order.
fn shared_bytes(one: &str, other: &str) -> f32 {
    let mut left = [0_u16; 256];
    one.bytes().for_each(|byte| left[usize::from(byte)] += 1);
    let mut shared = 0_u16;
    for byte in other.bytes() {
        let count = &mut left[usize::from(byte)];
        if *count > 0 {
            *count -= 1;
            shared += 1;
        }
    }
    2.0 * f32::from(shared) / (one.len() + other.len()).max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(content: &str, old: &str, new: &str) -> Result<String, Miss> {
        replace(content.as_bytes(), old, new, Places::One, &Stop::default())
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn one_place_is_replaced_and_two_are_refused_with_their_lines() {
        assert_eq!(one("a\nb\n", "b", "c").unwrap(), "a\nc\n");
        let miss = one("x\ny\nx\n", "x", "z").unwrap_err();
        assert!(miss.words.contains("2 times, in lines 1, 3"), "{}", miss.words);
        let all = replace(b"x\ny\nx\n", "x", "zz", Places::All, &Stop::default()).unwrap();
        assert_eq!(all, b"zz\ny\nzz\n");
    }

    #[test]
    fn places_do_not_overlap() {
        let all = replace(b"aaaa", "aa", "b", Places::All, &Stop::default()).unwrap();
        assert_eq!(all, b"bb");
    }

    #[test]
    fn lines_that_end_with_crlf_are_found_and_stay_so() {
        assert_eq!(one("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").unwrap(), "x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(one("a\r\nb\r\n", "b", "b\nc").unwrap(), "a\r\nb\r\nc\r\n");
        assert_eq!(one("a\r\nb\nc\r\n", "a\nb", "x").unwrap(), "x\nc\r\n");
        assert_eq!(one("a\r\nb\nc\n", "b\nc", "x\ny").unwrap(), "a\r\nx\ny\n");
    }

    #[test]
    fn bytes_that_are_not_utf8_stay_as_they_are() {
        let bytes = replace(b"\xff a \xfe", "a", "b", Places::One, &Stop::default()).unwrap();
        assert_eq!(bytes, b"\xff b \xfe");
    }

    #[test]
    fn a_miss_names_what_was_likely_meant() {
        let content = "fn main() {\n    let total = 1;\n}\n";
        for (old, words, line) in [
            ("let total  = 1;", "most like it is line 2", "2\t    let total = 1;\n"),
            (
                "\tlet total = 1;",
                "different whitespace it is near line 2",
                "2\t    let total = 1;\n",
            ),
            (
                "fn main() {\n  x",
                "beginning is in line 1",
                "1\tfn main() {\n2\t    let total = 1;\n",
            ),
        ] {
            let miss = one(content, old, "y").unwrap_err();
            assert!(miss.words.contains(words), "{}", miss.words);
            assert_eq!(miss.lines.as_deref(), Some(line));
        }
        assert_eq!(one(content, "#include <stdio.h>", "y").unwrap_err().lines, None);
        assert!(one("new text\n", "old text", "new text").unwrap_err().words.contains("already"));
        assert!(one("a", "", "b").unwrap_err().words.contains("empty"));
        assert!(one("a", "a", "a").unwrap_err().words.contains("the same"));
    }
}
