//! Ids that sort by the time they were made and can be typed by a prefix.
//!
//! Twenty characters of Crockford's base 32 (no `i`, `l`, `o`, `u`): eight for the milliseconds
//! since 2025, twelve random. Six characters usually tell one session from another.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use crate::clock::wall_millis;
use crate::lock::lock;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 20;
/// 2025-01-01T00:00:00Z; forty bits of milliseconds from here reach to 2059.
const EPOCH_MILLIS: i64 = 1_735_689_600_000;
const TIME_BITS: u32 = 40;
const RANDOM_BITS: u32 = 60;

/// An id: unique, sorted by creation time, readable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; LENGTH]);

/// Text that is not an [`Id`].
#[derive(Debug, thiserror::Error)]
#[error("not an id: ids are 20 characters of 0-9 and a-z without i, l, o and u")]
pub struct NotAnId;

static MAKER: Mutex<Maker> = Mutex::new(Maker { last: 0, random: [0; POOL], left: 0 });
/// Randomness for so many bytes of ids is asked for at once: a turn makes several ids in each round.
const POOL: usize = 512;

struct Maker {
    /// The last id of this process, so that the next one sorts after it even within a millisecond
    /// or when the wall clock steps back.
    last: u128,
    random: [u8; POOL],
    /// How many of those bytes are not used yet.
    left: usize,
}

/// A secret from the operating system's randomness.
pub fn random_secret() -> std::io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
    Ok(secret)
}

impl Maker {
    fn random(&mut self) -> u64 {
        if self.left == 0 {
            // Without the system's randomness ids would collide across processes: better to stop.
            #[expect(clippy::expect_used, reason = "getrandom fails only on a broken kernel")]
            getrandom::fill(&mut self.random).expect("the operating system gives random bytes");
            self.left = POOL;
        }
        self.left -= size_of::<u64>();
        let bytes = self.random[self.left..].iter().take(size_of::<u64>());
        bytes.fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }
}

impl Id {
    /// Makes a new id that sorts after every other one made by this process.
    pub fn new() -> Self {
        let since = (wall_millis() - EPOCH_MILLIS).clamp(0, (1 << TIME_BITS) - 1);
        let mut maker = lock(&MAKER);
        // The topmost random bit stays free, so that a burst can count up without running over.
        let random = u128::from(maker.random()) & ((1 << (RANDOM_BITS - 1)) - 1);
        let fresh = (u128::from(since.cast_unsigned()) << RANDOM_BITS) | random;
        maker.last = fresh.max(maker.last + 1);
        Self::from_bits(maker.last)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // The alphabet is ASCII, so this is always text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// When the id was made, in milliseconds since 1970.
    pub fn created_millis(&self) -> i64 {
        let bits = self.0[..8].iter().fold(0_i64, |bits, character| {
            (bits << 5) | i64::try_from(digit(*character).unwrap_or(0)).unwrap_or(0)
        });
        bits + EPOCH_MILLIS
    }

    /// Normalises what a person typed as a prefix: lower case, `o` for `0`, `i` and `l` for `1`.
    /// `None` when no id can start like that.
    pub fn prefix(typed: &str) -> Option<String> {
        let mut prefix = String::with_capacity(typed.len());
        for character in typed.trim().chars().flat_map(char::to_lowercase) {
            let character = match character {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            };
            digit(u8::try_from(character).ok()?)?;
            prefix.push(character);
        }
        (1..=LENGTH).contains(&prefix.len()).then_some(prefix)
    }

    fn from_bits(mut bits: u128) -> Self {
        let mut characters = [b'0'; LENGTH];
        for character in characters.iter_mut().rev() {
            *character = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        Self(characters)
    }
}

fn digit(character: u8) -> Option<usize> {
    ALPHABET.iter().position(|candidate| *candidate == character)
}

impl Default for Id {
    fn default() -> Self {
        Self::new()
    }
}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let characters: [u8; LENGTH] = text.as_bytes().try_into().map_err(|_| NotAnId)?;
        if characters.iter().all(|character| digit(*character).is_some()) {
            Ok(Self(characters))
        } else {
            Err(NotAnId)
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_the_order_they_were_made() {
        let ids: Vec<Id> = (0..10_000).map(|_| Id::new()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn no_randomness_is_used_twice() {
        let mut maker = Maker { last: 0, random: [0; POOL], left: 0 };
        let all: std::collections::BTreeSet<u64> = (0..1_000).map(|_| maker.random()).collect();
        assert_eq!(all.len(), 1_000);
    }

    #[test]
    fn text_and_back_is_the_same_id() {
        let id = Id::new();
        assert_eq!(id.to_string().parse::<Id>().unwrap(), id);
        assert!("not an id".parse::<Id>().is_err());
        assert!("iiiiiiiiiiiiiiiiiiii".parse::<Id>().is_err());
    }

    #[test]
    fn an_id_knows_when_it_was_made() {
        let before = wall_millis();
        let made = Id::new().created_millis();
        assert!((before - 1..=wall_millis() + 1).contains(&made), "{made} is not about {before}");
    }

    #[test]
    fn a_typed_prefix_is_forgiving() {
        assert_eq!(Id::prefix(" 0K1O "), Some("0k10".to_owned()));
        assert_eq!(Id::prefix("0u"), None);
        assert_eq!(Id::prefix(""), None);
        assert_eq!(Id::prefix(&"0".repeat(21)), None);
    }
}
