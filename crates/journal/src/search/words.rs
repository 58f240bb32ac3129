//! What a text is cut into: words, and for scripts without spaces every two neighbours.
//!
//! Trigrams would not do for those scripts. Most Chinese words have two characters, and
//! PostgreSQL's trigrams know such characters only in some locales.

use std::collections::HashSet;

use super::folding::{fold, folded, is_of_word, is_unspaced};

/// Characters of a word that count. What is longer is data, not a word.
const LONGEST: usize = 64;
/// Bytes of names, paths and the like that are kept of one entry.
const FRAGMENTS: usize = 8 << 10;

/// A run of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// A word.
    Word(&'a str),
    /// Characters of a script without spaces.
    Unspaced(&'a str),
}

/// The runs of a text with their places.
pub(super) fn runs(text: &str) -> impl Iterator<Item = (usize, Run<'_>)> {
    let mut place = 0;
    std::iter::from_fn(move || {
        let rest = text.get(place..)?;
        let start =
            rest.find(|character: char| is_unspaced(character) || character.is_alphanumeric())?;
        let run = &rest[start..];
        let unspaced = run.starts_with(is_unspaced);
        let belongs = |character: char| {
            if unspaced { is_unspaced(character) } else { is_of_word(character) }
        };
        let end = run.find(|character: char| !belongs(character)).unwrap_or(run.len());
        let (at, run) = (place + start, &run[..end]);
        place = at + end;
        Some((at, if unspaced { Run::Unspaced(run) } else { Run::Word(run) }))
    })
}

/// A word as it is indexed and looked for.
pub(super) fn token(word: &str) -> String {
    let mut token = String::with_capacity(word.len().min(LONGEST));
    word.chars().take(LONGEST).for_each(|character| fold(character, &mut token));
    // A few characters stand for several words, and one token has no space in it.
    token.retain(|character| !character.is_whitespace());
    token
}

/// The tokens of characters without spaces: each with its right neighbour, and the last one alone.
pub(super) fn pairs(run: &str) -> Vec<String> {
    let characters: Vec<char> = folded(run).chars().collect();
    (0..characters.len()).map(|start| characters[start..].iter().take(2).collect()).collect()
}

/// The tokens of a text, in order, with a space after each. The parts of `camelCase` come last.
pub(super) fn tokens(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut humps = String::new();
    for (_, run) in runs(text) {
        match run {
            Run::Word(word) => {
                push(&mut out, &token(word));
                for hump in parts(word) {
                    push(&mut humps, &token(hump));
                }
            }
            Run::Unspaced(run) => pairs(run).iter().for_each(|pair| push(&mut out, pair)),
        }
    }
    out.push_str(&humps);
    out
}

fn push(out: &mut String, token: &str) {
    if !token.is_empty() {
        out.push_str(token);
        out.push(' ');
    }
}

/// The parts of a word that is several, told apart by capitals.
fn parts(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let humps = |index: &usize| {
        bytes[*index].is_ascii_uppercase()
            && (bytes[*index - 1].is_ascii_lowercase()
                || bytes.get(*index + 1).is_some_and(u8::is_ascii_lowercase))
    };
    if !word.is_ascii() || word.len() > LONGEST || word.len() < 4 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for index in (1..bytes.len()).filter(humps).chain([bytes.len()]) {
        // A letter alone is no word.
        if index - start > 1 {
            parts.push(&word[start..index]);
        }
        start = index;
    }
    if parts.first() == Some(&word) { Vec::new() } else { parts }
}

/// What can be found by a piece of it: names of things in code, paths, addresses. Each stands once, on
/// a line of its own.
pub(super) fn fragments(text: &str) -> String {
    let mut out = String::new();
    let mut known = HashSet::new();
    let borders = |character: char| {
        character.is_whitespace() || character.is_control() || "\"'`,;()[]{}<>|".contains(character)
    };
    for chunk in text.split(borders) {
        let chunk = chunk.trim_matches(['.', ':', '!', '?']);
        if is_name(chunk) && known.insert(chunk) {
            if out.len() + chunk.len() > FRAGMENTS {
                break;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            chunk.chars().for_each(|character| fold(character, &mut out));
        }
    }
    out
}

/// Whether it looks like a name in code, a path or an address.
pub(super) fn is_name(chunk: &str) -> bool {
    let bytes = chunk.as_bytes();
    if !(4..=200).contains(&bytes.len()) || !bytes.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    bytes.iter().any(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii())
        || bytes.iter().any(u8::is_ascii_digit)
        || bytes.windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_words_and_pairs_of_characters() {
        for (text, expected) in [
            ("Read foo_bar::baz, v2!", "read foo bar baz v2 "),
            ("東京都 by bus", "東京 京都 都 by bus "),
            ("abc東京x", "abc 東京 京 x "),
            ("parseConfig HTTPServer", "parseconfig httpserver parse config http server "),
            ("한국어", "한국 국어 어 "),
            ("", ""),
            ("→ ※ 🦀", ""),
        ] {
            assert_eq!(tokens(text), expected);
        }
        assert_eq!(tokens(&"x".repeat(10_000)).len(), LONGEST + 1);
    }

    #[test]
    fn names_paths_and_addresses_are_kept_in_one_piece_and_prose_is_not() {
        let text = "See src/main.rs: `parseConfig(a)`, plain words and src/main.rs. Also A_B-c9!";
        assert_eq!(fragments(text), "src/main.rs\nparseconfig\na_b-c9");
        assert_eq!(fragments("nothing here but words"), "");
        let many: String = (0..10_000).map(|number| format!("name_{number} ")).collect();
        assert!(fragments(&many).len() <= FRAGMENTS);
    }
}
