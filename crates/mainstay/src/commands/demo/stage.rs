//! What is shown: lines that fit the terminal, and nothing if JSON is wanted.

use std::io;

use clap::builder::styling::AnsiColor;

use crate::error::Error;
use crate::output::{self, Output};

/// The widest that prose is set, and the width where there is no terminal.
const WIDEST: usize = 80;
/// The narrowest.
const NARROWEST: usize = 30;

/// Where the demonstration is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    output: Output,
    json: bool,
    width: usize,
}

impl Stage {
    /// A stage as wide as the terminal.
    pub(super) fn new(output: Output, json: bool) -> Self {
        let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
        let width = match usize::from(columns) {
            0 => WIDEST,
            columns => columns.clamp(NARROWEST, WIDEST),
        };
        Self { output, json, width }
    }

    /// Prose: set in lines.
    pub(super) fn say(self, text: &str) -> Result<(), Error> {
        self.print(&set(text, self.width, ""))
    }

    /// Prose, with its lines indented below what they belong to.
    pub(super) fn below(self, indent: &str, text: &str) -> Result<(), Error> {
        self.print(&set(text, self.width, indent))
    }

    /// One line: the first word in a colour, the end cut where it does not fit.
    pub(super) fn line(self, mark: &str, colour: AnsiColor, rest: &str) -> Result<(), Error> {
        let room = self.width.saturating_sub(mark.chars().count() + 1);
        let mark = self.output.coloured(mark, colour);
        self.print(&format!("{mark} {}\n", cut(rest, room)))
    }

    /// A command as it can be pasted: never cut.
    pub(super) fn command(self, command: &str) -> Result<(), Error> {
        self.print(&format!("    {command}\n"))
    }

    /// An empty line.
    pub(super) fn gap(self) -> Result<(), Error> {
        self.print("\n")
    }

    fn print(self, text: &str) -> Result<(), Error> {
        if self.json { Ok(()) } else { output::print(text) }
    }
}

/// Text as lines of this width.
fn set(text: &str, width: usize, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in text.split_whitespace() {
        let begun = line.len() > indent.len();
        if begun && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(&line);
            lines.push('\n');
            line = indent.to_owned();
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// The beginning of a text, with a sign that it goes on.
fn cut(text: &str, room: usize) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    if text.chars().count() <= room {
        return text;
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_keeps_to_the_width_and_long_words_stay_whole() {
        assert_eq!(set("one two three", 7, ""), "one two\nthree\n");
        assert_eq!(set("one two", 5, "  "), "  one\n  two\n");
        assert_eq!(set("a unbreakable b", 4, ""), "a\nunbreakable\nb\n");
        assert_eq!(cut("sleep 1.5; sh", 9), "sleep 1.…");
        assert_eq!(cut("short", 9), "short");
    }
}
