//! Copies a whole store into another place, on either engine, and verifies it.
//!
//! The source is read at one moment. The copy appears at once and whole, or not at all: a file
//! under its final name, or a schema in one commit.

use std::ops::ControlFlow;
use std::path::Path;

use crate::location::{Journal, Location};
use crate::postgres::PostgresCopy;
use crate::sqlite::SqliteCopy;
use crate::store::Options;
use crate::tables::{Fingerprint, Table};
use crate::{Error, ReadTx, Result, Store, Value, params};

/// Rows handed over at a time, and bytes after which fewer are.
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 2 << 20;

/// How far a copy is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Rows, or pages of a file, that are done.
    pub done: u64,
    /// How many there are.
    pub of: u64,
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// Rows of each table.
    pub tables: Vec<(String, u64)>,
}

impl Copied {
    /// Rows in all.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|(_, rows)| rows).sum()
    }
}

/// A new store that is being filled and cannot be seen yet.
pub(crate) trait Copy {
    /// Runs on what is there so far.
    fn read(&mut self, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()>;
    /// Empties a table that a new store has rows in.
    fn clear(&mut self, table: &Table) -> Result<()>;
    /// Adds rows.
    fn insert(&mut self, table: &Table, rows: Vec<Vec<Value>>) -> Result<()>;
    /// Puts it in place.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl Store {
    /// Copies everything to `target`, where no store may be.
    pub fn copy_to(&self, target: &Location, progress: &mut dyn FnMut(Progress)) -> Result<Copied> {
        let mut copy = begin(target, &self.inner.options)?;
        let mut outcome = None;
        // A read may be tried again after a passing fault; a copy that was begun may not.
        self.read_unlimited(|tx| {
            let first = outcome.is_none();
            outcome = Some(if first {
                fill(tx, copy.as_mut(), progress)
            } else {
                Err(Error::Io("the store could not be read to its end".to_owned()))
            });
            Ok::<_, Error>(())
        })?;
        let copied =
            outcome.unwrap_or_else(|| Err(Error::Statement("nothing was copied".to_owned())))?;
        copy.finish()?;
        Ok(copied)
    }

    /// Writes a backup into a new file, while the store is in use.
    pub fn backup_to(&self, file: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Copied> {
        match &self.inner.engine {
            crate::store::Engine::Sqlite(sqlite) => {
                let records = self.inner.options.records.as_deref();
                sqlite.backup_to(file, records, progress)
            }
            crate::store::Engine::Postgres(_) => {
                let target = Location::Sqlite { path: file.to_owned(), journal: Journal::Rollback };
                self.copy_to(&target, progress)
            }
        }
    }
}

fn begin(target: &Location, options: &Options) -> Result<Box<dyn Copy>> {
    Ok(match target {
        Location::Sqlite { path, journal } => Box::new(SqliteCopy::begin(path, *journal, options)?),
        Location::Postgres { url, schema } => Box::new(PostgresCopy::begin(url, schema, options)?),
    })
}

fn fill(
    source: &mut ReadTx<'_>,
    copy: &mut dyn Copy,
    progress: &mut dyn FnMut(Progress),
) -> Result<Copied> {
    let tables = source.tables()?;
    refuse_unknown(&tables, copy)?;
    let counts = source.counts()?;
    let of = counts.iter().map(|(_, rows)| rows).sum();
    let mut done = 0;
    let mut copied = Vec::new();
    for table in &tables {
        copy.clear(table)?;
        let print = transfer(source, table, copy, &mut |rows| {
            done += rows;
            progress(Progress { done, of });
        })?;
        let mut there = Err(Error::Statement("the copy was not read".to_owned()));
        copy.read(&mut |tx| there = fingerprint(tx, table))?;
        if there? != print {
            return Err(Error::CopyDiffers(format!("table {} differs", table.name)));
        }
        copied.push((table.name.clone(), print.rows));
    }
    Ok(Copied { tables: copied })
}

/// A component that this program does not know would be lost in the copy.
fn refuse_unknown(tables: &[Table], copy: &mut dyn Copy) -> Result<()> {
    let mut there = Ok(Vec::new());
    copy.read(&mut |tx| there = tx.tables())?;
    let there = there?;
    match tables.iter().find(|table| !there.contains(table)) {
        None => Ok(()),
        Some(table) => Err(Error::UnknownTable(table.name.clone())),
    }
}

/// Copies one table and answers the fingerprint of what was read.
fn transfer(
    source: &mut ReadTx<'_>,
    table: &Table,
    copy: &mut dyn Copy,
    moved: &mut dyn FnMut(u64),
) -> Result<Fingerprint> {
    let mut print = Fingerprint::default();
    let mut chunk: Vec<Vec<Value>> = Vec::new();
    let mut bytes = 0;
    let mut hand_over = |chunk: &mut Vec<Vec<Value>>| {
        let rows = chunk.len() as u64;
        copy.insert(table, std::mem::take(chunk))?;
        moved(rows);
        Ok::<_, Error>(())
    };
    source.for_each_row(table, |row| {
        print.add(row)?;
        let values: Vec<Value> =
            (0..row.columns()).map(|index| row.get(index)).collect::<Result<_>>()?;
        bytes += values.iter().map(|value| value.as_ref().bytes()).sum::<usize>();
        chunk.push(values);
        if chunk.len() >= CHUNK || bytes >= CHUNK_BYTES {
            hand_over(&mut chunk)?;
            bytes = 0;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if !chunk.is_empty() {
        hand_over(&mut chunk)?;
    }
    Ok(print)
}

fn fingerprint(tx: &mut ReadTx<'_>, table: &Table) -> Result<Fingerprint> {
    let mut print = Fingerprint::default();
    tx.for_each_row(table, |row| print.add(row).map(|()| ControlFlow::Continue(())))?;
    Ok(print)
}

impl ReadTx<'_> {
    /// Hands over every row of a table without holding all of them.
    pub(crate) fn for_each_row(
        &mut self,
        table: &Table,
        mut each: impl FnMut(&crate::Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if self.dialect() == crate::tx::Dialect::Sqlite {
            return self.for_each(&table.select(), params![], each);
        }
        // The server would send everything at once; a cursor sends what is asked for.
        // A cursor's name stands for its columns: what fetches from it is prepared once.
        let cursor = format!("copy_{}_{}", table.name, table.columns.len());
        self.run(&format!("DECLARE {cursor} NO SCROLL CURSOR FOR {}", table.select()))?;
        // Few rows at first, more while they are small: a row may be a blob of megabytes.
        let mut wanted = 8;
        loop {
            let (mut rows, mut bytes) = (0, 0);
            self.for_each(&format!("FETCH {wanted} FROM {cursor}"), params![], |row| {
                rows += 1;
                for index in 0..row.columns() {
                    bytes += row.value(index)?.bytes();
                }
                each(row)
            })?;
            if rows < wanted {
                return self.run(&format!("CLOSE {cursor}"));
            }
            wanted = if bytes < CHUNK_BYTES / 4 { (wanted * 4).min(CHUNK) } else { 8 };
        }
    }
}
