//! Names that go over the wire, made fit for the strictest reader.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::stream::is_plain_id;

/// Which call ids a provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdRule {
    /// Up to 64 letters, digits, `_` and `-`.
    Plain,
    /// Exactly nine letters and digits.
    Nine,
}

/// The id on the wire: the id itself where it fits, otherwise always the same other one, so that a
/// result still finds its call and the provider's cache still finds its prefix.
pub(crate) fn call_id(id: &str, rule: IdRule) -> Cow<'_, str> {
    let fits = match rule {
        IdRule::Plain => is_plain_id(id),
        IdRule::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    };
    if fits { Cow::Borrowed(id) } else { Cow::Owned(nine(id)) }
}

/// Nine characters out of a 64-bit FNV-1a hash.
fn nine(id: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (0..9)
        .map(|_| {
            let digit = DIGITS[usize::try_from(hash % 62).unwrap_or(0)];
            hash /= 62;
            char::from(digit)
        })
        .collect()
}

/// A tool's name as every provider takes it. A model may have made up any name; it must not make all
/// later requests invalid.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    if is_plain_id(name) {
        return Cow::Borrowed(name);
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let plain: String = name.chars().take(64).map(letter).collect();
    Cow::Owned(if plain.is_empty() { "unnamed".to_owned() } else { plain })
}

/// Arguments that are a JSON object which every reader can hold, and `{}` for all others. What the
/// engine could not read it has refused, in words; a provider might refuse the whole conversation.
pub(crate) fn object(arguments: &str) -> &RawValue {
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw)
            if raw.get().starts_with('{')
                && serde_json::from_str::<Readable>(arguments).is_ok() =>
        {
            raw
        }
        _ => empty_object(),
    }
}

/// JSON whose numbers, characters and depth are within bounds. A raw value is only well-formed.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Readable {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self, A::Error> {
        while pairs.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

fn empty_object() -> &'static RawValue {
    // `null` stands in for what cannot happen: `{}` is JSON.
    serde_json::from_str::<&RawValue>("{}").unwrap_or(RawValue::NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_stay_and_others_change_always_alike() {
        assert_eq!(call_id("call_1", IdRule::Plain), "call_1");
        assert_eq!(call_id("abcdef123", IdRule::Nine), "abcdef123");
        let short = call_id("call_1", IdRule::Nine).into_owned();
        assert_eq!(short.len(), 9);
        assert!(short.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(call_id("call_1", IdRule::Nine), short);
        assert_ne!(call_id("call_2", IdRule::Nine), short);
    }

    #[test]
    fn only_objects_are_arguments() {
        for (arguments, expected) in [
            (r#" {"a": 1} "#, r#"{"a": 1}"#),
            ("", "{}"),
            ("[1]", "{}"),
            (r#"{"a": "#, "{}"),
            ("null", "{}"),
            ("{} trailing", "{}"),
            (r#"{"a": 1e999}"#, "{}"),
            (r#"{"a": ["\ud800"]}"#, "{}"),
            (r#"{"a": [1e30, -2, true, null, "x"]}"#, r#"{"a": [1e30, -2, true, null, "x"]}"#),
        ] {
            assert_eq!(object(arguments).get(), expected);
        }
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(object(&deep).get(), "{}");
    }

    #[test]
    fn a_made_up_name_becomes_a_possible_one() {
        assert_eq!(tool_name("read_file"), "read_file");
        assert_eq!(tool_name("functions.shell é"), "functions_shell__");
        assert_eq!(tool_name(""), "unnamed");
        assert_eq!(tool_name(&"x".repeat(100)).len(), 64);
    }
}
