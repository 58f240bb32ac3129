//! Owners: every record that belongs to somebody names one.

use std::fmt;

use crate::{FromValue, Id, ReadTx, Result, ToValue, ValueRef, WriteTx, params};

/// Whose record it is. Only the layer that knows who is speaking makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(Id);

impl WriteTx<'_> {
    /// The owner with this name, such as `local` or `telegram:12345`; made on first use.
    pub fn owner(&mut self, name: &str) -> Result<OwnerId> {
        if let Some(owner) = self.find_owner(name)? {
            return Ok(owner);
        }
        let id = Id::new();
        let now = self.now();
        self.execute(
            "INSERT INTO owners (id, name, created_at) VALUES (?1, ?2, ?3)",
            params![id, name, now],
        )?;
        Ok(OwnerId(id))
    }
}

impl ReadTx<'_> {
    /// The owner with this name, if there is one yet.
    pub fn find_owner(&mut self, name: &str) -> Result<Option<OwnerId>> {
        self.query_opt("SELECT id FROM owners WHERE name = ?1", params![name], |row| row.get(0))
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl ToValue for OwnerId {
    fn to_value(&self) -> ValueRef<'_> {
        self.0.to_value()
    }
}

impl FromValue for OwnerId {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Id::from_value(value).map(Self)
    }
}
