//! What proves that a person decided: a seal on the row, made with a secret that commands cannot read.
//!
//! A row says what was decided, and whoever can write to the store can write a row. So a decision counts
//! only with a seal over all that it says. The secret lies where the sandbox lets no command look; the
//! processes of the person who decides have it, and so has the one that goes by the decision.

use sha2::{Digest, Sha256};

/// The bytes that SHA-256 takes at once.
const BLOCK: usize = 64;

/// Makes and checks seals.
#[derive(Clone)]
pub struct Sealer {
    key: [u8; 32],
}

impl Sealer {
    /// A sealer with this secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The seal on a row of a kind that says this.
    pub(crate) fn seal(&self, kind: &str, said: &[&str]) -> String {
        let mut text = Vec::new();
        for piece in std::iter::once(&kind).chain(said) {
            // With its length, so that no piece can end where another begins.
            text.extend((piece.len() as u64).to_be_bytes());
            text.extend(piece.as_bytes());
        }
        self.authenticate(&text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// HMAC with SHA-256.
    fn authenticate(&self, text: &[u8]) -> [u8; 32] {
        let padded = |with: u8| {
            let mut block = [with; BLOCK];
            block.iter_mut().zip(self.key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
        Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
    }
}

/// A secret is not shown.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealer")
    }
}

/// Whether a row of a kind that says this has its seal. Without a sealer nobody asks for one.
pub(crate) fn is_proven(
    sealer: Option<&Sealer>,
    found: Option<&str>,
    kind: &str,
    said: &[&str],
) -> bool {
    let Some(sealer) = sealer else { return true };
    let Some(found) = found else { return false };
    let expected = sealer.seal(kind, said);
    let differing =
        expected.bytes().zip(found.bytes()).fold(0, |all, (one, other)| all | one ^ other);
    // All of it is compared, so that the time it takes says nothing of where it differs.
    expected.len() == found.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seal_is_the_hmac_of_the_standard() {
        // RFC 4231, test case 2: the key is shorter than a block.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let made = Sealer::new(key).authenticate(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let made: String = made.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn a_seal_holds_for_what_it_was_made_for_and_nothing_else() {
        let sealer = Sealer::new([7; 32]);
        let seal = sealer.seal("approval", &["a", "bc"]);
        let proven = |found: Option<&str>, kind: &str, said: &[&str]| {
            is_proven(Some(&sealer), found, kind, said)
        };
        assert!(proven(Some(&seal), "approval", &["a", "bc"]));
        assert!(!proven(Some(&seal), "approval", &["ab", "c"]));
        assert!(!proven(Some(&seal), "rule", &["a", "bc"]));
        assert!(!proven(Some(&seal[1..]), "approval", &["a", "bc"]));
        assert!(!proven(Some(""), "approval", &["a", "bc"]));
        assert!(!proven(None, "approval", &["a", "bc"]));
        let other = Sealer::new([8; 32]).seal("approval", &["a", "bc"]);
        assert!(!proven(Some(&other), "approval", &["a", "bc"]));
        assert!(is_proven(None, None, "approval", &[]));
        assert_eq!(format!("{sealer:?}"), "Sealer");
    }
}
