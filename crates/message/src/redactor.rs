//! Secrets by their known values: found in any text, in plain and in common encodings, and replaced
//! by a mark that names them.
//!
//! Nothing is guessed: only values that somebody made known are looked for. What is too short or too
//! plain to be a secret is not, because it would make holes in ordinary words. A value that a program
//! changed in a way of its own, or broke over lines, is not found.

mod flow;
mod needles;

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

pub use flow::Flow;
use needles::Needles;
use serde_json::Value;

/// How a mark begins that stands for a secret.
const MARK: &str = "[redacted: ";

/// Knows secrets, and takes them out of whatever it is shown. Clones share what they know. Without
/// any secret it costs nothing.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    secrets: Vec<(String, String)>,
    needles: Option<Arc<Needles>>,
}

/// How surely a value is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody said so: it is the key of a provider.
    Configured,
    /// It has the name of one.
    Named,
}

impl Redactor {
    /// Makes a secret known by a name that may be shown.
    pub fn add(&self, name: &str, value: &str, origin: Origin) {
        self.add_all([(name.to_owned(), value.to_owned())], origin);
    }

    /// Makes many secrets known at once.
    pub fn add_all(&self, secrets: impl IntoIterator<Item = (String, String)>, origin: Origin) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.secrets.len();
        for (name, value) in secrets {
            let value = value.trim();
            if is_secret(value, origin) && !known.secrets.iter().any(|(_, other)| other == value) {
                known.secrets.push((shown(&name), value.to_owned()));
            }
        }
        if known.secrets.len() > before {
            known.needles = Needles::new(&known.secrets).map(Arc::new);
        }
    }

    /// All that is known, for whoever looks after bytes elsewhere.
    pub fn secrets(&self) -> Vec<(String, String)> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).secrets.clone()
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).secrets.len()
    }

    fn needles(&self) -> Option<Arc<Needles>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).needles.clone()
    }

    /// Whether there are secrets in bytes.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        self.needles().is_some_and(|needles| needles.replaced(bytes).is_some())
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.needles().and_then(|needles| needles.replaced(text.as_bytes())) {
            // What is found is text, and so is what stands in its place.
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            None => Cow::Borrowed(text),
        }
    }

    /// Takes secrets out of a text. True where there were any.
    pub fn string(&self, text: &mut String) -> bool {
        match self.text(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        }
    }

    /// Takes secrets out of bytes.
    pub fn bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(clean) = self.needles().and_then(|needles| needles.replaced(bytes)) {
            *bytes = clean;
        }
    }

    /// Takes secrets out of all texts of a value, names of fields included. True where there were
    /// any.
    pub fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().fold(false, |any, item| self.value(item) | any),
            Value::Object(fields) => {
                let named = fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_)));
                if named {
                    let old = std::mem::take(fields);
                    fields.extend(
                        old.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)),
                    );
                }
                fields.values_mut().fold(named, |any, field| self.value(field) | any)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// A mark of this redactor in a text, which stands for a secret that the text does not have.
    pub fn mark_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut rest = text;
        while let Some(start) = rest.find(MARK) {
            rest = &rest[start..];
            let end = rest.find(']')?;
            let name = &rest[MARK.len()..end];
            if known.secrets.iter().any(|(known, _)| known == name) {
                return Some(&rest[..=end]);
            }
            rest = &rest[MARK.len()..];
        }
        None
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor")
    }
}

/// Whether a variable's name says that its value is a secret.
pub fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 16] = [
        "KEY",
        "KEYS",
        "APIKEY",
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASS",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "PAT",
        "COOKIE",
    ];
    const ENDINGS: [&str; 5] = ["APIKEY", "TOKEN", "SECRET", "PASSWORD", "ACCESSKEY"];
    let name = name.to_uppercase();
    name.split(['_', '-', '.'])
        .any(|word| WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// Whether a value can be looked for: long enough, and nothing that ordinary words are made of.
fn is_secret(value: &str, origin: Origin) -> bool {
    let shortest = match origin {
        Origin::Configured => 8,
        Origin::Named => 12,
    };
    let length = value.chars().count();
    if length < shortest || value.chars().any(char::is_whitespace) {
        // A text of several lines or words: a certificate, a sentence.
        return length >= 32 && value.chars().any(|letter| letter.is_ascii_digit());
    }
    // A path, an address: where a secret is, not what it is.
    if origin == Origin::Named && (value.starts_with(['/', '~', '.']) || value.contains("://")) {
        return false;
    }
    let mut letters: Vec<char> = value.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    let has = |kind: fn(&char) -> bool| letters.iter().any(kind);
    let digits = has(char::is_ascii_digit);
    let mixed = has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    let words_only = !digits && !mixed;
    let numbers_only = letters.iter().all(char::is_ascii_digit);
    letters.len() >= 5 && !(words_only && length < 20) && !(numbers_only && length < 16)
}

/// A name that can stand in a mark.
fn shown(name: &str) -> String {
    let safe = |letter: &char| letter.is_alphanumeric() || "_-. /".contains(*letter);
    name.chars().filter(safe).take(64).collect()
}

#[cfg(test)]
mod tests;
