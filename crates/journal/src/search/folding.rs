//! Words as they are compared: small letters, without accents, in one form of each character.
//!
//! Everything that is indexed and everything that is looked for passes here, on both engines, so that
//! the same question finds the same entries.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_compatible;

/// The folded form of a text.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|character| fold(character, &mut out));
    out
}

/// The folded form of a text, and for each of its bytes the byte of the text that it came from.
pub(super) fn folded_with_places(text: &str) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(text.len());
    let mut places = Vec::with_capacity(text.len() + 1);
    for (place, character) in text.char_indices() {
        fold(character, &mut out);
        places.resize(out.len(), place);
    }
    places.push(text.len());
    (out, places)
}

/// Adds the folded form of a character.
pub(super) fn fold(character: char, out: &mut String) {
    if character.is_ascii() {
        out.push(character.to_ascii_lowercase());
        return;
    }
    if is_whole(character) {
        out.push(character);
        return;
    }
    let mut parts = String::new();
    decompose_compatible(character, |part| {
        parts.extend(part.to_lowercase().filter(|part| !is_accent(*part)));
    });
    // What belongs together and is no accent, such as the parts of a Hangul syllable, is joined again.
    out.extend(parts.nfc());
}

/// Whether a character is written on or between others and is left out as often as not: accents, the
/// vowels of Arabic and Hebrew, and what only makes an Arabic word longer.
pub(super) fn is_accent(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'
        | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{640}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}')
}

/// Characters that fold to themselves, the most common ones.
fn is_whole(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Whether a character is of a script that puts no spaces between words.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{3131}'..='\u{318e}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character belongs to a word, in a script that has words.
pub(super) fn is_of_word(character: char) -> bool {
    (character.is_alphanumeric() || is_accent(character)) && !is_unspaced(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lose_their_size_and_their_accents() {
        for (text, expected) in [
            ("Straße", "straße"),
            ("Übergrößenträger", "ubergroßentrager"),
            ("CAFÉ Cafe\u{301}", "cafe cafe"),
            ("ﬁle №５", "file no5"),
            ("İstanbul", "istanbul"),
            ("Ελλάδα", "ελλαδα"),
            ("مُحَمَّد كـــتب", "محمد كتب"),
            ("שָׁלוֹם", "שלום"),
            ("がギ 한국어 ｶﾀｶﾅ", "がギ 한국어 カタカナ"),
        ] {
            assert_eq!(folded(text), expected);
            let (again, places) = folded_with_places(text);
            assert_eq!(again, expected);
            assert_eq!(places.len(), again.len() + 1);
            assert!(places.iter().all(|place| text.is_char_boundary(*place)), "{places:?}");
        }
    }
}
