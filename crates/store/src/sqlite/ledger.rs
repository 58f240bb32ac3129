//! The number of each writer's last batch, and what it is for: the truth after a failed COMMIT.
//!
//! A COMMIT that answers with an error may have been made all the same: its frames may be in the
//! write-ahead log, sealed, and a crash would bring them back. So the error is not passed on
//! before it is settled: the file is opened anew, the number is read, and either the batch is
//! there and is made durable by another way, or a small commit overwrites what may be left of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::connection::{Link, Role};
use crate::clock::Deadline;
use crate::identity::{Liveness, ProcessIdentity};
use crate::location::Journal;
use crate::lock::lock;

/// How long settling is tried while the disk keeps failing.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Committed,
    NotCommitted,
    Unknown(String),
}

/// Enters a batch, inside its own transaction.
pub(super) fn enter(connection: &Connection, writer: &str, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO engine_batches (writer, number) VALUES (?1, ?2)
             ON CONFLICT (writer) DO UPDATE SET number = excluded.number",
        )?
        .execute((writer, number))
        .map(drop)
}

/// Removes the rows of processes that are gone, inside a transaction.
pub(super) fn forget_the_dead(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("SELECT writer FROM engine_batches")?;
    let writers: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for writer in writers.iter().filter(|writer| is_dead(writer)) {
        connection.execute("DELETE FROM engine_batches WHERE writer = ?1", [writer])?;
    }
    Ok(())
}

/// The writers of this process that are open, by instance.
static OPEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// A writer's name, which no other writer ever has. Given back when it is dropped.
pub(super) struct WriterName {
    text: String,
    instance: u64,
}

impl WriterName {
    pub(super) fn new() -> Self {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        lock(&OPEN).insert(instance);
        Self { text: format!("{}#{instance}", ProcessIdentity::current()), instance }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl Drop for WriterName {
    fn drop(&mut self) {
        lock(&OPEN).remove(&self.instance);
    }
}

fn is_dead(writer: &str) -> bool {
    let parts = writer.rsplit_once('#').and_then(|(process, instance)| {
        Some((process.parse::<ProcessIdentity>().ok()?, instance.parse::<u64>().ok()?))
    });
    let Some((process, instance)) = parts else { return false };
    if process == *ProcessIdentity::current() {
        return !lock(&OPEN).contains(&instance);
    }
    // A store in a file is used by one kernel at a time: another boot is an earlier one.
    !process.shares_clock() || process.liveness() == Liveness::Dead
}

/// Finds out what became of batch `number` after its COMMIT failed. Called with the turn in hand
/// and the failed connection closed. Uses up number `number + 1`.
pub(super) fn settle(path: &Path, writer: &str, number: i64) -> Settled {
    let deadline = Deadline::after(PATIENCE);
    let mut pause = Duration::from_millis(5);
    loop {
        let problem = match Link::open(path, Role::Writer) {
            Ok(link) => match ask(&link, path, writer, number) {
                Ok(settled) => return settled,
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        if deadline.passed() {
            return Settled::Unknown(problem);
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn ask(link: &Link, path: &Path, writer: &str, number: i64) -> rusqlite::Result<Settled> {
    let connection = &link.connection;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let last: Option<i64> = connection
        .query_row("SELECT number FROM engine_batches WHERE writer = ?1", [writer], |row| {
            row.get(0)
        })
        .optional()?;
    if last.is_some_and(|last| last >= number) {
        connection.execute_batch("ROLLBACK")?;
        return made_durable(link, path, writer, number);
    }
    enter(connection, writer, number + 1)?;
    connection.execute_batch("COMMIT")?;
    Ok(Settled::NotCommitted)
}

/// The batch is visible, but the sync that failed may have left its frames in memory only, and
/// the next sync would not write them again. So the log is copied into the database and started
/// over, and one more commit seals a new log: the old one, with what it may lack, is then void.
fn made_durable(link: &Link, path: &Path, writer: &str, number: i64) -> rusqlite::Result<Settled> {
    let wal = !matches!(link.journal(path), Ok(Journal::Rollback));
    if wal && !link.checkpoint("RESTART", PATIENCE)? {
        let detail = "a reader kept the write-ahead log from being written out";
        return Ok(Settled::Unknown(detail.to_owned()));
    }
    link.connection.execute_batch("BEGIN IMMEDIATE")?;
    enter(&link.connection, writer, number + 1)?;
    link.connection.execute_batch("COMMIT")?;
    Ok(Settled::Committed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn store() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        super::super::create::blank(&path, &Schema::default(), Journal::Wal).unwrap();
        (directory, path)
    }

    fn last(path: &Path, writer: &str) -> Option<i64> {
        let link = Link::open(path, Role::Reader).unwrap();
        let sql = "SELECT number FROM engine_batches WHERE writer = ?1";
        link.connection.query_row(sql, [writer], |row| row.get(0)).optional().unwrap()
    }

    #[test]
    fn a_batch_that_is_there_was_committed_and_is_sealed_by_a_new_log() {
        let (_directory, path) = store();
        // Kept open, so that the log is not folded in by the last close.
        let other = Link::open(&path, Role::Writer).unwrap();
        enter(&other.connection, "w", 7).unwrap();
        let wal = super::super::files::Files::new(&path).wal();
        let salt = |bytes: &[u8]| bytes[16..24].to_vec();
        let before = salt(&std::fs::read(&wal).unwrap());
        assert_eq!(settle(&path, "w", 7), Settled::Committed);
        assert_ne!(salt(&std::fs::read(&wal).unwrap()), before, "the old log is void");
        assert_eq!(last(&path, "w"), Some(8));
    }

    #[test]
    fn a_batch_that_is_not_there_can_not_come_back() {
        let (_directory, path) = store();
        assert_eq!(settle(&path, "w", 1), Settled::NotCommitted);
        assert_eq!(last(&path, "w"), Some(2), "its frames are overwritten");
        assert_eq!(settle(&path, "w", 3), Settled::NotCommitted);
    }

    #[test]
    fn what_cannot_be_asked_is_not_known() {
        let (directory, path) = store();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(settle(&path, "w", 1), Settled::Unknown(_)));
        drop(directory);
    }

    #[test]
    fn only_writers_that_are_gone_are_forgotten() {
        let (_directory, path) = store();
        let link = Link::open(&path, Role::Writer).unwrap();
        let (open, closed) = (WriterName::new(), WriterName::new().as_str().to_owned());
        let mut dead = ProcessIdentity::current().clone();
        dead.start += 1;
        let dead = format!("{dead}#0");
        for writer in [open.as_str(), &closed, &dead, "not a name"] {
            enter(&link.connection, writer, 1).unwrap();
        }
        forget_the_dead(&link.connection).unwrap();
        let left: Vec<Option<i64>> =
            [open.as_str(), &closed, &dead, "not a name"].map(|writer| last(&path, writer)).into();
        assert_eq!(left, [Some(1), None, None, Some(1)]);
    }
}
