//! Names of files as text: any bytes, and nothing that a line or a column cannot hold.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as text. Bytes that are no text, control characters and `%` are written as `%41`.
pub fn escaped(path: &Path) -> String {
    escaped_bytes(path.as_os_str().as_bytes())
}

/// The path that was written so.
pub fn unescaped(text: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescaped_bytes(text)))
}

pub(super) fn escaped_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '%' || character.is_control() {
                let mut buffer = [0; 4];
                percent(&mut text, character.encode_utf8(&mut buffer).as_bytes());
            } else {
                text.push(character);
            }
        }
        percent(&mut text, chunk.invalid());
    }
    text
}

fn percent(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "%{byte:02x}");
    }
}

pub(super) fn unescaped_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        for name in
            [&b"plain.rs"[..], b"50%41", b"a\nb\tc\0", b"\xff\xfeumlaut \xc3\xbc", b"%", b""]
        {
            let text = escaped_bytes(name);
            assert!(!text.contains(['\n', '\t', '\0']), "{text}");
            assert_eq!(unescaped_bytes(&text), name, "{text}");
        }
    }
}
