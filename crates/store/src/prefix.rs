//! Finds a record by the first characters of its id.

use crate::{Error, Id, ReadTx, Result, params};

/// How many matches an ambiguous prefix shows.
const SHOWN: usize = 5;

impl ReadTx<'_> {
    /// The one record of `table`, whose ids are in column `id`, that starts with what was typed.
    /// `what` names the kind of record in the error, such as "session".
    pub fn find_id(&mut self, table: &'static str, what: &str, typed: &str) -> Result<Id> {
        let unknown = || Error::UnknownId { what: what.to_owned(), typed: typed.to_owned() };
        let prefix = Id::prefix(typed).ok_or_else(unknown)?;
        // '~' sorts after every character of an id.
        let mut matches: Vec<Id> = self.query(
            &format!(
                "SELECT id FROM {table} WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT {}",
                SHOWN + 1
            ),
            params![prefix, format!("{prefix}~")],
            |row| row.get(0),
        )?;
        match matches.len() {
            0 => Err(unknown()),
            1 => Ok(matches.remove(0)),
            _ => Err(Error::AmbiguousId {
                what: what.to_owned(),
                typed: typed.to_owned(),
                matches: matches.iter().take(SHOWN).map(Id::to_string).collect(),
            }),
        }
    }
}
