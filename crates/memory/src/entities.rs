//! Entities that a text names: capitalised phrases, quoted terms, and names that stand for each
//! other ("Robert Smith aka Bob").
//!
//! An entity is its name in small letters; names are compared as a whole, never by pattern.

/// What is around or between names and is not part of them.
const EDGES: &[char] = &[
    '.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '[', ']', '“', '”', '„', '«', '»', '`', '’',
];

/// Words that are capitalised because a sentence begins with them: small words, and what one is
/// told to do.
const OPENERS: &[&str] = &[
    "a", "about", "add", "after", "all", "also", "always", "an", "and", "any", "are", "as", "ask",
    "at", "avoid", "because", "before", "both", "but", "by", "call", "can", "check", "contact",
    "deploy", "do", "don't", "each", "email", "every", "find", "for", "from", "give", "he", "her",
    "his", "how", "if", "in", "is", "it", "its", "keep", "let", "meet", "my", "never", "no", "not",
    "on", "only", "open", "or", "our", "please", "prefer", "read", "remember", "run", "see",
    "send", "she", "show", "since", "so", "some", "start", "stop", "tell", "that", "the", "their",
    "then", "there", "these", "they", "this", "those", "to", "try", "update", "use", "visit",
    "was", "we", "what", "when", "where", "which", "while", "who", "why", "with", "write", "yes",
    "you", "your",
];

/// A longer quotation is not a name.
const LONGEST: usize = 60;
/// Nor are more capitals than this: the whole text is written in them.
const LONGEST_NAME: usize = 100;
/// The most names that are looked for in a text.
const MOST: usize = 32;

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entities {
    /// Names as they were written, each once.
    pub names: Vec<String>,
    /// Pairs of names for one entity.
    pub aliases: Vec<(String, String)>,
}

/// A name as it is compared: small letters, single spaces, nothing around it.
pub fn folded(name: &str) -> String {
    let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_matches(|letter| letter == ' ' || EDGES.contains(&letter)).to_owned()
}

/// The entities that `text` names.
pub fn found(text: &str) -> Entities {
    let words = split_words(text);
    let mut found = Entities::default();
    for name in quoted(text) {
        found.add(&name);
    }
    let mut at = 0;
    while at < words.len() {
        let end = phrase_end(&words, at);
        let name = &words[at..end.max(at)];
        let start = name.iter().position(|word| !word.is_opener()).unwrap_or(name.len());
        if name.len() - start >= 2 {
            found.add(&joined(&name[start..]));
        }
        at = end.max(at + 1);
    }
    for (position, length) in also_known(&words) {
        if let Some((one, other)) = pair(&words, position, length)
            && found.add(&one)
            && found.add(&other)
        {
            found.aliases.push((one, other));
        }
    }
    found
}

impl Entities {
    /// Adds what may be a name; answers whether it is one of them then.
    fn add(&mut self, name: &str) -> bool {
        let key = folded(name);
        if self.names.iter().any(|known| folded(known) == key) {
            return true;
        }
        let is_name = (2..=LONGEST_NAME).contains(&key.chars().count()) && self.names.len() < MOST;
        if is_name {
            self.names.push(name.trim_matches(EDGES).to_owned());
        }
        is_name
    }
}

/// A word between spaces.
struct Word<'a> {
    text: &'a str,
    /// Whether something ends after it: a phrase does not go on behind a comma.
    ends: bool,
    /// Whether something begins before it.
    begins: bool,
}

impl Word<'_> {
    fn is_capitalised(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    fn is_opener(&self) -> bool {
        OPENERS.binary_search(&self.text.to_lowercase().as_str()).is_ok()
    }
}

fn split_words(text: &str) -> Vec<Word<'_>> {
    let pieces = text.split_whitespace().map(|piece| {
        let word = piece.trim_matches(EDGES);
        // The dot after an initial does not end a name.
        let initial = word.chars().count() == 1 && piece.ends_with('.');
        let ends = !initial && piece.ends_with(EDGES);
        Word { text: word, ends, begins: piece.starts_with(EDGES) }
    });
    pieces.filter(|word| !word.text.is_empty()).collect()
}

/// Where the capitalised words that begin at `start` end; `start` if there are none.
fn phrase_end(words: &[Word<'_>], start: usize) -> usize {
    let mut end = start;
    while let Some(word) = words.get(end) {
        let goes_on = word.is_capitalised() && !(word.begins && end > start);
        if !goes_on {
            break;
        }
        end += 1;
        if word.ends {
            break;
        }
    }
    end
}

fn joined(words: &[Word<'_>]) -> String {
    words.iter().map(|word| word.text).collect::<Vec<_>>().join(" ")
}

/// Terms in quotation marks. An apostrophe is one only where a word begins or ends.
fn quoted(text: &str) -> Vec<String> {
    const MARKS: &[(char, char)] = &[('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('\'', '\'')];
    let mut names = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let mark = MARKS.iter().find(|(open, _)| *open == first && !before.is_alphanumeric());
        let inside = mark.and_then(|(_, close)| {
            let ends = after.match_indices(*close);
            let mut ends = ends.filter(|(end, close)| {
                !after[end + close.len()..].starts_with(char::is_alphanumeric)
            });
            ends.next().map(|(end, close)| (&after[..end], &after[end + close.len()..]))
        });
        before = first;
        rest = after;
        if let Some((name, behind)) = inside
            && (1..=LONGEST).contains(&name.trim().chars().count())
        {
            names.push(name.trim().to_owned());
            rest = behind;
        }
    }
    names
}

/// Where names are said to stand for each other: the position and how many words say it.
fn also_known(words: &[Word<'_>]) -> Vec<(usize, usize)> {
    let is =
        |at: usize, text: &str| words.get(at).is_some_and(|word| word.text.to_lowercase() == text);
    let said = |at: usize| {
        if is(at, "aka") || is(at, "a.k.a") {
            return Some((at, 1));
        }
        (is(at, "also") && is(at + 1, "known") && is(at + 2, "as")).then_some((at, 3))
    };
    (1..words.len()).filter_map(said).collect()
}

/// The names before and after the words that say they are one: the capitalised words there, or the
/// one word there is.
fn pair(words: &[Word<'_>], at: usize, length: usize) -> Option<(String, String)> {
    let mut start = at;
    while start > 0
        && words[start - 1].is_capitalised()
        && (start == at || !words[start - 1].ends)
        && !words[start - 1].is_opener()
    {
        start -= 1;
    }
    let start = if start == at { at - 1 } else { start };
    let behind = at + length;
    let end = phrase_end(words, behind).max(behind + 1).min(words.len());
    (behind < end).then(|| (joined(&words[start..at]), joined(&words[behind..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, names: &[&str]) {
        assert_eq!(found(text).names, names, "{text}");
    }

    #[test]
    fn capitalised_phrases_of_several_words_are_entities() {
        check(
            "The user met Ada Lovelace in New York City, Ada liked it.",
            &["Ada Lovelace", "New York City"],
        );
        check("My Project Mainstay is written in Rust.", &["Project Mainstay"]);
        check("J. R. R. Tolkien wrote it. Bob read it.", &["J R R Tolkien"]);
        check("all of it in small letters", &[]);
        check("In Berlin, Germany is cold", &[]);
    }

    #[test]
    fn quoted_terms_are_entities() {
        check("the crate \"serde json\" and 'rusqlite' aren't Bob's", &["serde json", "rusqlite"]);
        check("„Haus am See“ und «Le Monde»", &["Haus am See", "Le Monde"]);
        check("an empty \"\" one", &[]);
    }

    #[test]
    fn names_that_stand_for_each_other_are_pairs() {
        let pairs = |text| found(text).aliases;
        let pair = |one: &str, other: &str| vec![(one.to_owned(), other.to_owned())];
        assert_eq!(pairs("We call Robert Smith aka Bob for help"), pair("Robert Smith", "Bob"));
        assert_eq!(pairs("postgres, also known as pg."), pair("postgres", "pg"));
        assert_eq!(pairs("The \"big one\" a.k.a. Goliath Server."), pair("one", "Goliath Server"));
        assert_eq!(pairs("aka nothing"), []);
        assert_eq!(pairs("nothing aka"), []);
    }

    #[test]
    fn whatever_a_text_looks_like_it_has_few_names_and_none_is_long() {
        check(&"ALL IN CAPITALS ".repeat(20), &[]);
        check(
            &format!("{0} aka {0}b, Ada Lovelace aka Ada", "x".repeat(2000)),
            &["Ada Lovelace", "Ada"],
        );
        let many: String = (0..100).map(|number| format!("'q{number}' aka r{number}, ")).collect();
        let found = found(&many);
        assert_eq!((found.names.len(), found.aliases.len()), (32, 0));
    }

    #[test]
    fn names_are_compared_without_case_and_spaces_and_never_by_pattern() {
        assert_eq!(folded("  Ada   LOVELACE, "), "ada lovelace");
        assert_eq!(folded("( Ada )"), "ada");
        assert_ne!(folded("a%"), folded("ab"));
    }

    #[test]
    fn openers_are_in_order() {
        assert!(OPENERS.is_sorted());
    }
}
