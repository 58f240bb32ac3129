//! Values that cross the border between Rust and SQL, the same five on both engines.

use crate::{Error, Id, Result};

/// A value read from a row, or kept for later.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// A 64-bit integer; times and truth values are integers too.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text, always UTF-8, never with a NUL character.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A borrowed [`Value`], as statements take them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL's NULL.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

/// The parameters of a statement; written with [`params!`](crate::params).
pub type Params<'a> = &'a [&'a dyn ToValue];

/// Builds the parameters of a statement: `params![id, &name, 42]`.
#[macro_export]
macro_rules! params {
    () => { &[] as $crate::Params<'_> };
    ($($value:expr),+ $(,)?) => { &[$(&$value as &dyn $crate::ToValue),+] as $crate::Params<'_> };
}

/// What can be bound to a parameter.
pub trait ToValue {
    /// Borrows the value in SQL's terms.
    fn to_value(&self) -> ValueRef<'_>;
}

/// What can be read from a column.
pub trait FromValue: Sized {
    /// Converts, or answers `None` when the column holds something else.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(*integer),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text),
            Value::Blob(blob) => ValueRef::Blob(blob),
        }
    }
}

impl ValueRef<'_> {
    /// Copies the value out of its row.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(integer) => Value::Integer(integer),
            ValueRef::Real(real) => Value::Real(real),
            ValueRef::Text(text) => Value::Text(text.to_owned()),
            ValueRef::Blob(blob) => Value::Blob(blob.to_owned()),
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
            ValueRef::Text(text) => text.len(),
            ValueRef::Blob(blob) => blob.len(),
        }
    }

    /// Refuses what only one of the engines could keep: a NUL character in text, a NaN.
    pub(crate) fn portable(self) -> Result<Self> {
        match self {
            ValueRef::Text(text) if text.as_bytes().contains(&0) => {
                Err(Error::Unstorable("text with a NUL character"))
            }
            ValueRef::Real(real) if real.is_nan() => Err(Error::Unstorable("a number that is NaN")),
            value => Ok(value),
        }
    }
}

impl ToValue for Value {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref()
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Integer(*self)
    }
}

impl ToValue for i32 {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Integer(i64::from(*self))
    }
}

impl ToValue for u32 {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Integer(i64::from(*self))
    }
}

impl ToValue for bool {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Integer(i64::from(*self))
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Real(*self)
    }
}

impl ToValue for str {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(self)
    }
}

impl ToValue for Id {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self.as_str())
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, ToValue::to_value)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }
}

impl FromValue for Value {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Some(value.to_owned())
    }
}

impl FromValue for i64 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Integer(integer) => Some(integer),
            _ => None,
        }
    }
}

impl FromValue for u32 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).and_then(|integer| integer.try_into().ok())
    }
}

impl FromValue for bool {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).map(|integer| integer != 0)
    }
}

impl FromValue for f64 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Real(real) => Some(real),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Blob(blob) => Some(blob.to_owned()),
            _ => None,
        }
    }
}

impl FromValue for Id {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}
