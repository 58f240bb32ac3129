//! The tables of a store, whatever put them there, and fingerprints of their content.

use sha2::{Digest, Sha256};

use crate::migrations::{CACHE, ENGINE_TABLES};
use crate::tx::Dialect;
use crate::{ReadTx, Result, Row, ValueRef, params};

/// A table with its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
}

/// The sum of the hashes of all rows: the same for the same rows in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) rows: u64,
    sum: [u64; 4],
}

impl ReadTx<'_> {
    /// All tables but the engine's own and the caches, in the order they were made, so that a table comes after
    /// those it refers to.
    pub(crate) fn tables(&mut self) -> Result<Vec<Table>> {
        let (tables, columns) = match self.dialect() {
            Dialect::Sqlite => (
                "SELECT name FROM sqlite_schema
                 WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
                "SELECT name FROM pragma_table_info(?1) ORDER BY cid",
            ),
            Dialect::Postgres => (
                "SELECT relname FROM pg_catalog.pg_class
                 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
                 ORDER BY oid",
                "SELECT attname FROM pg_catalog.pg_attribute
                 WHERE attrelid = (current_schema() || '.' || ?1)::regclass
                     AND attnum > 0 AND NOT attisdropped
                 ORDER BY attnum",
            ),
        };
        let names: Vec<String> = self.query(tables, params![], |row| row.get(0))?;
        names
            .into_iter()
            .filter(|name| !ENGINE_TABLES.contains(&name.as_str()) && !name.starts_with(CACHE))
            .map(|name| {
                let columns = self.query(columns, params![name], |row| row.get(0))?;
                Ok(Table { name, columns })
            })
            .collect()
    }

    /// How many rows a table has.
    pub(crate) fn count(&mut self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let count: i64 = self.query_one(&sql, params![], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Names and counts of all tables.
    pub(crate) fn counts(&mut self) -> Result<Vec<(String, u64)>> {
        let tables = self.tables()?;
        tables
            .into_iter()
            .map(|table| {
                let count = self.count(&table)?;
                Ok((table.name, count))
            })
            .collect()
    }
}

impl Table {
    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.columns.join(", "), self.name)
    }

    pub(crate) fn insert(&self) -> String {
        let places: Vec<String> =
            (1..=self.columns.len()).map(|place| format!("?{place}")).collect();
        format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.name,
            self.columns.join(", "),
            places.join(", ")
        )
    }
}

impl Fingerprint {
    /// Takes a row into account.
    pub(crate) fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let mut hash = Sha256::new();
        for index in 0..row.columns() {
            match row.value(index)? {
                ValueRef::Null => hash.update([0]),
                ValueRef::Integer(integer) => {
                    hash.update([1]);
                    hash.update(integer.to_le_bytes());
                }
                ValueRef::Real(real) => {
                    hash.update([2]);
                    hash.update(real.to_bits().to_le_bytes());
                }
                ValueRef::Text(text) => long(&mut hash, 3, text.as_bytes()),
                ValueRef::Blob(blob) => long(&mut hash, 4, blob),
            }
        }
        let digest = hash.finalize();
        for (sum, word) in self.sum.iter_mut().zip(digest.chunks_exact(8)) {
            // Chunks of eight bytes always fit.
            *sum = sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        self.rows += 1;
        Ok(())
    }
}

fn long(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
