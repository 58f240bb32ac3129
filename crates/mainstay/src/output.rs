//! How answers look: the answer to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;

use clap::builder::styling::AnsiColor;
use mainstay_store::fsatomic;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::env;
use crate::error::Error;
use crate::printing;

/// Prints for one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colour: bool,
    quiet: bool,
}

impl Output {
    /// Prints text for people, or JSON.
    pub(crate) fn new(json: bool) -> Self {
        let colour = !json && io::stdout().is_terminal() && env::NO_COLOR.get().is_none();
        Self { json, colour, quiet: false }
    }

    /// The same without warnings, for whoever was given them already.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Whether colours are wanted.
    pub(crate) fn is_coloured(self) -> bool {
        self.colour
    }

    /// Prints the answer, in one of its two forms.
    pub(crate) fn answer(&self, data: &impl Serialize, text: &str) -> Result<(), Error> {
        if self.json {
            let data = serde_json::to_string_pretty(data).map_err(|error| {
                Error::failed(format!("could not write the answer as JSON: {error}"))
            })?;
            printed(printing::print_json(&data))
        } else {
            printed(printing::print(text))
        }
    }

    /// Prints a document as it is.
    pub(crate) fn document(self, bytes: &[u8]) -> Result<(), Error> {
        printed(printing::print_document(bytes))
    }

    /// Writes a document to a file that does not exist yet, or prints it where none is named. Answers
    /// the file.
    pub(crate) fn document_to<'a>(
        self,
        to: Option<&'a Path>,
        bytes: &[u8],
    ) -> Result<Option<&'a Path>, Error> {
        let Some(path) = to else {
            self.document(bytes)?;
            return Ok(None);
        };
        if path.symlink_metadata().is_ok() {
            return Err(Error::usage(format!("{} already exists", path.display()))
                .hint("Pass a file that does not exist yet."));
        }
        fsatomic::write(path, bytes, fsatomic::PRIVATE_FILE).map_err(|error| {
            Error::failed(format!("could not write {}: {error}", path.display()))
                .hint("Pass a writable place with --to FILE.")
        })?;
        Ok(Some(path))
    }

    /// Says something that does not stop the work.
    pub(crate) fn warning(self, text: impl Display) {
        if self.quiet {
            return;
        }
        printing::say(&format!("warning: {text}"));
    }

    /// Says something that is good to know. A script is not told.
    pub(crate) fn note(self, text: impl Display) {
        if !self.json {
            printing::say(&format!("note: {text}"));
        }
    }

    /// Says what went wrong and what to do next. With JSON the same goes to standard output, so
    /// that a script reads one stream.
    pub(crate) fn error(self, error: &Error) {
        let mut text = format!("error: {}\n", error.message);
        for hint in &error.hints {
            text.push_str(&format!("hint: {hint}\n"));
        }
        // With standard error gone the exit code still tells.
        printing::say(&text);
        if self.json {
            self.error_as_data(error);
        }
    }

    /// Prints an error as the answer.
    pub(crate) fn error_as_data(self, error: &Error) {
        let Error { kind, message, hints } = error;
        let data = json!({ "error": { "kind": kind, "message": message, "hints": hints } });
        // Where it cannot be printed the exit code still tells.
        let _ = self.answer(&data, "");
    }

    /// A word in a colour, where colours are wanted. The word alone must say it all.
    pub(crate) fn coloured(self, word: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return word.to_owned();
        }
        printing::coloured(word, colour)
    }
}

/// Pairs as one JSON object, in their order.
pub(crate) fn object<T: Clone + Into<Value>>(pairs: &[(String, T)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect()
}

/// Prints text with a line end after it.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    printed(printing::print(text))
}

/// A reader that has seen enough (`| head -1`) is no error.
fn printed(written: io::Result<()>) -> Result<(), Error> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("could not write the answer: {error}"))
                .hint("Check where standard output goes."))
        }
        _ => Ok(()),
    }
}
