//! The arguments of a verb: which options it was given, and what they apply to.

use super::syntax::Word;

/// The words after a verb.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    words: &'a [Word],
}

/// Which options of a verb take a value: one letter each, and long names.
pub(super) type Valued = (&'static str, &'static [&'static str]);

impl<'a> Arguments<'a> {
    pub(super) fn of(words: &'a [Word]) -> Self {
        Self { words }
    }

    /// Whether one of these options is given, or may be: long names can be shortened, letters joined.
    pub(super) fn may_have(&self, letters: &str, names: &[&str]) -> bool {
        self.words.iter().any(|word| {
            word.may_be_option()
                && match word.literal() {
                    Some(text) => is_option(&text, letters, names),
                    None => match word.head().split_once('=') {
                        Some((name, _)) => is_option(name, letters, names),
                        None => true,
                    },
                }
        })
    }

    /// Whether a word stands among them that may become an option nobody sees.
    pub(super) fn may_hide_options(&self) -> bool {
        self.words.iter().any(|word| {
            word.may_be_option()
                && word.literal().is_none()
                && !(word.head().starts_with("--")
                    && word.head().contains('=')
                    && !word.may_split())
        })
    }

    /// The values of an option.
    pub(super) fn values(&self, letter: Option<char>, names: &[&str]) -> Vec<Word> {
        let mut values = Vec::new();
        for (place, word) in self.words.iter().enumerate() {
            let head = word.head();
            let next = || self.words.get(place + 1).cloned().unwrap_or_else(Word::anything);
            if let Some(long) = head.strip_prefix("--").filter(|long| !long.is_empty()) {
                let name = long.split('=').next().unwrap_or(long);
                if names.iter().any(|known| known.starts_with(name)) {
                    match word.after(&format!("--{name}=")) {
                        Some(value) => values.push(value),
                        None => values.push(next()),
                    }
                }
            } else if let (Some(letter), Some(cluster)) = (letter, head.strip_prefix('-'))
                && let Some((before, _)) = cluster.split_once(letter)
            {
                match word.after(&format!("-{before}{letter}")) {
                    Some(value) if !value.parts.is_empty() => values.push(value),
                    _ => values.push(next()),
                }
            }
        }
        values
    }

    /// The words that are no options and no values of options.
    pub(super) fn plain(&self, valued: Valued) -> Vec<&'a Word> {
        self.plain_with_places(valued).into_iter().map(|(_, word)| word).collect()
    }

    /// The place of the first word that is no option and no value of one.
    pub(super) fn first_plain(&self, valued: Valued) -> Option<usize> {
        self.plain_with_places(valued).first().map(|(place, _)| *place)
    }

    fn plain_with_places(&self, (letters, names): Valued) -> Vec<(usize, &'a Word)> {
        let mut plain = Vec::new();
        let mut place = 0;
        let mut only_plain = false;
        while let Some(word) = self.words.get(place) {
            let head = word.head();
            let text = word.literal();
            if only_plain || !head.starts_with('-') || head == "-" {
                plain.push((place, word));
            } else if text.as_deref() == Some("--") {
                only_plain = true;
            } else if let Some(long) = head.strip_prefix("--") {
                // A name without a value is followed by it.
                place += usize::from(!long.contains('=') && names.contains(&long));
            } else if let Some(cluster) = head.strip_prefix('-') {
                let takes = cluster.chars().position(|letter| letters.contains(letter));
                let last = cluster.chars().count() - 1;
                place += usize::from(takes == Some(last) && text.is_some());
            }
            place += 1;
        }
        plain
    }
}

fn is_option(text: &str, letters: &str, names: &[&str]) -> bool {
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return !name.is_empty() && names.iter().any(|known| known.starts_with(name));
    }
    let Some(cluster) = text.strip_prefix('-') else { return false };
    // Some programs have long names after a single dash.
    names.contains(&cluster) || cluster.chars().any(|letter| letters.contains(letter))
}
