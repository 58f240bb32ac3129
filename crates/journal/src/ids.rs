//! Ids that cannot be mistaken for one another.

use std::fmt;

use mainstay_store::{FromValue, Id, ToValue, ValueRef};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(Id);

        impl $name {
            /// A new one.
            #[expect(clippy::new_without_default, reason = "no two are alike")]
            pub fn new() -> Self {
                Self(Id::new())
            }

            /// The id, whatever it names.
            pub fn id(self) -> Id {
                self.0
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl From<Id> for $name {
            fn from(id: Id) -> Self {
                Self(id)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map(Self).map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl ToValue for $name {
            fn to_value(&self) -> ValueRef<'_> {
                self.0.to_value()
            }
        }

        impl FromValue for $name {
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                Id::from_value(value).map(Self)
            }
        }
    };
}

id! {
    /// Names a session.
    SessionId
}
id! {
    /// Names a turn.
    TurnId
}
id! {
    /// Names a call, for ever: the keeper starts no second process under the same name.
    CallId
}

/// A turn and the session that it belongs to: where entries, calls and costs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRef {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
}
