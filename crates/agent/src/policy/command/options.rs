//! Options by allow-list: the words after a verb are read by what is known of the verb, and what is
//! not known is told.

use super::syntax::Word;

/// The options of a verb that are known to be harmless, or whose harm is known.
///
/// Letters are written as for `getopt`: `ab:c?o>` is `-a`, `-b VALUE`, `-c[VALUE]` and `-o PATH`, where
/// the path is written to. Long names carry the same signs, with `=` for a value: `all sort= color?
/// output>`. Everything else, shortened names included, is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) letters: &'static str,
    pub(super) names: &'static str,
}

/// What an option is followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// A value, if it is joined to the option.
    Maybe,
    Value,
    /// A path that is written to.
    Path,
}

/// Whether a name stands in a table of names between blanks.
pub(super) fn is_listed(table: &str, name: &str) -> bool {
    table.split_ascii_whitespace().any(|listed| listed == name)
}

/// An option that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unlisted;

/// The words after a verb, told apart.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    /// Each option by its letter or name, with its value.
    options: Vec<(String, Option<Word>)>,
    /// The paths that options say to write to.
    pub(super) written: Vec<Word>,
    /// The words that are no options and no values of options.
    pub(super) plain: Vec<&'a Word>,
    /// Whether one of the words may turn out to be an option that nobody sees.
    pub(super) hidden: bool,
    /// Whether a value may become several words, so that plain words stand where none is seen.
    pub(super) splits: bool,
    /// Where the first plain word stands.
    pub(super) first_plain: usize,
}

impl Given<'_> {
    /// Whether one of these options is given: letters, and names between blanks.
    pub(super) fn has(&self, letters: &str, names: &str) -> bool {
        self.options.iter().any(|(given, _)| {
            let mut characters = given.chars();
            match (characters.next(), characters.next()) {
                (Some(letter), None) => letters.contains(letter),
                _ => names.split_ascii_whitespace().any(|name| name == given),
            }
        })
    }

    /// The values of an option, by its letter or name.
    pub(super) fn values(&self, option: &str) -> impl Iterator<Item = &Word> {
        self.options
            .iter()
            .filter(move |(given, _)| given == option)
            .filter_map(|(_, value)| value.as_ref())
    }
}

impl Options {
    pub(super) const NONE: Self = Self { letters: "", names: "" };

    /// Reads all words after a verb.
    pub(super) fn read<'a>(&self, words: &'a [Word]) -> Result<Given<'a>, Unlisted> {
        Listed(&[*self]).read_words(words, Reach::All)
    }

    /// Reads the options before the first plain word; the rest belongs to another verb.
    pub(super) fn read_own<'a>(&self, words: &'a [Word]) -> Result<Given<'a>, Unlisted> {
        Listed(&[*self]).read_words(words, Reach::Own)
    }

    /// Reads all words after a verb that has the options of several tables. What the first of them
    /// says counts.
    pub(super) fn read_by<'a>(tables: &[Self], words: &'a [Word]) -> Result<Given<'a>, Unlisted> {
        Listed(tables).read_words(words, Reach::All)
    }
}

/// How far a verb's own words go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    /// Up to the first plain word.
    Own,
}

struct Listed<'t>(&'t [Options]);

impl Listed<'_> {
    fn read_words<'a>(&self, words: &'a [Word], reach: Reach) -> Result<Given<'a>, Unlisted> {
        let mut given = Given { first_plain: words.len(), ..Given::default() };
        let mut place = 0;
        while let Some(word) = words.get(place) {
            let head = word.head();
            if word.literal().as_deref() == Some("--") {
                given.take_rest(words, place + 1);
                return Ok(given);
            }
            if !head.starts_with('-') || word.literal().as_deref() == Some("-") {
                given.hidden |= word.may_be_option();
                if reach == Reach::Own {
                    given.take_rest(words, place);
                    return Ok(given);
                }
                given.first_plain = given.first_plain.min(place);
                given.plain.push(word);
                place += 1;
                continue;
            }
            // What comes after the dash may become several words.
            if word.may_bring_options() {
                return Err(Unlisted);
            }
            let next = words.get(place + 1);
            let takes_next = match head.strip_prefix("--") {
                Some(long) => self.read_name(&mut given, word, long, next)?,
                None => self.read_letters(&mut given, word, &head[1..], next)?,
            };
            place += 1 + usize::from(takes_next);
        }
        Ok(given)
    }

    /// Reads an option with a long name. Returns whether its value is the next word.
    fn read_name(
        &self,
        given: &mut Given<'_>,
        word: &Word,
        long: &str,
        next: Option<&Word>,
    ) -> Result<bool, Unlisted> {
        let joined = long.contains('=');
        let name = long.split('=').next().unwrap_or(long);
        if word.literal().is_none() && !joined {
            return Err(Unlisted);
        }
        match (self.takes_by_name(name).ok_or(Unlisted)?, joined) {
            (Takes::Nothing, true) => Err(Unlisted),
            (Takes::Nothing | Takes::Maybe, false) => {
                given.options.push((name.to_owned(), None));
                Ok(false)
            }
            (takes @ (Takes::Value | Takes::Path), false) => {
                given.take_value(name, takes, next);
                Ok(true)
            }
            (takes, true) => {
                let value = word.after(&format!("--{name}="));
                given.take_value(name, takes, value.as_ref());
                Ok(false)
            }
        }
    }

    /// Reads a cluster of letters. Returns whether the value of the last one is the next word.
    fn read_letters(
        &self,
        given: &mut Given<'_>,
        word: &Word,
        cluster: &str,
        next: Option<&Word>,
    ) -> Result<bool, Unlisted> {
        let whole = word.literal().is_some();
        for (start, letter) in cluster.char_indices() {
            let end = start + letter.len_utf8();
            let takes = self.takes_by_letter(letter).ok_or(Unlisted)?;
            let has_more = end < cluster.len() || !whole;
            let name = letter.to_string();
            match takes {
                Takes::Nothing => given.options.push((name, None)),
                Takes::Maybe | Takes::Value | Takes::Path if has_more => {
                    let value = word.after(&format!("-{}", &cluster[..end]));
                    given.take_value(&name, takes, value.as_ref());
                    return Ok(false);
                }
                Takes::Maybe => given.options.push((name, None)),
                Takes::Value | Takes::Path => {
                    given.take_value(&name, takes, next);
                    return Ok(true);
                }
            }
        }
        // What follows the letters is not in the line.
        if whole { Ok(false) } else { Err(Unlisted) }
    }

    fn takes_by_letter(&self, letter: char) -> Option<Takes> {
        if matches!(letter, ':' | '?' | '>') {
            return None;
        }
        self.0.iter().find_map(|options| {
            let mut rest = options.letters.chars().skip_while(|other| *other != letter);
            rest.next()?;
            Some(takes(rest.next()))
        })
    }

    fn takes_by_name(&self, name: &str) -> Option<Takes> {
        let known = self.0.iter().flat_map(|options| options.names.split_ascii_whitespace());
        known.into_iter().find_map(|known| match known.strip_prefix(name)? {
            "" => Some(Takes::Nothing),
            sign @ ("=" | "?" | ">") => Some(takes(sign.chars().next())),
            _ => None,
        })
    }
}

fn takes(sign: Option<char>) -> Takes {
    match sign {
        Some(':' | '=') => Takes::Value,
        Some('?') => Takes::Maybe,
        Some('>') => Takes::Path,
        _ => Takes::Nothing,
    }
}

impl<'a> Given<'a> {
    fn take_rest(&mut self, words: &'a [Word], place: usize) {
        self.first_plain = self.first_plain.min(place);
        self.plain.extend(words.get(place..).unwrap_or_default());
    }

    fn take_value(&mut self, option: &str, takes: Takes, value: Option<&Word>) {
        let value = value.cloned().unwrap_or_else(Word::anything);
        // Where it becomes several words, the others stand alone.
        self.splits |= value.may_split();
        self.hidden |= self.splits;
        if takes == Takes::Path {
            self.written.push(value.clone());
        }
        self.options.push((option.to_owned(), Some(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { letters: "abn:c?o>", names: "all sort= color? output> allocate" };

    fn words(line: &str) -> Vec<Word> {
        line.split_whitespace().map(Word::of).collect()
    }

    #[test]
    fn known_options_are_told_from_their_values_and_from_plain_words() {
        let words = words("-ab -n5 one -n 6 --sort=x --color -o out --output=b -- -z");
        let given = OPTIONS.read(&words).unwrap();
        let plain: Vec<String> = given.plain.iter().filter_map(|word| word.literal()).collect();
        assert_eq!(plain, ["one", "-z"]);
        let numbers: Vec<String> = given.values("n").filter_map(Word::literal).collect();
        assert_eq!(numbers, ["5", "6"]);
        let written: Vec<String> = given.written.iter().filter_map(Word::literal).collect();
        assert_eq!(written, ["out", "b"]);
        assert!(given.has("b", "") && given.has("", "color") && !given.has("z", "all"));
    }

    #[test]
    fn unknown_shortened_and_overlong_options_are_not_listed() {
        for line in ["-z", "-az", "--al", "--alll", "--all=x", "-a --unknown", "x -z"] {
            let words = words(line);
            assert!(OPTIONS.read(&words).is_err(), "{line}");
        }
    }

    #[test]
    fn the_words_of_another_verb_are_left_alone() {
        let words = words("-a -n 5 other -z --unknown");
        let given = OPTIONS.read_own(&words).unwrap();
        assert_eq!((given.first_plain, given.plain.len()), (3, 3));
        assert!(OPTIONS.read(&words).is_err());
    }
}
