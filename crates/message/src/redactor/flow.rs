//! A text that comes in pieces.

use super::Redactor;

/// A text that comes in pieces. What may be the beginning of a secret is held back until it is known
/// whether it is one.
#[derive(Debug, Default)]
pub struct Flow {
    held: Vec<u8>,
}

impl Flow {
    /// The bytes that can be told after this piece.
    pub fn push(&mut self, redactor: &Redactor, piece: &[u8]) -> Vec<u8> {
        let Some(needles) = redactor.needles() else {
            let mut told = std::mem::take(&mut self.held);
            told.extend_from_slice(piece);
            return told;
        };
        self.held.extend_from_slice(piece);
        let mut clean = Vec::new();
        needles.pass(&mut self.held, &mut clean);
        clean
    }

    /// The text that can be told after this piece of text.
    pub fn push_text(&mut self, redactor: &Redactor, piece: &str) -> String {
        // Secrets are text, so what is before, in and after one is too.
        String::from_utf8_lossy(&self.push(redactor, piece.as_bytes())).into_owned()
    }

    /// What was held back, now that nothing follows it.
    pub fn rest(&mut self, redactor: &Redactor) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        redactor.bytes(&mut rest);
        rest
    }

    /// The text that was held back.
    pub fn rest_text(&mut self, redactor: &Redactor) -> String {
        String::from_utf8_lossy(&self.rest(redactor)).into_owned()
    }
}
