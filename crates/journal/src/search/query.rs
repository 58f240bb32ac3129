//! What is looked for, read from what was typed. Nothing that is typed is an error.

use super::folding::{folded, is_unspaced};
use super::words::{Run, pairs, runs, token};

/// Characters of a question that are read.
const LONGEST: usize = 2048;
/// Terms that are looked for.
const MOST: usize = 24;

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// What an entry must have.
    pub(super) terms: Vec<Term>,
    /// What it must not have.
    pub(super) without: Vec<Term>,
    /// One of the terms is enough.
    pub(super) any: bool,
    /// All of it, folded, as it would stand in a text.
    pub(super) literal: String,
}

/// Words that stand one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// The tokens, in order.
    pub(super) tokens: Vec<String>,
    /// Whether the last token may go on.
    pub(super) prefix: bool,
    /// What was typed, folded.
    pub(super) literal: String,
    /// Whether it is of a script without spaces.
    pub(super) unspaced: bool,
}

impl Query {
    /// Reads what was typed: words, `"phrases"`, `begin*`, `-without`, and `OR` between words.
    pub(super) fn parse(typed: &str) -> Self {
        // No store takes a NUL.
        let mut typed = typed.replace('\0', " ");
        if let Some((end, _)) = typed.char_indices().nth(LONGEST) {
            typed.truncate(end);
            // Half a word is none.
            typed.truncate(typed.rfind(' ').unwrap_or(end));
        }
        let mut query = Self { literal: folded(typed.trim()), ..Self::default() };
        let mut rest = typed.as_str();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                // Of a single term, one is all.
                query.any &= query.terms.len() > 1;
                return query;
            }
            let (negative, after) = match rest.strip_prefix('-') {
                Some(after) if !after.starts_with([' ', '-']) => (true, after),
                _ => (false, rest),
            };
            let (raw, quoted) = match after.strip_prefix('"') {
                Some(inside) => {
                    let end = inside.find('"').unwrap_or(inside.len());
                    rest = inside.get(end + 1..).unwrap_or_default();
                    (&inside[..end], true)
                }
                None => {
                    let end = after.find([' ', '\t', '\n', '\r']).unwrap_or(after.len());
                    rest = &after[end..];
                    (&after[..end], false)
                }
            };
            match raw {
                "OR" if !quoted && !negative => query.any = true,
                "AND" if !quoted && !negative => {}
                raw => {
                    let terms = if negative { &mut query.without } else { &mut query.terms };
                    for term in read(raw, quoted) {
                        if terms.len() < MOST && !terms.contains(&term) {
                            terms.push(term);
                        }
                    }
                }
            }
        }
    }
}

/// The terms of a word or a phrase: one, unless scripts with and without spaces meet in it.
fn read(raw: &str, quoted: bool) -> Vec<Term> {
    let prefix = !quoted && raw.ends_with('*');
    let raw = raw.trim_matches('*');
    let mut terms: Vec<Term> = Vec::new();
    let mut start = 0;
    let all: Vec<(usize, Run<'_>)> = runs(raw).collect();
    for (place, run) in &all {
        match run {
            Run::Word(word) => match terms.last_mut() {
                Some(term) if !term.unspaced => {
                    term.tokens.push(token(word));
                    term.literal = folded(&raw[start..*place + word.len()]);
                }
                _ => {
                    start = *place;
                    terms.push(Term {
                        tokens: vec![token(word)],
                        prefix: false,
                        literal: folded(word),
                        unspaced: false,
                    });
                }
            },
            Run::Unspaced(run) => {
                let mut tokens = pairs(run);
                // The last character alone would ask for the end of a run.
                let prefix = tokens.len() == 1;
                if !prefix {
                    tokens.pop();
                }
                terms.push(Term { tokens, prefix, literal: folded(run), unspaced: true });
            }
        }
    }
    if let [term] = terms.as_mut_slice()
        && !term.unspaced
    {
        // Marks at its ends tell pieces of names apart.
        term.literal = folded(raw.trim());
    }
    if let Some(term) = terms.last_mut()
        && prefix
        && !term.unspaced
    {
        term.prefix = true;
    }
    terms.retain(|term| term.tokens.iter().any(|token| !token.is_empty()));
    terms
}

impl Term {
    /// Where it stands in a folded text: at most so many places.
    pub(super) fn places(&self, text: &str, most: usize) -> Vec<std::ops::Range<usize>> {
        let mut found = Vec::new();
        if self.unspaced {
            let hits = text.match_indices(self.literal.as_str()).take(most);
            found.extend(hits.map(|(start, hit)| start..start + hit.len()));
            return found;
        }
        let Some(first) = self.tokens.first().filter(|token| !token.is_empty()) else {
            return found;
        };
        for (start, _) in text.match_indices(first.as_str()) {
            let begins = !text[..start].chars().next_back().is_some_and(of_word);
            if begins && let Some(end) = self.end(text, start) {
                found.push(start..end);
                if found.len() == most {
                    break;
                }
            }
        }
        found
    }

    /// Where it ends, if it stands at this place.
    fn end(&self, text: &str, start: usize) -> Option<usize> {
        let mut place = start;
        for (index, token) in self.tokens.iter().enumerate() {
            if index > 0 {
                let between = text[place..].find(of_word)?;
                place += between;
            }
            text[place..].strip_prefix(token.as_str())?;
            place += token.len();
            let goes_on = text[place..].chars().next().is_some_and(of_word);
            if goes_on && !(self.prefix && index + 1 == self.tokens.len()) {
                return None;
            }
        }
        Some(place)
    }
}

fn of_word(character: char) -> bool {
    character.is_alphanumeric() && !is_unspaced(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(terms: &[Term]) -> Vec<String> {
        let star = |term: &Term| if term.prefix { "*" } else { "" };
        terms.iter().map(|term| term.tokens.join(" ") + star(term)).collect()
    }

    #[test]
    fn whatever_is_typed_is_read_as_well_as_it_can_be() {
        let check = |typed: &str, terms: &[&str], without: &[&str]| {
            let query = Query::parse(typed);
            assert_eq!(shown(&query.terms), terms, "{typed}");
            assert_eq!(shown(&query.without), without, "{typed}");
        };
        check("two Words", &["two", "words"], &[]);
        check("\"a phrase\" more", &["a phrase", "more"], &[]);
        check("\"not closed", &["not closed"], &[]);
        check("begin* -without -\"a phrase\"", &["begin*"], &["without", "a phrase"]);
        check("foo_bar::baz src/main.rs", &["foo bar baz", "src main rs"], &[]);
        check("東京都 猫 x東京", &["東京 京都", "猫*", "x", "東京"], &[]);
        check("- -- * ** \"\" ( ) ' ; %_ \\ NEAR(a b) ^x:y {z}", &["near a", "b", "x y", "z"], &[]);
        check("a OR b AND c", &["a", "b", "c"], &[]);
        check("same same", &["same"], &[]);
        check("  ", &[], &[]);
        check("🦀 →", &[], &[]);
        check("\0\u{1}a", &["a"], &[]);
        assert!(Query::parse("a OR b").any && !Query::parse("a \"OR\" b").any);
        assert!(!Query::parse("a OR").any && !Query::parse("OR a OR 🦀").any);
        assert!(Query::parse(&"word ".repeat(100_000)).terms.len() == 1);
        let many: String = (0..1000).map(|number| format!("w{number} ")).collect();
        assert_eq!(Query::parse(&many).terms.len(), MOST);
    }

    #[test]
    fn a_term_is_found_where_it_stands_as_words() {
        let check = |typed: &str, text: &str, expected: &[&str]| {
            let term = Query::parse(typed).terms.remove(0);
            let places = term.places(text, 9);
            let found: Vec<&str> = places.into_iter().map(|place| &text[place]).collect();
            assert_eq!(found, expected, "{typed} in {text}");
        };
        check("cat", "cat concat cats cat.", &["cat", "cat"]);
        check("cat*", "cat concat cats", &["cat", "cat"]);
        check("foo_bar", "foo bar, foo::bar foobar foo_barn", &["foo bar", "foo::bar"]);
        check("東京", "x東京都東京", &["東京", "東京"]);
        check("a", "", &[]);
    }
}
