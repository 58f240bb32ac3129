//! Statements on an SQLite connection.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef as Native};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::failure::{described, may_be_misread, spoils};
use crate::row::Columns;
use crate::tx::{Dialect, Each, Session};
use crate::{Error, Params, Result, Row, ValueRef};

/// A connection inside a transaction.
pub(super) struct SqliteSession<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    /// The limit that an interrupt would mean.
    pub(super) limit: Duration,
    /// Set when an error makes the connection unfit for further use.
    pub(super) spoilt: Cell<bool>,
    /// Set when a page could not be read, or is broken.
    pub(super) misread: Cell<bool>,
    /// Set when the disk is full.
    pub(super) full: Cell<bool>,
    /// How much was bound to statements so far.
    pub(super) bytes: Cell<usize>,
}

impl<'a> SqliteSession<'a> {
    /// A session on `connection`.
    pub(super) fn new(connection: &'a Connection, path: &'a Path, limit: Duration) -> Self {
        let spoilt = Cell::new(false);
        let misread = Cell::new(false);
        let full = Cell::new(false);
        let bytes = Cell::new(0);
        Self { connection, path, limit, spoilt, misread, full, bytes }
    }

    pub(super) fn described(&self, error: &rusqlite::Error) -> Error {
        if spoils(error) {
            self.spoilt.set(true);
        }
        self.misread.set(self.misread.get() || may_be_misread(error));
        let error = described(self.path, error, self.limit);
        self.full.set(self.full.get() || matches!(error, Error::Full(_)));
        error
    }

    fn prepared(&self, sql: &str, params: Params<'_>) -> Result<CachedStatement<'_>> {
        let mut statement =
            self.connection.prepare_cached(sql).map_err(|error| self.described(&error))?;
        for (index, param) in params.iter().enumerate() {
            let value = param.to_value().portable()?;
            self.bytes.set(self.bytes.get() + value.bytes());
            statement
                .raw_bind_parameter(index + 1, Bound(value))
                .map_err(|error| self.described(&error))?;
        }
        Ok(statement)
    }
}

impl Session for SqliteSession<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<usize> {
        self.prepared(sql, params)?.raw_execute().map_err(|error| self.described(&error))
    }

    fn query(&mut self, sql: &str, params: Params<'_>, each: &mut Each<'_>) -> Result<()> {
        let mut statement = self.prepared(sql, params)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut stopped = false;
        while let Some(row) = rows.next().map_err(|error| self.described(&error))? {
            // A statement that writes must run to its end, or its changes are lost in the middle.
            if !stopped && each(&Row::new(&SqliteRow { row, columns })) == ControlFlow::Break(()) {
                stopped = true;
                if rows.as_ref().is_none_or(rusqlite::Statement::readonly) {
                    break;
                }
            }
        }
        Ok(())
    }
}

struct Bound<'a>(ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            ValueRef::Null => Native::Null,
            ValueRef::Integer(integer) => Native::Integer(integer),
            ValueRef::Real(real) => Native::Real(real),
            ValueRef::Text(text) => Native::Text(text.as_bytes()),
            ValueRef::Blob(blob) => Native::Blob(blob),
        }))
    }
}

struct SqliteRow<'a, 'b> {
    row: &'a rusqlite::Row<'b>,
    columns: usize,
}

impl Columns for SqliteRow<'_, '_> {
    fn count(&self) -> usize {
        self.columns
    }

    fn value(&self, index: usize) -> Result<ValueRef<'_>> {
        let value = self.row.get_ref(index).map_err(|error| Error::Statement(error.to_string()))?;
        Ok(match value {
            Native::Null => ValueRef::Null,
            Native::Integer(integer) => ValueRef::Integer(integer),
            Native::Real(real) => ValueRef::Real(real),
            Native::Text(text) => ValueRef::Text(
                std::str::from_utf8(text).map_err(|error| Error::Statement(error.to_string()))?,
            ),
            Native::Blob(blob) => ValueRef::Blob(blob),
        })
    }
}
