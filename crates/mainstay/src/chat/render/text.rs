//! Words with their looks. What is made here cannot hold a control sequence, whoever wrote it.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::plain_text::is_unprintable;

/// How words look. Colour never carries a meaning alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) colour: Option<Colour>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underlined: bool,
    pub(crate) struck: bool,
    pub(crate) reversed: bool,
}

/// The colours that every terminal lets its user choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Style {
    pub(crate) const PLAIN: Self = Self {
        colour: None,
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        struck: false,
        reversed: false,
    };
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };

    /// Plain words in a colour.
    pub(crate) const fn of(colour: Colour) -> Self {
        Self { colour: Some(colour), ..Self::PLAIN }
    }

    /// The same in bold.
    pub(crate) const fn strong(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// Words that look alike. They hold no control character: that is what this type is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Words for one row; whatever could move the cursor is left out.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        let text = text.chars().filter(|letter| !is_unprintable(*letter)).collect();
        Self { text, style }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

/// One line, however many rows it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    /// What stands before the further rows of a line that takes several.
    pub(crate) hang: Vec<Span>,
    pub(crate) wrap: Wrap,
}

/// What is done with a line that is too long for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// It is broken between words.
    #[default]
    Words,
    /// It is left to the terminal, so that it can be copied as it is.
    Terminal,
    /// It is cut.
    Cut,
}

impl Line {
    pub(crate) fn plain(text: &str) -> Self {
        Self::styled(text, Style::PLAIN)
    }

    pub(crate) fn dim(text: &str) -> Self {
        Self::styled(text, Style::DIM)
    }

    pub(crate) fn styled(text: &str, style: Style) -> Self {
        Self { spans: vec![Span::new(text, style)], ..Self::default() }
    }

    /// Adds words.
    #[must_use]
    pub(crate) fn and(mut self, text: &str, style: Style) -> Self {
        self.spans.push(Span::new(text, style));
        self
    }

    /// Begins the further rows with this.
    #[must_use]
    pub(crate) fn hanging(mut self, text: &str, style: Style) -> Self {
        self.hang = vec![Span::new(text, style)];
        self
    }

    /// Cuts it where it is too long.
    #[must_use]
    pub(crate) fn cut(mut self) -> Self {
        self.wrap = Wrap::Cut;
        self
    }

    /// The words alone.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// The rows it takes on a screen of this width; where the terminal is to break it, it is one.
    pub(crate) fn rows(&self, width: usize) -> Vec<Line> {
        let width = width.max(2);
        if self.wrap == Wrap::Terminal || self.width() <= width {
            return vec![self.clone()];
        }
        match self.wrap {
            Wrap::Cut => vec![self.clipped(width)],
            _ => self.broken(width),
        }
    }

    fn clipped(&self, width: usize) -> Line {
        let mut row = Line::default();
        let mut left = width.saturating_sub(1);
        'spans: for span in &self.spans {
            let mut text = String::new();
            for cluster in span.text.graphemes(true) {
                let wide = cluster.width();
                if wide > left {
                    row.push_span(&text, span.style);
                    row.push_span("…", span.style);
                    break 'spans;
                }
                left -= wide;
                text.push_str(cluster);
            }
            row.push_span(&text, span.style);
        }
        row
    }

    fn broken(&self, width: usize) -> Vec<Line> {
        let hang = match self.hang.iter().map(|span| span.text.width()).sum::<usize>() {
            wide if wide * 2 > width => &[][..],
            _ => &self.hang[..],
        };
        let mut rows = vec![Line::default()];
        let mut used = 0;
        let begin = |rows: &mut Vec<Line>| {
            rows.push(Line { spans: hang.to_vec(), ..Line::default() });
            hang.iter().map(|span| span.text.width()).sum::<usize>()
        };
        for (word, gap) in split_words(&self.spans) {
            let wide = word.iter().map(|(cluster, _)| cluster.width()).sum::<usize>();
            let indent = if rows.len() == 1 { 0 } else { used_by(hang) };
            if used > indent && used + wide > width {
                used = begin(&mut rows);
            }
            for (cluster, style) in word {
                let wide = cluster.width();
                if used + wide > width {
                    used = begin(&mut rows);
                }
                used += wide;
                if let Some(row) = rows.last_mut() {
                    row.push_span(cluster, style);
                }
            }
            // A gap at the end of a row is not carried over.
            let wide: usize = gap.iter().map(|(cluster, _)| cluster.width()).sum();
            if used + wide <= width {
                used += wide;
                for (cluster, style) in gap {
                    if let Some(row) = rows.last_mut() {
                        row.push_span(cluster, style);
                    }
                }
            } else if !gap.is_empty() {
                used = width;
            }
        }
        rows
    }

    fn push_span(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), style }),
        }
    }
}

fn used_by(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.text.width()).sum()
}

type Clusters<'a> = Vec<(&'a str, Style)>;

/// The words of a line, each with the gap after it.
fn split_words(spans: &[Span]) -> Vec<(Clusters<'_>, Clusters<'_>)> {
    let mut found: Vec<(Clusters<'_>, Clusters<'_>)> = vec![(Vec::new(), Vec::new())];
    for span in spans {
        for cluster in span.text.graphemes(true) {
            let blank = cluster == " ";
            if let Some((word, gap)) = found.last_mut() {
                if blank {
                    gap.push((cluster, span.style));
                    continue;
                }
                // Wide letters may be parted anywhere, as their writers do.
                if gap.is_empty() && cluster.width() < 2 {
                    word.push((cluster, span.style));
                    continue;
                }
            }
            found.push((vec![(cluster, span.style)], Vec::new()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize) -> Vec<String> {
        let line = Line::plain(text).hanging("  ", Style::PLAIN);
        line.rows(width).iter().map(Line::text).collect()
    }

    #[test]
    fn lines_break_between_words_and_hang() {
        assert_eq!(rows("one two three four", 9), ["one two ", "  three ", "  four"]);
        assert_eq!(rows("abcdefghijkl", 5), ["abcde", "  fgh", "  ijk", "  l"]);
        assert_eq!(rows("語語語語", 5), ["語語", "  語", "  語"]);
        assert_eq!(rows("", 5), [""]);
    }

    #[test]
    fn no_row_is_wider_than_the_screen() {
        let text = "a bb ccc 語語語 👩‍👩‍👧 e\u{301}e\u{301} dddddddddddddddd  x";
        for width in 2..40 {
            for row in Line::plain(text).hanging("    ", Style::DIM).rows(width) {
                assert!(row.width() <= width, "{width}: {row:?}");
            }
        }
    }

    #[test]
    fn a_span_has_no_control_character_whatever_it_is_made_of() {
        let all: String = (0..=0x0010_ffff_u32).filter_map(char::from_u32).collect();
        let span = Span::new(&all, Style::PLAIN);
        assert!(!span.text().chars().any(char::is_control));
    }
}
