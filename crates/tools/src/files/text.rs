//! What the file tools know about text: hashes, line ends, what can be shown.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The mark that some editors put before UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// By a line feed; also when there is none.
    Unix,
    /// All by carriage return and line feed.
    Windows,
    /// Some by the one, some by the other.
    Mixed,
}

pub(super) fn line_ends(content: &[u8]) -> LineEnds {
    let mut all = 0_usize;
    let mut windows = 0_usize;
    let mut before = 0;
    for &byte in content {
        if byte == b'\n' {
            all += 1;
            windows += usize::from(before == b'\r');
        }
        before = byte;
    }
    match windows {
        0 => LineEnds::Unix,
        _ if windows == all => LineEnds::Windows,
        _ => LineEnds::Mixed,
    }
}

/// With line feeds alone.
pub(super) fn to_unix(content: &[u8]) -> Vec<u8> {
    let mut unix = Vec::with_capacity(content.len());
    for (at, &byte) in content.iter().enumerate() {
        if byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
            unix.push(byte);
        }
    }
    unix
}

/// With a carriage return before each line feed.
pub(super) fn to_windows(content: &[u8]) -> Vec<u8> {
    let mut windows = Vec::with_capacity(content.len() + content.len() / 32);
    let mut before = 0;
    for &byte in content {
        if byte == b'\n' && before != b'\r' {
            windows.push(b'\r');
        }
        windows.push(byte);
        before = byte;
    }
    windows
}

/// Whether the beginning of a file says that it is no text.
pub(super) fn is_binary(beginning: &[u8]) -> bool {
    beginning.contains(&0)
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// At most `limit` bytes of a line, on a character's border, and how many were left out.
pub(super) fn clip(line: &str, limit: usize) -> (&str, usize) {
    let end = line.floor_char_boundary(limit);
    (&line[..end], line.len() - end)
}

/// A name that stays on its line: control characters are written as escapes.
pub(super) fn printable(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len()), |mut text, character| {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
        text
    })
}

/// `1 line`, `2 lines`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A size as people write it.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_told_apart_and_turned_into_each_other() {
        assert_eq!(line_ends(b"a\nb\n"), LineEnds::Unix);
        assert_eq!(line_ends(b"a\r\nb\r\n"), LineEnds::Windows);
        assert_eq!(line_ends(b"a\r\nb\n"), LineEnds::Mixed);
        assert_eq!(line_ends(b"\r"), LineEnds::Unix);
        assert_eq!(to_unix(b"a\r\nb\rc\r\n\r"), b"a\nb\rc\n\r");
        assert_eq!(to_windows(b"\na\r\nb\n"), b"\r\na\r\nb\r\n");
    }

    #[test]
    fn a_line_is_clipped_between_characters() {
        assert_eq!(clip("aäb", 2), ("a", 3));
        assert_eq!(clip("aäb", 9), ("aäb", 0));
    }

    #[test]
    fn a_name_with_a_line_break_stays_on_its_line() {
        assert_eq!(printable("a\nb\u{1b}[1mä"), "a\\nb\\u{1b}[1mä");
    }
}
