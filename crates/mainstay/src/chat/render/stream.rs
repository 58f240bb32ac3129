//! Markdown as it comes: what cannot change any more is finished, the rest is the tail.

use crate::chat::render::highlight::Highlighter;
use crate::chat::render::markdown;
use crate::chat::render::text::{Line, Style};
use crate::plain_text::clean;

/// The words of a message while they come.
#[derive(Default)]
pub(crate) struct Stream {
    /// What is not finished yet.
    text: String,
    fence: Option<Fence>,
    /// Whether anything was finished, and what stands between that and the next.
    any: bool,
    gap: bool,
    /// The end of an escape sequence or a line may come with the next words.
    raw: String,
}

/// A block of code that is not closed yet.
#[derive(Clone)]
struct Fence {
    mark: char,
    length: usize,
    code: Highlighter,
}

/// Where a piece ends.
enum Cut {
    /// At this byte; the piece is whole.
    At(usize),
    /// More has to come first.
    Later,
}

impl Stream {
    /// Takes the next words in.
    pub(crate) fn push(&mut self, delta: &str) {
        self.raw.push_str(delta);
        // A sequence may be cut in the middle of the words; whole lines are safe.
        if let Some(end) = self.raw.rfind('\n') {
            let rest = self.raw.split_off(end + 1);
            self.text.push_str(&clean(&self.raw));
            self.raw = rest;
        }
    }

    /// Whether there is nothing that is not finished.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.raw.trim().is_empty() && self.fence.is_none()
    }

    /// The lines that are finished since the last time.
    pub(crate) fn finished(&mut self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while !self.text.is_empty() {
            let before = self.text.len();
            if self.fence.is_some() {
                self.code_line(&mut lines);
            } else {
                match self.cut() {
                    Cut::At(end) => {
                        let piece: String = self.text.drain(..end).collect();
                        self.piece(&piece, width, &mut lines);
                    }
                    Cut::Later => break,
                }
            }
            if self.text.len() == before {
                break;
            }
        }
        lines
    }

    /// The lines of what is not finished.
    pub(crate) fn tail(&self, width: usize) -> Vec<Line> {
        let rest = format!("{}{}", self.text, clean(&self.raw));
        let mut lines = Vec::new();
        if self.any && self.gap && !rest.trim().is_empty() {
            lines.push(Line::default());
        }
        match &self.fence {
            Some(fence) => {
                let mut code = fence.code.clone();
                lines.extend(rest.lines().map(|line| code.line(line, INDENT)));
            }
            None => lines.extend(markdown::render(&rest, width)),
        }
        lines
    }

    /// The rest, as it is; the next words begin a message of their own.
    pub(crate) fn end(&mut self, width: usize) -> Vec<Line> {
        let raw = std::mem::take(&mut self.raw);
        self.text.push_str(&clean(&raw));
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        // A blank line and a word decide whatever was left open.
        let mut lines = self.finished(width);
        if self.fence.is_none() && !self.text.trim().is_empty() {
            let piece = std::mem::take(&mut self.text);
            self.piece(&piece, width, &mut lines);
        }
        *self = Self::default();
        lines
    }

    /// Forgets what is not finished.
    pub(crate) fn void(&mut self) {
        *self = Self::default();
    }

    /// Whether something of the message was finished.
    pub(crate) fn has_finished(&self) -> bool {
        self.any
    }

    /// The end of the first piece: blank lines, a fence, a heading, an item of a list, or whatever
    /// stands up to the next blank line.
    fn cut(&self) -> Cut {
        let mut end = 0;
        let mut kind = Kind::Nothing;
        for line in self.text.split_inclusive('\n') {
            if !line.ends_with('\n') {
                return Cut::Later;
            }
            let this = Kind::of(line);
            match (kind, this) {
                (Kind::Nothing, Kind::Blank | Kind::Fence | Kind::Heading) => {
                    return Cut::At(line.len());
                }
                (Kind::Nothing, _) => kind = this,
                // A paragraph within an item is indented; whether this is one is told by what comes.
                (Kind::Item, Kind::Blank) => {
                    let rest = &self.text[end..];
                    let Some(next) = rest.find(|letter: char| !letter.is_whitespace()) else {
                        return Cut::Later;
                    };
                    let indented = rest[..next].ends_with([' ', '\t']);
                    if !indented {
                        return Cut::At(end);
                    }
                }
                (Kind::Item, Kind::Item) | (_, Kind::Blank | Kind::Fence | Kind::Heading) => {
                    return Cut::At(end);
                }
                _ => {}
            }
            end += line.len();
        }
        Cut::Later
    }

    fn piece(&mut self, piece: &str, width: usize, lines: &mut Vec<Line>) {
        match Kind::of(piece.split_inclusive('\n').next().unwrap_or_default()) {
            Kind::Blank => self.gap = true,
            Kind::Fence => {
                let line = piece.trim();
                let mark = line.chars().next().unwrap_or('`');
                let length = line.chars().take_while(|letter| *letter == mark).count();
                let language = line.trim_start_matches(mark).trim();
                self.between(lines, true);
                self.fence = Some(Fence { mark, length, code: Highlighter::of(language) });
                if !language.is_empty() {
                    lines.push(Line::styled(&format!("{INDENT}{language}"), Style::DIM));
                }
                self.any = true;
            }
            kind => {
                let rendered = markdown::render(piece, width);
                if rendered.is_empty() {
                    return;
                }
                self.between(lines, kind == Kind::Heading);
                lines.extend(rendered);
                self.any = true;
                self.gap |= kind == Kind::Heading;
            }
        }
    }

    /// Puts a blank line between what was finished and what comes.
    fn between(&mut self, lines: &mut Vec<Line>, always: bool) {
        if (std::mem::take(&mut self.gap) || always) && self.any {
            lines.push(Line::default());
        }
    }

    fn code_line(&mut self, lines: &mut Vec<Line>) {
        let Some(end) = self.text.find('\n') else { return };
        let Some(fence) = &mut self.fence else { return };
        let line: String = self.text.drain(..=end).collect();
        let line = line.trim_end_matches('\n');
        let closing = line.trim();
        let marks = closing.chars().take_while(|letter| *letter == fence.mark).count();
        if marks >= fence.length && marks == closing.chars().count() {
            self.fence = None;
            self.gap = true;
        } else {
            lines.push(fence.code.line(line, INDENT));
        }
    }
}

/// Code stands a little to the right.
const INDENT: &str = "  ";

/// What a line at the left edge begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Blank,
    Fence,
    Heading,
    Item,
    Other,
}

impl Kind {
    fn of(line: &str) -> Self {
        let line = line.trim_end();
        if line.is_empty() {
            return Self::Blank;
        }
        if line.starts_with("```") && !line[3..].contains('`') || line.starts_with("~~~") {
            return Self::Fence;
        }
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') {
            return Self::Heading;
        }
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = (1..=9).contains(&digits)
            && (line[digits..].starts_with(". ") || line[digits..].starts_with(") "));
        let marked = ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark));
        // Three marks alone are a rule.
        let rule = line.bytes().all(|byte| b"-*+ ".contains(&byte)) && line.len() > 2;
        if (numbered || marked) && !rule { Self::Item } else { Self::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "# Plan\nFirst *some* words\nover two lines.\n\n1. one\n2. two\n   more\n\n   \
        still two\n3. three\n\nBetween.\n```rust\nfn main() {\n\n    // `x`\n}\n```\nAfter **it**.\n\n\
        - a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~\nplain\n~~~\nLast words";

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn however_the_words_come_the_lines_are_the_same() {
        let mut whole = Stream::default();
        whole.push(SOURCE);
        let mut expected = whole.finished(60);
        expected.extend(whole.end(60));
        insta::assert_snapshot!(texts(&expected).join("\n"));
        for size in 1..=7 {
            let mut stream = Stream::default();
            let mut lines = Vec::new();
            let letters: Vec<char> = SOURCE.chars().collect();
            for piece in letters.chunks(size) {
                stream.push(&piece.iter().collect::<String>());
                lines.extend(stream.finished(60));
                let _ = stream.tail(60);
            }
            lines.extend(stream.end(60));
            assert_eq!(texts(&lines), texts(&expected), "{size}");
        }
    }

    #[test]
    fn code_is_finished_line_by_line() {
        let mut stream = Stream::default();
        stream.push("```python\nx = 1\ny = ");
        assert_eq!(texts(&stream.finished(60)), ["  python", "  x = 1"]);
        assert_eq!(texts(&stream.tail(60)), ["  y = "]);
        stream.push("2");
        assert_eq!(texts(&stream.end(60)), ["  y = 2"]);
        assert!(stream.is_empty());
    }

    #[test]
    fn a_sequence_cut_in_two_does_not_come_through() {
        let mut stream = Stream::default();
        for piece in ["a \u{1b}", "]0;t", "itle\u{7} b \u{1b}[3", "1mc\n\n"] {
            stream.push(piece);
            for line in stream.tail(60) {
                assert!(!line.text().contains('\u{1b}'));
            }
        }
        assert_eq!(texts(&stream.finished(60)), ["a  b c"]);
    }
}
