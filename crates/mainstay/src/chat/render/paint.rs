//! Paints: what is finished is printed once and stays; only a few rows at the bottom are drawn anew.
//!
//! Each picture is one write, and rows are mostly written over rather than cleared first, so little
//! flickers also where a terminal knows nothing of synchronised updates.

use std::fmt::Write as _;

use crate::chat::render::text::{Colour, Line, Style};

/// The rows at the bottom, and where the cursor stands in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// None is wider than the screen.
    pub(crate) rows: Vec<Line>,
    /// Row and column; nothing hides it.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Whether colours are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// Knows what is on the screen.
#[derive(Debug)]
pub(crate) struct Painter {
    colours: Colours,
    width: usize,
    drawn: Live,
}

const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";

impl Painter {
    pub(crate) fn new(colours: Colours, width: usize) -> Self {
        Self { colours, width, drawn: Live::default() }
    }

    /// Prints lines above and draws the rows below them. The text is empty if nothing changed.
    pub(crate) fn draw(&mut self, above: &[Line], live: Live) -> String {
        if above.is_empty() && live == self.drawn {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        self.to_top(&mut out);
        if !above.is_empty() || live.rows.len() < self.drawn.rows.len() {
            out.push_str("\x1b[J");
        }
        for line in above {
            for row in line.rows(self.width.saturating_sub(1)) {
                self.row(&mut out, &row);
                out.push_str("\r\n");
            }
        }
        for (number, row) in live.rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            out.push_str("\x1b[K");
            self.row(&mut out, row);
        }
        let last = live.rows.len().saturating_sub(1);
        let (row, column) = live.cursor.unwrap_or((last, 0));
        up(&mut out, last.saturating_sub(row));
        out.push('\r');
        if column > 0 {
            let _ = write!(out, "\x1b[{column}C");
        }
        if live.cursor.is_some() {
            out.push_str("\x1b[?25h");
        }
        out.push_str(END);
        self.drawn = live;
        out
    }

    /// Takes the rows at the bottom away; the cursor stands where they began.
    pub(crate) fn clear(&mut self) -> String {
        let mut out = String::new();
        self.to_top(&mut out);
        out.push_str("\x1b[J\x1b[?25h");
        self.drawn = Live::default();
        out
    }

    /// The screen has another width. Terminals break rows that are too long now, and move the cursor
    /// along with them.
    pub(crate) fn resized(&mut self, width: usize) {
        let width = width.max(1);
        if width < self.width {
            let taken = |columns: usize| columns.div_ceil(width).max(1);
            let (row, column) = self.cursor();
            let before: usize =
                self.drawn.rows.iter().take(row).map(|row| taken(row.width())).sum();
            let rows: usize = self.drawn.rows.iter().map(|row| taken(row.width())).sum();
            let cursor = (before + column / width, column % width);
            // What matters from here on is how many rows there are.
            self.drawn.rows = vec![Line::default(); rows];
            self.drawn.cursor = Some(cursor);
        }
        self.width = width;
    }

    fn cursor(&self) -> (usize, usize) {
        self.drawn.cursor.unwrap_or((self.drawn.rows.len().saturating_sub(1), 0))
    }

    fn to_top(&self, out: &mut String) {
        out.push('\r');
        up(out, self.cursor().0);
    }

    fn row(&self, out: &mut String, row: &Line) {
        for span in &row.spans {
            let codes = codes(span.style(), self.colours);
            if codes.is_empty() {
                out.push_str(span.text());
            } else {
                let _ = write!(out, "\x1b[{codes}m{}\x1b[0m", span.text());
            }
        }
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

fn codes(style: Style, colours: Colours) -> String {
    let colour = style.colour.filter(|_| colours == Colours::On).map(|colour| match colour {
        Colour::Red => "31",
        Colour::Green => "32",
        Colour::Yellow => "33",
        Colour::Blue => "34",
        Colour::Magenta => "35",
        Colour::Cyan => "36",
    });
    let marks = [
        (style.bold, "1"),
        (style.dim, "2"),
        (style.italic, "3"),
        (style.underlined, "4"),
        (style.reversed, "7"),
        (style.struck, "9"),
    ];
    let marks = marks.into_iter().filter(|(on, _)| *on).map(|(_, code)| code);
    marks.chain(colour).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::tests::virtual_screen::{screen, shown};

    fn live(rows: &[&str], cursor: (usize, usize)) -> Live {
        Live { rows: rows.iter().map(|row| Line::plain(row)).collect(), cursor: Some(cursor) }
    }

    #[test]
    fn what_is_printed_stays_and_the_rest_is_drawn_over() {
        let mut parser = screen(6, 20);
        let mut painter = Painter::new(Colours::On, 20);
        parser.process(painter.draw(&[], live(&["tail", "> ed", "status"], (1, 4))).as_bytes());
        assert_eq!(shown(&parser), ["tail", "> ed", "status"]);
        assert_eq!(parser.screen().cursor_position(), (1, 4));
        let printed = [Line::plain("one"), Line::plain("two")];
        parser.process(painter.draw(&printed, live(&["> edit", "status"], (0, 6))).as_bytes());
        assert_eq!(shown(&parser), ["one", "two", "> edit", "status"]);
        parser.process(painter.draw(&[], live(&["> e"], (0, 3))).as_bytes());
        assert_eq!(shown(&parser), ["one", "two", "> e"]);
        let many: Vec<Line> = (0..9).map(|number| Line::plain(&format!("n{number}"))).collect();
        parser.process(painter.draw(&many, live(&["> e", "status"], (0, 3))).as_bytes());
        assert_eq!(shown(&parser), ["n5", "n6", "n7", "n8", "> e", "status"]);
        assert_eq!(parser.screen().cursor_position(), (4, 3));
        parser.process(painter.clear().as_bytes());
        assert_eq!(shown(&parser), ["n5", "n6", "n7", "n8"]);
    }

    #[test]
    fn long_lines_that_the_terminal_breaks_do_not_disturb() {
        let mut parser = screen(8, 10);
        let mut painter = Painter::new(Colours::Off, 10);
        parser.process(painter.draw(&[], live(&["xxxxxxxxx", "> ed"], (1, 4))).as_bytes());
        let mut code = Line::plain("0123456789abcdefghijklmno");
        code.wrap = crate::chat::render::text::Wrap::Terminal;
        parser.process(painter.draw(&[code], live(&["> ed"], (0, 4))).as_bytes());
        assert_eq!(shown(&parser), ["0123456789", "abcdefghij", "klmno", "> ed"]);
    }

    #[test]
    fn an_unchanged_picture_is_not_written_again() {
        let mut painter = Painter::new(Colours::On, 20);
        assert!(!painter.draw(&[], live(&["a"], (0, 1))).is_empty());
        assert!(painter.draw(&[], live(&["a"], (0, 1))).is_empty());
    }

    #[test]
    fn a_narrower_screen_has_more_rows_to_draw_over() {
        let mut painter = Painter::new(Colours::Off, 20);
        painter.draw(&[], live(&["0123456789abcdef", "> edit", "status"], (1, 6)));
        painter.resized(8);
        // Two rows of the first line, then the cursor's.
        assert!(painter.draw(&[], live(&["> e"], (0, 3))).contains("\r\x1b[2A"));
    }

    #[test]
    fn without_colours_no_colour_is_sent() {
        let mut painter = Painter::new(Colours::Off, 20);
        let row = Line::styled("x", Style::of(Colour::Red).strong());
        let sent = painter.draw(&[row], Live::default());
        assert!(sent.contains("\x1b[1mx") && !sent.contains("31"), "{sent:?}");
    }
}
