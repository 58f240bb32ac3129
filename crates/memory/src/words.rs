//! Words of a text: tokens for vectors, terms for the index.
//!
//! A *token* is a piece between spaces, in small letters, without punctuation around it: what atoms
//! are made of. A *term* is what is looked up: tokens are taken apart at punctuation, scripts without
//! spaces into pairs of characters, a plural is its singular, and words that are everywhere are left
//! out. Both engines, the overlap and the ranking see the same terms.
//!
//! Terms of a fact are computed again to take it out of the index: whoever changes them brings a
//! migration that makes the index anew.

/// What is trimmed from tokens.
const PUNCTUATION: &[char] = &[
    '.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '[', ']', '{', '}', '<', '>', '`', '«', '»',
    '“', '”', '„', '‘', '’', '…', '—', '–', '-', '*', '_', '~', '|', '/', '\\', '、', '。', '「',
    '」',
];

/// Words that say nothing about what a text is about.
const EVERYWHERE: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she", "should",
    "so", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "with", "would", "you",
    "your",
];

/// Longer terms are cut: nobody types them, and an index has little room for them.
const LONGEST: usize = 48;

/// The tokens of a text, in order.
pub fn tokens(text: &str) -> Vec<String> {
    let small = text.to_lowercase();
    let trimmed = small.split_whitespace().map(|piece| piece.trim_matches(PUNCTUATION));
    trimmed.filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

/// The terms of a text, in order, as often as they occur.
pub fn terms(text: &str) -> Vec<String> {
    let small = text.to_lowercase();
    let mut terms = Vec::new();
    for piece in small.split(|character: char| !character.is_alphanumeric()) {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let spaced = !without_spaces(first);
            let end = rest.find(|character| without_spaces(character) == spaced);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            if spaced {
                terms.extend(word(run));
            } else {
                terms.extend(pairs(run));
            }
            rest = after;
        }
    }
    terms
}

/// A word as a term, unless it is everywhere.
fn word(word: &str) -> Option<String> {
    if EVERYWHERE.binary_search(&word).is_ok() {
        return None;
    }
    let singular = match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    };
    Some(singular.chars().take(LONGEST).collect())
}

/// Each two neighbours, or the one character there is.
fn pairs(run: &str) -> Vec<String> {
    let characters: Vec<char> = run.chars().collect();
    if characters.len() == 1 {
        return vec![run.to_owned()];
    }
    characters.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Whether this character's script puts no spaces between words.
fn without_spaces(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'      // Thai, Lao
        | '\u{3040}'..='\u{30ff}'    // kana
        | '\u{3400}'..='\u{9fff}'    // Han
        | '\u{ac00}'..='\u{d7af}'    // Hangul: it has spaces, but endings stick to words
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_small_and_without_punctuation_around_them() {
        assert_eq!(
            tokens("Ada's “Engine” (1843), C++ — e.g. crates/memory!"),
            ["ada's", "engine", "1843", "c++", "e.g", "crates/memory"]
        );
        assert!(tokens(" … - ").is_empty());
    }

    #[test]
    fn terms_are_parts_of_words_without_those_that_are_everywhere() {
        assert_eq!(
            terms("The tests of crates/memory are in Ada's CI_jobs"),
            ["test", "crate", "memory", "ada", "s", "ci", "job"]
        );
        assert_eq!(
            terms("class status analysis bus gas"),
            ["class", "status", "analysis", "bus", "gas"]
        );
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        assert_eq!(terms("東京都はRust"), ["東京", "京都", "都は", "rust"]);
        assert_eq!(terms("木"), ["木"]);
    }

    #[test]
    fn words_that_are_everywhere_are_in_order() {
        assert!(EVERYWHERE.is_sorted());
    }
}
