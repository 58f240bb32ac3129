//! The editor: several lines, words, a cursor, and pastes that are shown folded and sent whole.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::chat::render::text::{Line, Span, Style};
use crate::plain_text::clean;

/// Letters that stand for pastes. Nobody can type them, and pastes are rid of them.
const FIRST_PASTE: char = '\u{10f800}';
const LAST_PASTE: char = '\u{10ffff}';
/// A paste with more lines or bytes than this is folded.
const FOLDED_LINES: usize = 8;
const FOLDED_BYTES: usize = 1_000;

/// What is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte between two letters of the text.
    cursor: usize,
    pastes: Vec<String>,
    /// What was cut last.
    cut: String,
}

/// Where the cursor goes, or from where to it something is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

impl Editor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is written, pastes folded.
    pub(crate) fn folded(&self) -> &str {
        &self.text
    }

    /// The byte that the cursor stands before.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// What is written, whole.
    pub(crate) fn whole(&self) -> String {
        let mut whole = String::with_capacity(self.text.len());
        for letter in self.text.chars() {
            match self.paste(letter) {
                Some(paste) => whole.push_str(paste),
                None => whole.push(letter),
            }
        }
        whole
    }

    /// Takes it all out.
    pub(crate) fn take(&mut self) -> String {
        let whole = self.whole();
        self.set("");
        whole
    }

    /// Replaces it all; the cursor stands at the end.
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.pastes.clear();
        self.cursor = 0;
        self.paste_in(text);
    }

    /// Writes at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Writes what came from the clipboard; much of it is folded.
    pub(crate) fn paste_in(&mut self, text: &str) {
        let text: String = clean(&text.replace("\r\n", "\n").replace('\r', "\n"))
            .chars()
            .filter(|letter| !(FIRST_PASTE..=LAST_PASTE).contains(letter))
            .collect();
        let number = u32::try_from(self.pastes.len()).unwrap_or(u32::MAX);
        let letter = char::from_u32(u32::from(FIRST_PASTE).saturating_add(number));
        let long = text.lines().count() > FOLDED_LINES || text.len() > FOLDED_BYTES;
        match letter {
            Some(letter) if long => {
                self.pastes.push(text);
                self.insert(letter.encode_utf8(&mut [0; 4]));
            }
            _ => self.insert(&text),
        }
    }

    /// Replaces the bytes from `from` to the cursor.
    pub(crate) fn replace_back_to(&mut self, from: usize, text: &str) {
        if from <= self.cursor && self.text.is_char_boundary(from) {
            self.text.replace_range(from..self.cursor, "");
            self.cursor = from;
            self.insert(text);
        }
    }

    /// Moves the cursor.
    pub(crate) fn go(&mut self, to: Motion) {
        self.cursor = self.place(to);
    }

    /// Removes what lies between the cursor and a place; words and lines can be put back.
    pub(crate) fn remove(&mut self, to: Motion) {
        let place = self.place(to);
        let (from, end) = (place.min(self.cursor), place.max(self.cursor));
        let removed: String = self.text.drain(from..end).collect();
        self.cursor = from;
        if !matches!(to, Motion::Left | Motion::Right) && !removed.is_empty() {
            self.cut = removed;
        }
    }

    /// Puts back what was cut last.
    pub(crate) fn put_back(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }

    /// Moves a row up or down on a screen of this width; false where there is no such row.
    pub(crate) fn go_rows(&mut self, rows: isize, width: usize) -> bool {
        let layout = self.layout(width);
        let (row, column) = layout.cursor;
        let Some(wanted) = row.checked_add_signed(rows).filter(|row| *row < layout.rows.len())
        else {
            return false;
        };
        let places = layout.places.iter().filter(|place| place.row == wanted);
        let nearest = places.min_by_key(|place| place.column.abs_diff(column));
        if let Some(place) = nearest {
            self.cursor = place.byte;
        }
        true
    }

    /// The rows on a screen of this width, with the prompt before them, and the cursor in them.
    pub(crate) fn rows(&self, width: usize) -> (Vec<Line>, (usize, usize)) {
        let layout = self.layout(width);
        (layout.rows, layout.cursor)
    }

    fn paste(&self, letter: char) -> Option<&str> {
        let number = u32::from(letter).checked_sub(u32::from(FIRST_PASTE))?;
        self.pastes.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    fn label(&self, letter: char) -> Option<String> {
        let paste = self.paste(letter)?;
        let lines = paste.lines().count();
        Some(match lines {
            0 | 1 => format!("[pasted {} letters]", paste.chars().count()),
            lines => format!("[pasted {lines} lines]"),
        })
    }

    fn place(&self, to: Motion) -> usize {
        let (before, after) = (&self.text[..self.cursor], &self.text[self.cursor..]);
        let first_len = |text: &str| text.graphemes(true).next().map_or(0, str::len);
        match to {
            Motion::Left => self.cursor - before.graphemes(true).next_back().map_or(0, str::len),
            Motion::Right => self.cursor + first_len(after),
            Motion::LineStart => before.rfind('\n').map_or(0, |end| end + 1),
            Motion::LineEnd => after.find('\n').map_or(self.text.len(), |end| self.cursor + end),
            Motion::Start => 0,
            Motion::End => self.text.len(),
            Motion::WordLeft => {
                let word = before.trim_end_matches(|letter| !is_of_word(letter));
                word.trim_end_matches(is_of_word).len()
            }
            Motion::WordRight => {
                let rest = after.trim_start_matches(|letter| !is_of_word(letter));
                self.text.len() - rest.trim_start_matches(is_of_word).len()
            }
        }
    }

    fn layout(&self, width: usize) -> Layout {
        let width = width.max(PROMPT.len() + 2);
        let mut layout = Layout::default();
        layout.row(Line::styled(PROMPT, Style::BOLD));
        let mut byte = 0;
        for cluster in self.text.graphemes(true) {
            if byte == self.cursor {
                layout.cursor = layout.end();
            }
            layout.place(byte);
            let letter = cluster.chars().next().unwrap_or(' ');
            if cluster.ends_with('\n') {
                layout.row(Line::plain(REST));
            } else if let Some(label) = self.label(letter) {
                let style = Style { reversed: true, ..Style::PLAIN };
                layout.put(&label, style, width);
            } else {
                layout.put(cluster, Style::PLAIN, width);
            }
            byte += cluster.len();
        }
        if byte == self.cursor {
            // The cursor itself needs a place.
            if layout.end().1 >= width {
                layout.row(Line::plain(REST));
            }
            layout.cursor = layout.end();
        }
        layout.place(byte);
        layout
    }
}

const PROMPT: &str = "› ";
const REST: &str = "  ";

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The text on the screen.
#[derive(Default)]
struct Layout {
    rows: Vec<Line>,
    cursor: (usize, usize),
    places: Vec<Place>,
}

/// Where a letter stands.
struct Place {
    byte: usize,
    row: usize,
    column: usize,
}

impl Layout {
    fn row(&mut self, row: Line) {
        self.rows.push(row);
    }

    fn end(&self) -> (usize, usize) {
        (self.rows.len().saturating_sub(1), self.rows.last().map_or(0, Line::width))
    }

    fn place(&mut self, byte: usize) {
        let (row, column) = self.end();
        self.places.push(Place { byte, row, column });
    }

    fn put(&mut self, text: &str, style: Style, width: usize) {
        for cluster in text.graphemes(true) {
            if self.end().1 + cluster.width() > width {
                self.row(Line::plain(REST));
            }
            if let Some(row) = self.rows.last_mut() {
                row.spans.push(Span::new(cluster, style));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    fn shown(editor: &Editor, width: usize) -> (Vec<String>, (usize, usize)) {
        let (rows, cursor) = editor.rows(width);
        (rows.iter().map(Line::text).collect(), cursor)
    }

    #[test]
    fn letters_of_several_parts_are_one_letter() {
        let mut editor = typed("a👩‍👩‍👧e\u{301}");
        editor.remove(Motion::Left);
        assert_eq!(editor.whole(), "a👩‍👩‍👧");
        editor.go(Motion::Left);
        editor.insert("b");
        assert_eq!(editor.whole(), "ab👩‍👩‍👧");
    }

    #[test]
    fn words_and_lines_are_cut_and_put_back() {
        let mut editor = typed("one two-three\nfour");
        editor.remove(Motion::WordLeft);
        editor.go(Motion::Left);
        editor.remove(Motion::WordLeft);
        assert_eq!(editor.whole(), "one two-\n");
        editor.put_back();
        assert_eq!(editor.whole(), "one two-three\n");
        editor.remove(Motion::LineStart);
        assert_eq!(editor.whole(), "\n");
        editor.go(Motion::End);
        editor.put_back();
        assert_eq!(editor.whole(), "\none two-three");
    }

    #[test]
    fn the_cursor_is_where_the_next_letter_goes() {
        assert_eq!(shown(&typed(""), 10), (vec!["› ".into()], (0, 2)));
        assert_eq!(shown(&typed("abcdefgh"), 10).1, (1, 2));
        assert_eq!(shown(&typed("語語語語"), 11).0, ["› 語語語語"]);
        let mut editor = typed("first\nsecond line");
        editor.go(Motion::Left);
        assert_eq!(
            shown(&editor, 9),
            (vec!["› first".into(), "  second ".into(), "  line".into()], (2, 5))
        );
        assert!(editor.go_rows(-2, 9));
        assert_eq!(editor.cursor(), 3);
        assert!(!editor.go_rows(-1, 9));
    }

    #[test]
    fn a_big_paste_is_folded_and_sent_whole() {
        let mut editor = typed("see: ");
        let text: String = (0..500).map(|line| format!("line {line}\r\n")).collect();
        editor.paste_in(&text);
        editor.insert(" ok?");
        assert_eq!(shown(&editor, 60).0, ["› see: [pasted 500 lines] ok?"]);
        assert_eq!(editor.whole(), format!("see: {} ok?", text.replace('\r', "")));
        for _ in 0..5 {
            editor.remove(Motion::Left);
        }
        assert_eq!(editor.whole(), "see: ");
        editor.paste_in("small\ntext");
        assert_eq!(editor.folded(), "see: small\ntext");
    }

    #[test]
    fn a_paste_cannot_send_sequences_nor_pass_for_a_fold() {
        let mut editor = Editor::default();
        editor.paste_in("a\u{1b}[2Jb\u{10f800}c");
        assert_eq!(editor.whole(), "abc");
    }
}
