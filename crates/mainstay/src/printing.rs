//! The one writer to standard output and standard error, outside of the chat's screen.
//!
//! Models, tools, providers, files and servers write much of what is printed. Whatever a command makes of
//! it, it reaches the terminal as text: no escape sequence, no control character, nothing that turns a
//! line round. Known secrets are left out here as well.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use clap::builder::styling::{AnsiColor, Style};

use crate::plain_text::{printable, printable_json};
use crate::redaction;

/// Stands before a colour in text that is to be printed. It is made anew in each process, so that nobody
/// else can write it: of the moment, the process, and where the kernel put it. Randomness may be what a
/// last word is about.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    let place = std::ptr::from_ref(&MARK).addr();
    (mainstay_store::wall_millis(), std::process::id(), place).hash(&mut hasher);
    format!("\u{1b}{:016x}", hasher.finish())
});
/// Ends what is coloured.
const PLAIN: char = '.';
/// The colours, each with the letter that names it after the mark.
const COLOURS: [(char, AnsiColor); 4] = [
    ('r', AnsiColor::Red),
    ('g', AnsiColor::Green),
    ('y', AnsiColor::Yellow),
    ('c', AnsiColor::Cyan),
];

/// A word that is printed in a colour.
pub(crate) fn coloured(word: &str, colour: AnsiColor) -> String {
    match COLOURS.iter().find(|(_, known)| *known == colour) {
        Some((name, _)) => format!("{mark}{name}{word}{mark}{PLAIN}", mark = *MARK),
        None => word.to_owned(),
    }
}

/// Writes text to standard output, with a line end after it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write_line(&mut io::stdout().lock(), &shown(text))
}

/// Writes JSON to standard output, with a line end after it.
pub(crate) fn print_json(json: &str) -> io::Result<()> {
    write_line(&mut io::stdout().lock(), &printable_json(&redaction::shared().text(json)))
}

/// Writes a document to standard output: byte for byte to a file or a program, as text to a terminal.
pub(crate) fn print_document(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return write_line(&mut stdout, &shown(&String::from_utf8_lossy(bytes)));
    }
    let mut bytes = bytes.to_vec();
    redaction::shared().bytes(&mut bytes);
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    stdout.write_all(&bytes).and_then(|()| stdout.flush())
}

/// Says something beside the answer, on standard error. With that gone there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = write_line(&mut io::stderr().lock(), &shown(text));
}

/// Says something on standard error and stays in the line, for what is typed next.
pub(crate) fn ask(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(shown(text).as_bytes()).and_then(|()| stderr.flush())
}

fn write_line(to: &mut impl Write, text: &str) -> io::Result<()> {
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    to.write_all(text.as_bytes()).and_then(|()| to.write_all(end)).and_then(|()| to.flush())
}

/// The text as a terminal gets it, for whoever writes it there in another way.
pub(crate) fn shown(text: &str) -> String {
    let text = redaction::shared().text(text);
    let mut pieces = text.split(MARK.as_str());
    let mut shown = pieces.next().map(|first| printable(first).into_owned()).unwrap_or_default();
    for piece in pieces {
        let mut letters = piece.chars();
        let name = letters.next();
        let bold = Style::new().bold();
        // Writing to a string does not fail.
        let _ = match COLOURS.iter().find(|(known, _)| Some(*known) == name) {
            Some((_, colour)) => write!(shown, "{}", bold.fg_color(Some((*colour).into()))),
            None => write!(shown, "{bold:#}"),
        };
        shown.push_str(&printable(letters.as_str()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_ours_alone() {
        let theirs = "\u{1b}[31mred\u{1b}[0m \u{1b}r";
        let text = format!("{} {theirs}\n", coloured("ok", AnsiColor::Green));
        assert_eq!(shown(&text), "\u{1b}[1m\u{1b}[32mok\u{1b}[0m red \n");
        assert_eq!(shown("plain\ttext\n"), "plain\ttext\n");
    }

    #[test]
    fn a_sequence_that_is_begun_before_a_colour_does_not_swallow_it() {
        let text = format!("\u{1b}]0;title{}", coloured("ok", AnsiColor::Red));
        assert_eq!(shown(&text), "\u{1b}[1m\u{1b}[31mok\u{1b}[0m");
    }
}
