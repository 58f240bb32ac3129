//! The part of a text that is shown.

use std::ops::Range;

use super::Snippet;
use super::folding::folded_with_places;
use super::query::Term;

/// Bytes that are shown, about, and of these before the first mark.
const LENGTH: usize = 280;
const LEAD: usize = 60;
/// Places of a term that are marked or weighed.
const PLACES: usize = 100;

/// The part of a text in which most of the terms stand.
pub(super) fn of(text: &str, terms: &[Term]) -> Snippet {
    let (folded, places) = folded_with_places(text);
    let mut hits: Vec<(Range<usize>, usize)> = Vec::new();
    for (number, term) in terms.iter().enumerate() {
        let mut found = term.places(&folded, PLACES);
        if found.is_empty() {
            // A piece of a name.
            let pieces = folded.match_indices(term.literal.as_str()).take(PLACES);
            found.extend(pieces.map(|(start, piece)| start..start + piece.len()));
        }
        let original = |place: Range<usize>| places[place.start]..end(text, places[place.end - 1]);
        let found = found.into_iter().filter(|place| !place.is_empty());
        hits.extend(found.map(|place| (original(place), number)));
    }
    hits.sort_by_key(|(place, _)| (place.start, place.end));
    let start = best(&hits).saturating_sub(LEAD);
    let start = word_start(text, text.floor_char_boundary(start));
    let stop = text.floor_char_boundary((start + LENGTH).min(text.len()));
    let marks = hits.into_iter().map(|(place, _)| place);
    let marks = marks.filter(|place| place.start >= start && place.end <= stop);
    on_one_line(text, start..stop, marks)
}

/// The beginning of a text, on one line.
pub(super) fn beginning(text: &str, longest: usize) -> String {
    let mut out = String::new();
    let mut left = longest;
    let between = |character: char| character.is_whitespace() || character.is_control();
    for word in text.split(between).filter(|word| !word.is_empty()) {
        let space = usize::from(!out.is_empty());
        let length = word.chars().count() + space;
        if length > left {
            out.extend(" ".chars().take(space.min(left)));
            out.extend(word.chars().take(left.saturating_sub(space)));
            out.push('…');
            break;
        }
        out.extend(" ".chars().take(space));
        out.push_str(word);
        left -= length;
    }
    out
}

/// Where the character ends that begins at this byte.
fn end(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// Where to begin, so that most of the terms are in view.
fn best(hits: &[(Range<usize>, usize)]) -> usize {
    let mut best = (0, 0);
    for (index, (place, _)) in hits.iter().enumerate() {
        let view = place.start + LENGTH - LEAD;
        let mut seen: Vec<usize> = Vec::new();
        for (_, term) in hits[index..].iter().take_while(|(place, _)| place.end <= view) {
            if !seen.contains(term) {
                seen.push(*term);
            }
        }
        if seen.len() > best.0 {
            best = (seen.len(), place.start);
        }
    }
    best.1
}

/// The start of the next word, if it is near.
fn word_start(text: &str, start: usize) -> usize {
    if start == 0 {
        return 0;
    }
    let near = text[start..].char_indices().take(20);
    let mut after_space = near.skip_while(|(_, character)| !character.is_whitespace());
    after_space
        .find(|(_, character)| !character.is_whitespace())
        .map_or(start, |(offset, _)| start + offset)
}

/// Puts a part of a text on one line. Marks that overlap become one.
fn on_one_line(
    text: &str,
    part: Range<usize>,
    marks: impl Iterator<Item = Range<usize>>,
) -> Snippet {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        match joined.last_mut() {
            Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
            _ => joined.push(mark),
        }
    }
    let mut snippet = Snippet::default();
    let out = &mut snippet.text;
    if part.start > 0 {
        out.push('…');
    }
    let mut open: Option<usize> = None;
    let mut joined = joined.into_iter().peekable();
    for (offset, character) in text[part.clone()].char_indices() {
        let place = part.start + offset;
        if joined.peek().is_some_and(|mark| mark.start == place) {
            open = Some(out.len());
        }
        if !character.is_whitespace() && !character.is_control() {
            out.push(character);
        } else if !out.is_empty() && !out.ends_with([' ', '…']) {
            out.push(' ');
        }
        if let Some(start) = open
            && joined.peek().is_some_and(|mark| mark.end <= place + character.len_utf8())
        {
            snippet.marks.push(start..out.len());
            (open, _) = (None, joined.next());
        }
    }
    if part.end < text.len() {
        out.push('…');
    }
    snippet
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;
    use super::*;

    fn check(typed: &str, text: &str, expected: &str) {
        let snippet = of(text, &Query::parse(typed).terms);
        assert_eq!(snippet.marked("[", "]"), expected, "{typed}");
    }

    #[test]
    fn what_was_looked_for_is_marked_in_the_text_as_it_was_written() {
        check("cafe", "The CAFÉ\n\n is open", "The [CAFÉ] is open");
        check("foo_bar", "see foo::Bar now", "see [foo::Bar] now");
        check("東京", "私は東京都へ", "私は[東京]都へ");
        check("onf", "parseConfig", "parseC[onf]ig");
        check("a b", "a b a", "[a] [b] [a]");
        check("\"a b\" b", "x a  b y", "x [a b] y");
        check("gone", "nothing", "nothing");
    }

    #[test]
    fn the_part_with_most_of_the_words_is_shown() {
        let text =
            format!("needle {} needle and thread {}", "hay ".repeat(200), "hay ".repeat(200));
        let snippet = of(&text, &Query::parse("needle thread").terms);
        let marked = snippet.marked("[", "]");
        assert!(marked.contains("[needle] and [thread]"), "{marked}");
        assert!(marked.starts_with('…') && marked.ends_with('…') && marked.len() < 330, "{marked}");
        for part in ["é".repeat(5_000), "字".repeat(5_000), "\u{1}\u{7}".repeat(300)] {
            let snippet = of(&part, &Query::parse("é 字字").terms);
            assert!(snippet.text.len() <= LENGTH + 8, "{}", snippet.text.len());
        }
    }

    #[test]
    fn a_beginning_is_one_line_of_so_many_characters() {
        assert_eq!(beginning(" a\n b  c ", 10), "a b c");
        assert_eq!(beginning("hello world", 8), "hello wo…");
        assert_eq!(beginning(&"字".repeat(10), 3), "字字字…");
        assert_eq!(beginning("\u{1b}[2Jx", 9), "[2Jx");
        assert_eq!(beginning("", 3), "");
    }
}
