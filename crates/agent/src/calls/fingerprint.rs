//! Tells whether two results are the same, whatever time they took.

use mainstay_tools::{Fact, Outcome, Piece};
use sha2::{Digest, Sha256};

/// The same for two outcomes that are the same. What the harness says of a command names its time, so
/// of a command only its code and output count.
pub(crate) fn fingerprint(outcome: &Outcome) -> String {
    let code = outcome.facts.iter().find_map(|fact| match fact {
        Fact::Exit { code, .. } => Some(*code),
        _ => None,
    });
    let mut hasher = Sha256::new();
    hasher.update(format!("{code:?} {}", outcome.failed));
    for piece in &outcome.pieces {
        match piece {
            Piece::Said(text) if code.is_none() => hasher.update(text),
            Piece::Said(_) => {}
            Piece::Data(text) | Piece::Instructions(text) => hasher.update(text),
            Piece::Image(image) => hasher.update(&image.base64),
        }
        hasher.update([0]);
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_whatever_its_time_and_another_with_another_code() {
        let ran = |said: &str, output: &str, code: i32| {
            let fact = Fact::Exit { command: "make".to_owned(), code };
            fingerprint(&Outcome::said(said).data(output).fact(fact))
        };
        assert_eq!(ran("exit code 0 (0.1 s)", "done", 0), ran("exit code 0 (2.0 s)", "done", 0));
        assert_ne!(ran("", "done", 0), ran("", "done", 1));
        assert_ne!(ran("", "done", 0), ran("", "Done", 0));
        let read = |text: &str| fingerprint(&Outcome::said(text));
        assert_ne!(read("a"), read("b"));
    }
}
