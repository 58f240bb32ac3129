//! A new SQLite store that is being filled row by row.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{open_blank, read_on};
use super::create::{blank, sealed};
use super::failure::described;
use super::files::{Files, Presence};
use super::session::SqliteSession;
use crate::copy::Copy;
use crate::fsatomic::rename_into_vacancy;
use crate::location::Journal;
use crate::store::Options;
use crate::tables::Table;
use crate::tx::{ReadTx, Session};
use crate::unfinished::Unfinished;
use crate::{Error, Result, ToValue, Value};

/// A store under a temporary name. Its connection is closed before the name goes.
pub(crate) struct SqliteCopy {
    path: PathBuf,
    connection: Option<Connection>,
    temporary: Unfinished,
    journal: Journal,
}

impl SqliteCopy {
    pub(crate) fn begin(path: &Path, journal: Journal, options: &Options) -> Result<Self> {
        match Files::new(path).look() {
            Ok(Presence::Absent) => {}
            Ok(Presence::Present) | Err(Error::Empty { .. }) => {
                return Err(Error::NotEmpty { place: path.display().to_string() });
            }
            Err(error) => return Err(error),
        }
        super::refuse_network(path, journal)?;
        // From here on dropping it removes what was made.
        let temporary = Unfinished::beside(path, "copy", options.records.as_deref())?;
        let mut copy = Self { path: path.to_owned(), temporary, connection: None, journal };
        blank(copy.temporary.path(), &options.schema, journal)?;
        let connection = open_blank(copy.temporary.path())
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
        read_on(self.connection()?, &self.path, 0, job).map(drop)
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
            sealed(connection, self.temporary.path(), self.journal)?;
        }
        rename_into_vacancy(self.temporary.path(), &self.path)
            .map_err(|error| Error::file(&self.path, &error))
    }
}
