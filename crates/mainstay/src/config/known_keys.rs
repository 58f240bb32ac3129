//! Which keys a configuration file may have, read off the structs that hold its settings.
//!
//! A derived `Deserialize` tells its deserializer the names of its fields. [`Probe`] is a
//! deserializer without data that only listens: so a setting is a struct field and nothing else. A
//! list beside the structs would have to be kept in step by hand.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

/// What may stand at one place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Keys {
    /// A value, or something whose shape is not known here.
    #[default]
    Value,
    /// A table with these keys.
    Fields(Vec<(&'static str, Keys)>),
    /// A table with names that people choose, each for one of these.
    Named(Box<Keys>),
    /// A list of these.
    List(Box<Keys>),
}

impl Keys {
    /// The keys of a type, as deep as they are known.
    pub(super) fn of<'de, T: Deserialize<'de>>() -> Self {
        let mut keys = Self::default();
        // What was heard counts; a test shows that our own types can be made of nothing.
        let _ = T::deserialize(Probe(&mut keys));
        keys
    }

    /// The names of a table's keys; none if it has names that people choose.
    pub(super) fn names(&self) -> Vec<&'static str> {
        match self {
            Self::Fields(fields) => fields.iter().map(|(name, _)| *name).collect(),
            Self::Value | Self::Named(_) | Self::List(_) => Vec::new(),
        }
    }

    /// What is below a key, or below any name where people choose them.
    pub(super) fn below(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => {
                fields.iter().find(|(name, _)| *name == key).map(|(_, keys)| keys)
            }
            Self::Named(keys) => Some(keys),
            Self::Value | Self::List(_) => None,
        }
    }

    /// The full names of all settings whose names are fixed.
    pub(super) fn settings(&self) -> Vec<String> {
        let Self::Fields(fields) = self else { return Vec::new() };
        let mut found = Vec::new();
        for (name, keys) in fields {
            match keys {
                Self::Fields(_) => {
                    found.extend(keys.settings().iter().map(|below| format!("{name}.{below}")));
                }
                Self::Value => found.push((*name).to_owned()),
                Self::List(item) if **item == Self::Value => found.push((*name).to_owned()),
                Self::List(_) | Self::Named(_) => {}
            }
        }
        found
    }

    /// Calls `unknown` with every key of a table that does not belong there: the key, the path above
    /// it, and the keys that there are.
    pub(super) fn check(
        &self,
        table: &Table,
        path: &str,
        unknown: &mut dyn FnMut(&str, &str, &[&str]),
    ) {
        if let Self::Fields(_) = self {
            for key in table.keys().filter(|key| self.below(key).is_none()) {
                unknown(key, path, &self.names());
            }
        }
        for (key, value) in table {
            let Some(keys) = self.below(key) else { continue };
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match (value, keys) {
                (Value::Table(table), keys) => keys.check(table, &path, unknown),
                (Value::Array(items), Self::List(keys)) => {
                    for table in items.iter().filter_map(Value::as_table) {
                        keys.check(table, &path, unknown);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A deserializer that has nothing to say and notes what it is asked for.
struct Probe<'a>(&'a mut Keys);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(false)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let first = variants.first().copied().unwrap_or_default();
        visitor.visit_enum(StrDeserializer::<Error>::new(first))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Keys::default();
        let made = visitor.visit_seq(Once(Some(&mut item)));
        *self.0 = Keys::List(Box::new(item));
        made
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Keys::default();
        let made = visitor.visit_map(Once(Some(&mut item)));
        *self.0 = Keys::Named(Box::new(item));
        made
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut all: Vec<_> = fields.iter().map(|field| (*field, Keys::default())).collect();
        let made = visitor.visit_map(EachField { fields: &mut all, next: 0 });
        *self.0 = Keys::Fields(all);
        made
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// A list or a table with one item.
struct Once<'a>(Option<&'a mut Keys>);

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|keys| seed.deserialize(Probe(keys))).transpose()
    }
}

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.0.is_some().then(|| seed.deserialize("".into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut unheard = Keys::default();
        seed.deserialize(Probe(self.0.take().unwrap_or(&mut unheard)))
    }
}

/// A struct with all of its fields.
struct EachField<'a> {
    fields: &'a mut [(&'static str, Keys)],
    next: usize,
}

impl<'de> MapAccess<'de> for EachField<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let field = self.fields.get(self.next).map(|(name, _)| *name);
        field.map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut unheard = Keys::default();
        let keys = self.fields.get_mut(self.next).map_or(&mut unheard, |(_, keys)| keys);
        self.next += 1;
        seed.deserialize(Probe(keys))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Outer {
        number: Option<f32>,
        on: Option<bool>,
        words: Vec<String>,
        inner: Inner,
        named: BTreeMap<String, Inner>,
        list: Vec<Inner>,
        choice: Option<Choice>,
        open: serde_json::Value,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Inner {
        text: Option<String>,
        size: u64,
    }

    #[derive(Debug, serde::Deserialize)]
    enum Choice {
        One,
    }

    #[test]
    fn every_field_is_known_and_nothing_else() {
        let mut keys = Keys::default();
        Outer::deserialize(Probe(&mut keys)).unwrap();
        assert_eq!(
            keys.settings(),
            ["number", "on", "words", "inner.text", "inner.size", "choice", "open"]
        );
        let text = "number = 1\nnumbr = 2\n[inner]\ntext = ''\nsiz = 1\n[named.x]\nsize = 1\n\
                    tex = ''\n[[list]]\nsize = 1\n[[list]]\nlize = 1\n[open.whatever]\nx = 1\n";
        let mut found = Vec::new();
        keys.check(&text.parse().unwrap(), "", &mut |key, path, names| {
            found.push(format!("{path}/{key} of {}", names.len()));
        });
        assert_eq!(found, ["/numbr of 8", "inner/siz of 2", "list/lize of 2", "named.x/tex of 2"]);
        assert_eq!(Keys::of::<Choice>(), Keys::Value);
    }
}
