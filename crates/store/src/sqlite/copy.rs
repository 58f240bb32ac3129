//! A new SQLite store that is being filled row by row.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{open_blank, read_on};
use super::create::{blank, discard, remove_leftovers, sealed};
use super::failure::described;
use super::files::{Files, Presence};
use super::session::SqliteSession;
use crate::copy::Copy;
use crate::fsatomic::{is_abandoned, rename_into_vacancy, temporary_beside};
use crate::location::Journal;
use crate::schema::Schema;
use crate::tables::Table;
use crate::tx::{ReadTx, Session};
use crate::{Error, Result, ToValue, Value};

/// A store under a temporary name.
pub(crate) struct SqliteCopy {
    path: PathBuf,
    temporary: PathBuf,
    connection: Option<Connection>,
    journal: Journal,
}

impl SqliteCopy {
    pub(crate) fn begin(path: &Path, journal: Journal, schema: &Schema) -> Result<Self> {
        match Files::new(path).look() {
            Ok(Presence::Absent) => {}
            Ok(Presence::Present) | Err(Error::Empty { .. }) => {
                return Err(Error::NotEmpty { place: path.display().to_string() });
            }
            Err(error) => return Err(error),
        }
        super::refuse_network(path, journal)?;
        remove_leftovers(path, "copy", &is_abandoned);
        let temporary =
            temporary_beside(path, "copy").map_err(|error| Error::file(path, &error))?;
        // From here on dropping it removes what was made.
        let mut copy = Self { path: path.to_owned(), temporary, connection: None, journal };
        blank(&copy.temporary, schema, journal)?;
        let connection = open_blank(&copy.temporary)
            .and_then(|connection| {
                connection.execute_batch("PRAGMA foreign_keys=OFF").map(|()| connection)
            })
            .map_err(|error| described(path, &error, Duration::ZERO))?;
        copy.connection = Some(connection);
        Ok(copy)
    }

    fn connection(&self) -> Result<&Connection> {
        self.connection
            .as_ref()
            .ok_or_else(|| Error::Statement("the copy was closed already".to_owned()))
    }

    fn in_transaction(
        &self,
        work: impl FnOnce(&mut SqliteSession<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut session = SqliteSession::new(self.connection()?, &self.path, Duration::ZERO);
        session.execute("BEGIN IMMEDIATE", &[])?;
        // When the work fails the whole file goes.
        work(&mut session)?;
        session.execute("COMMIT", &[]).map(drop)
    }
}

impl Copy for SqliteCopy {
    fn read(&mut self, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()> {
        read_on(self.connection()?, &self.path, 0, job)
    }

    fn clear(&mut self, table: &Table) -> Result<()> {
        self.in_transaction(|session| {
            session.execute(&format!("DELETE FROM {}", table.name), &[]).map(drop)
        })
    }

    fn insert(&mut self, table: &Table, rows: Vec<Vec<Value>>) -> Result<()> {
        let insert = table.insert();
        self.in_transaction(|session| {
            rows.iter().try_for_each(|row| {
                let params: Vec<&dyn ToValue> =
                    row.iter().map(|value| value as &dyn ToValue).collect();
                session.execute(&insert, &params).map(drop)
            })
        })
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if let Some(connection) = self.connection.take() {
            sealed(connection, &self.temporary, self.journal)?;
        }
        rename_into_vacancy(&self.temporary, &self.path)
            .map_err(|error| Error::file(&self.path, &error))
    }
}

impl Drop for SqliteCopy {
    fn drop(&mut self) {
        drop(self.connection.take());
        discard(&self.temporary);
    }
}
