//! Text that others wrote, made fit for a terminal: words, and nothing that acts on it.

use std::borrow::Cow;

/// Text from outside as lines of words: no escape sequence, no control character, tabs as spaces, and
/// of a line that was written over and over (a progress bar) what it was in the end.
pub(crate) fn clean(text: &str) -> String {
    lines(text, Shown::Alone)
}

/// Text in which others wrote a part, as it is printed: with its tabs, and nothing in it acts.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| matches!(letter, '\n' | '\t') || !is_unprintable(letter);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(lines(text, Shown::AmongOurs))
}

/// JSON that says the same in letters that do nothing to a terminal. JSON itself only hides those
/// below the space.
pub(crate) fn printable_json(json: &str) -> Cow<'_, str> {
    let hides = |letter: char| letter != '\n' && is_unprintable(letter);
    if !json.contains(hides) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        // They stand in strings only.
        if hides(letter) {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// How a text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// By itself: tabs are spaces, and a line that was written over is what it was in the end.
    Alone,
    /// Among words of ours, of which it can take nothing back; with its tabs, to be copied.
    AmongOurs,
}

fn lines(text: &str, shown_as: Shown) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut begun = 0;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\n' => {
                shown.push('\n');
                begun = shown.len();
            }
            '\r' => {
                let goes_on = letters.peek().is_some_and(|next| *next != '\n');
                if goes_on && shown_as == Shown::Alone {
                    shown.truncate(begun);
                }
            }
            '\t' if shown_as == Shown::Alone => {
                let column = shown[begun..].chars().count();
                shown.extend(std::iter::repeat_n(' ', 4 - column % 4));
            }
            '\t' => shown.push('\t'),
            letter if is_unprintable(letter) => {}
            letter => shown.push(letter),
        }
    }
    shown
}

fn skip_sequence(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            while let Some(letter) = letters.peek() {
                let last = ('\u{40}'..='\u{7e}').contains(letter);
                if *letter == '\n' || !(last || ('\u{20}'..'\u{40}').contains(letter)) {
                    return;
                }
                letters.next();
                if last {
                    return;
                }
            }
        }
        // Strings for the terminal itself: titles, links, the clipboard.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(letter) = letters.next() {
                if letter == '\u{7}' || letter == '\u{9c}' {
                    return;
                }
                if letter == '\u{1b}' {
                    letters.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some(letter) if letter.is_ascii() && !letter.is_ascii_control() => {
            letters.next();
        }
        _ => {}
    }
}

/// Letters that move the cursor, make a line read otherwise than it is, or hide in it. Those that join
/// others are words of some languages, and stay.
pub(crate) fn is_unprintable(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_for_the_terminal_are_left_out() {
        let cases = [
            ("a\u{1b}[31mb\u{1b}[0m", "ab"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://e\u{1b}\\y", "xy"),
            ("\u{1b}]52;c;c2VjcmV0", ""),
            ("\u{1b}P1$r0m\u{1b}\\z", "z"),
            ("\u{9b}2Jx\u{8}y\u{7f}", "2Jxy"),
            ("\u{1b}c\u{1b}(Bq", "Bq"),
            ("1%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
            ("a\tb", "a   b"),
            ("abc\u{202e}fed", "abcfed"),
            ("r\u{200b}m\u{e0041} \u{61c}x\u{2060}\u{ad}", "rm x"),
            ("\u{1b}[", ""),
            ("\u{1b}[3\u{1b}[1mx", "x"),
        ];
        for (given, shown) in cases {
            assert_eq!(clean(given), shown, "{given:?}");
        }
    }

    #[test]
    fn what_is_printed_keeps_its_tabs_and_loses_what_acts() {
        assert_eq!(printable("a\tb\nc"), "a\tb\nc");
        let hostile = "a\u{1b}]0;t\u{7}\tb\u{9b}2J\u{202e}\u{2028}c\u{b}d\u{85}e\r\nf\u{7f}";
        assert_eq!(printable(hostile), "a\tb2Jcde\nf");
        assert_eq!(printable("ours: theirs\rFORGED\n"), "ours: theirsFORGED\n");
    }

    #[test]
    fn json_says_the_same_and_does_nothing_to_a_terminal() {
        let said = "a\u{9b}2J\u{202e}b\u{7f}\u{1b}[2J\n\u{2028}\u{feff}\u{e0041}\u{200b}é";
        let json = serde_json::to_string(&serde_json::json!([said])).unwrap();
        let shown = printable_json(&json);
        assert!(!shown.chars().any(is_unprintable), "{shown:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [said]);
    }
}
