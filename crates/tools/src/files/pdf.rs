//! PDF files for `read_file`: text by page.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::LARGE;
use super::blocking::Stop;
use super::open::Patient;
use super::seen::fact;
use super::text::{hexadecimal, size};
use crate::reader::{Pages, Pdf, Reader};
use crate::{Fact, Outcome};

/// How such a file begins.
pub(super) const MARK: &[u8] = b"%PDF-";
/// The most text that one call shows.
const SHOWN_BYTES: usize = 48 << 10;

/// A PDF file that is open, and what is wanted of it.
pub(super) struct Document {
    file: File,
    path: PathBuf,
    shown: String,
    pages: Pages,
    fact: Option<Fact>,
    too_large: bool,
}

impl Document {
    pub(super) fn new(
        file: File,
        path: &Path,
        shown: &str,
        offset: Option<u64>,
        limit: Option<u64>,
    ) -> Self {
        let pages =
            Pages { first: offset.unwrap_or(1).max(1), count: limit.unwrap_or(u64::MAX).max(1) };
        let path = path.to_owned();
        let shown = shown.to_owned();
        Self { file, path, shown, pages, fact: None, too_large: false }
    }

    /// Takes note of how the file looks, and puts it at its beginning.
    pub(super) fn hashed(mut self, length: u64, stop: &Stop) -> io::Result<Self> {
        self.too_large = length > LARGE;
        if self.too_large {
            return Ok(self);
        }
        self.file.rewind()?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 << 10];
        let mut reader = Patient::new(&mut self.file, stop);
        loop {
            match reader.read(&mut buffer)? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        self.fact = Some(fact(&self.path, hexadecimal(&hasher.finalize()), false));
        self.file.rewind()?;
        Ok(self)
    }

    /// Reads the pages that are wanted.
    pub(super) async fn read(self, reader: Option<&Reader>) -> Outcome {
        let shown = &self.shown;
        if self.too_large {
            return Outcome::failed(format!("{shown} is a PDF file of more than {}.", size(LARGE)));
        }
        let Some(reader) = reader else {
            return Outcome::failed(format!(
                "{shown} is a PDF file, and PDF files cannot be read here."
            ));
        };
        match reader.pdf_file(self.file, self.pages).await {
            Ok(found) => pages_outcome(shown, self.pages, &found, self.fact),
            Err(wrong) => Outcome::failed(format!(
                "{shown} is a PDF file, but {wrong}. Use `shell` if there is a program for it."
            )),
        }
    }
}

/// What the model reads: whole pages, as many as fit.
fn pages_outcome(shown: &str, wanted: Pages, found: &Pdf, fact: Option<Fact>) -> Outcome {
    let total = found.total;
    let Some((first, _)) = found.pages.first() else {
        return Outcome::failed(format!(
            "{shown} has only {total} pages; there is no page {}.",
            wanted.first
        ));
    };
    let mut text = String::new();
    let mut last = *first;
    let mut clipped = false;
    for (number, page) in &found.pages {
        let page = format!("--- page {number} ---\n{page}\n");
        if text.is_empty() && page.len() > SHOWN_BYTES {
            text.push_str(&page[..page.floor_char_boundary(SHOWN_BYTES)]);
            clipped = true;
        } else if text.len() + page.len() > SHOWN_BYTES {
            break;
        } else {
            text.push_str(&page);
        }
        last = *number;
    }
    let mut words = match (*first, last) {
        (1, last) if last == total => format!("{shown}, a PDF file with {total} pages."),
        (first, last) => format!("{shown}, pages {first} to {last} of {total}."),
    };
    if last < total {
        words.push_str(&format!(" Read on with offset {}.", last + 1));
    }
    if clipped {
        words.push_str(&format!(" The text of page {last} continues."));
    }
    let mut outcome = if found.is_blank() {
        Outcome::said(format!("{words} No text: {}.", found.blankness()))
    } else {
        Outcome::said(words).data(text)
    };
    if !found.title.is_empty() {
        outcome = outcome.data(format!("Title: {}", found.title));
    }
    outcome.facts.extend(fact);
    outcome
}
