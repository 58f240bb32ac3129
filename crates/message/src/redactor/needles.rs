//! What is looked for: each secret in plain and in its encodings.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::MARK;

/// A shorter one would be found in ordinary words.
const SHORTEST: usize = 8;
/// From this length on a half of a secret is one too: it may stand where a text was cut.
const HALVES: usize = 32;

/// All that is looked for, at once.
pub(super) struct Needles {
    automaton: AhoCorasick,
    patterns: Vec<Vec<u8>>,
    /// What stands in the place of each.
    marks: Vec<String>,
    /// Bytes that one begins with.
    begins: [bool; 256],
    longest: usize,
}

impl Needles {
    /// Returns `None` if nothing is to be looked for.
    pub(super) fn new(secrets: &[(String, String)]) -> Option<Self> {
        let mut patterns = Vec::new();
        let mut marks = Vec::new();
        for (name, value) in secrets {
            for form in forms(value) {
                if form.len() >= SHORTEST && !patterns.contains(&form) {
                    patterns.push(form);
                    marks.push(format!("{MARK}{name}]"));
                }
            }
        }
        if patterns.is_empty() {
            return None;
        }
        let mut begins = [false; 256];
        for pattern in &patterns {
            begins[usize::from(pattern[0])] = true;
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // The kind that is built at once and small: texts are short, and a program may be too.
        let built = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns);
        // It fails for gigabytes of patterns; keys are read up to 64 KiB.
        let automaton = built.ok()?;
        Some(Self { automaton, patterns, marks, begins, longest })
    }

    /// The bytes without secrets. Returns `None` if they have none.
    pub(super) fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut clean = Vec::new();
        let mut from = 0;
        for found in self.automaton.find_iter(bytes) {
            clean.extend_from_slice(&bytes[from..found.start()]);
            clean.extend_from_slice(self.marks[found.pattern().as_usize()].as_bytes());
            from = found.end();
        }
        if from == 0 {
            return None;
        }
        clean.extend_from_slice(&bytes[from..]);
        Some(clean)
    }

    /// Moves what can be told of the bytes to `clean`; what may be the beginning of a secret stays.
    pub(super) fn pass(&self, bytes: &mut Vec<u8>, clean: &mut Vec<u8>) {
        let open = bytes.len() - self.begun(bytes);
        let mut from = 0;
        for found in self.automaton.find_iter(&*bytes) {
            // One that may yet become longer waits.
            if found.start() >= open {
                break;
            }
            clean.extend_from_slice(&bytes[from..found.start()]);
            clean.extend_from_slice(self.marks[found.pattern().as_usize()].as_bytes());
            from = found.end();
        }
        if open > from {
            clean.extend_from_slice(&bytes[from..open]);
            from = open;
        }
        bytes.drain(..from);
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn begun(&self, bytes: &[u8]) -> usize {
        let first = bytes.len().saturating_sub(self.longest - 1);
        for start in first..bytes.len() {
            let end = &bytes[start..];
            if self.begins[usize::from(end[0])]
                && self
                    .patterns
                    .iter()
                    .any(|pattern| pattern.len() > end.len() && pattern.starts_with(end))
            {
                return end.len();
            }
        }
        0
    }
}

/// A secret as it may be met.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = vec![bytes.to_vec()];
    if value.len() >= HALVES && value.is_ascii() {
        let (first, last) = value.split_at(value.len() / 2);
        forms.extend([first.into(), last.into()]);
    }
    for offset in 0..3 {
        forms.push(inside_base64(&STANDARD_NO_PAD, bytes, offset));
        forms.push(inside_base64(&URL_SAFE_NO_PAD, bytes, offset));
    }
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hexadecimal.to_uppercase().into());
    forms.push(hexadecimal.into());
    for encoded in [percent_encoded(bytes, "-_.~"), percent_encoded(bytes, "-_.!~*'()")] {
        forms.push(with_lowercase_escapes(&encoded).into());
        forms.push(encoded.into());
    }
    // JSON, and JSON in JSON; with and without the slash that some escape.
    let mut escaped = value.to_owned();
    for _ in 0..2 {
        escaped = json_escaped(&escaped);
        forms.push(escaped.replace('/', "\\/").into());
        forms.push(escaped.clone().into());
    }
    forms
}

/// The letters of base64 that bytes have wherever they begin in a group of three: those that they
/// share with what stands before and after are left out.
fn inside_base64(engine: &impl base64::Engine, bytes: &[u8], offset: usize) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(bytes.iter().copied()).collect();
    let encoded = engine.encode(&padded).into_bytes();
    let before = [0, 2, 3][offset];
    let after = usize::from(!padded.len().is_multiple_of(3));
    encoded.get(before..encoded.len() - after).unwrap_or_default().to_vec()
}

fn percent_encoded(bytes: &[u8], plain: &str) -> String {
    let mut encoded = String::new();
    for byte in bytes {
        let letter = char::from(*byte);
        if letter.is_ascii_alphanumeric() || (letter.is_ascii() && plain.contains(letter)) {
            encoded.push(letter);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The same with `%2f` for `%2F`.
fn with_lowercase_escapes(encoded: &str) -> String {
    let mut left = 0;
    let lower = |letter: char| {
        if letter == '%' {
            left = 3;
        }
        if left > 0 {
            left -= 1;
            return letter.to_ascii_lowercase();
        }
        letter
    };
    encoded.chars().map(lower).collect()
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
