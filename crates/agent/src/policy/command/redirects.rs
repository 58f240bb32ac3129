//! Redirections and here-documents.

use super::parse::{Dialect, Parsed, Parser, is_break};
use super::syntax::{Redirect, Way, Word};

/// A here-document whose text comes after its line.
pub(super) struct Awaited {
    place: usize,
    delimiter: String,
    expands: bool,
    strips_tabs: bool,
}

impl Parser<'_> {
    /// Reads a redirection, if one begins here.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let start = self.at;
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.skip(1)?;
        }
        // `{name}>file` puts the number of the descriptor into a variable.
        if self.at == start && self.dialect == Dialect::Bash && self.peek() == Some('{') {
            let mut end = 1;
            while self.peek_at(end).is_some_and(|next| next == '_' || next.is_ascii_alphanumeric())
            {
                end += 1;
            }
            if self.peek_at(end) == Some('}') && matches!(self.peek_at(end + 1), Some('<' | '>')) {
                let name = self.text[self.at + 1..self.at + end].iter().collect();
                self.shared.calculated.push(name);
                self.skip(end + 1)?;
            }
        }
        let both = self.dialect == Dialect::Bash && self.looking_at("&>");
        if !both && !matches!(self.peek(), Some('<' | '>')) || self.at_process_substitution() {
            self.at = start;
            return Ok(None);
        }
        const SIGNS: [(&str, Way); 11] = [
            ("&>>", Way::Out),
            ("&>", Way::Out),
            ("<<<", Way::Words),
            ("<<-", Way::Document(1)),
            ("<<", Way::Document(0)),
            ("<>", Way::Out),
            ("<&", Way::Descriptor),
            (">&", Way::Descriptor),
            (">>", Way::Out),
            (">|", Way::Out),
            ("<", Way::In),
        ];
        let found = SIGNS.into_iter().find(|(sign, _)| self.looking_at(sign));
        let (sign, way) = found.unwrap_or((">", Way::Out));
        let is_out = sign.contains('>');
        self.skip(sign.len())?;
        self.skip_blanks()?;
        if self.peek().is_none_or(is_break) && !self.at_process_substitution() {
            return Err("a redirection has no target");
        }
        if let Way::Document(strips_tabs) = way {
            return Ok(Some(self.document(strips_tabs == 1)?));
        }
        let target = self.word()?;
        let way = match way {
            Way::Descriptor => match target.literal() {
                Some(text) if text.chars().all(|next| next.is_ascii_digit() || next == '-') => {
                    Way::Descriptor
                }
                _ if is_out => Way::Out,
                _ => Way::In,
            },
            way => way,
        };
        Ok(Some(Redirect { way, target }))
    }

    fn document(&mut self, strips_tabs: bool) -> Parsed<Redirect> {
        let start = self.at;
        let word = self.word()?;
        let Some(delimiter) = word.literal() else {
            return Err("the end of a here-document is not plain");
        };
        let written: String = self.text[start..self.at].iter().collect();
        if written.contains('\n') {
            return Err("the end of a here-document is not plain");
        }
        let place = self.shared.documents.len();
        self.shared.documents.push(Word::anything());
        self.awaited.push(Awaited { place, expands: written == delimiter, delimiter, strips_tabs });
        Ok(Redirect { way: Way::Document(place), target: Word::of("") })
    }

    /// Reads the here-documents that begin here.
    pub(super) fn read_documents(&mut self) -> Parsed<()> {
        for awaited in std::mem::take(&mut self.awaited) {
            let mut body = String::new();
            // In one that expands, an escaped newline joins lines, and shells differ in whether
            // they do so before they look for the end.
            let mut joined = String::new();
            while self.peek().is_some() {
                let mut line = String::new();
                while let Some(next) = self.bump()? {
                    if next == '\n' {
                        break;
                    }
                    line.push(next);
                }
                let whole = if awaited.strips_tabs { line.trim_start_matches('\t') } else { &line };
                let ends = whole == awaited.delimiter;
                if !joined.is_empty() {
                    joined.push_str(whole);
                    if ends || joined == awaited.delimiter {
                        return Err("the end of a here-document can be read in two ways");
                    }
                }
                if ends {
                    break;
                }
                let escapes = whole.chars().rev().take_while(|next| *next == '\\').count();
                if awaited.expands && escapes % 2 == 1 {
                    if joined.is_empty() {
                        joined.push_str(whole);
                    }
                    joined.pop();
                    // What was joined may be empty, and something is joined to it all the same.
                    if joined.is_empty() {
                        return Err("the end of a here-document can be read in two ways");
                    }
                } else {
                    joined.clear();
                }
                body.push_str(whole);
                body.push('\n');
            }
            let word = if awaited.expands {
                let (dialect, depth) = (self.dialect, self.depth);
                let mut inner = Parser::new(&body, dialect, depth, self.shared);
                inner.deeper(|inner| inner.expanded_text())?
            } else {
                Word::of(body)
            };
            if let Some(document) = self.shared.documents.get_mut(awaited.place) {
                *document = word;
            }
        }
        Ok(())
    }
}
