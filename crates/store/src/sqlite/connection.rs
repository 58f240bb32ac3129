//! The one place that opens databases, with the opening rules.
//!
//! The journal mode is read and never set here: it was decided when the file was created. A
//! transient error is retried for a bounded time and then reported as it is; it is never taken
//! for a reason to open the file in another way.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::{described, is_transient, may_be_misread, misuse};
use super::files::Files;
use super::read_only::unchanging;
use super::session::SqliteSession;
use crate::clock::{Deadline, millis, uptime_millis};
use crate::location::Journal;
use crate::tx::ReadTx;
use crate::{Error, Result};

/// Marks a file as ours: "MNST".
pub(super) const APPLICATION_ID: i64 = 0x4d4e_5354;

/// How long opening goes on after transient errors.
const OPEN_PATIENCE: Duration = Duration::from_secs(2);
/// How long a statement waits for locks that are not ours: another program, a recovery.
const BUSY_PATIENCE: Duration = Duration::from_secs(4);
/// The write-ahead log keeps its file up to this size when it starts over: writing over bytes that
/// are there syncs faster than making a file longer.
pub(super) const WAL_KEPT_BYTES: i64 = 12 << 20;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Commits. One a process.
    Writer,
    /// Reads, and cannot write.
    Reader,
    /// Looks at a file that may not be ours, and leaves its log as it is.
    Examiner,
}

/// A connection that stops statements which run past their limit.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: Connection,
    limit: Arc<AtomicI64>,
}

/// No limit.
const UNLIMITED: i64 = i64::MAX;

impl Link {
    /// Opens an existing store.
    pub(super) fn open(path: &Path, role: Role) -> Result<Self> {
        let deadline = Deadline::after(OPEN_PATIENCE);
        let mut pause = Duration::from_millis(1);
        let mut misread = false;
        loop {
            match Self::attempt(path, role) {
                Ok(Some(link)) => return Ok(link),
                Ok(None) => {
                    return Err(Error::NotAStore {
                        path: path.to_owned(),
                        detail: "it is an SQLite database of another program".to_owned(),
                    });
                }
                Err(error) if is_transient(&error) && !deadline.passed() => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
                // A read that fails looks like damage: once more.
                Err(error) if may_be_misread(&error) && !misread => misread = true,
                Err(error) => return Err(described(path, &error, Duration::ZERO)),
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this module opens databases")]
    fn attempt(path: &Path, role: Role) -> rusqlite::Result<Option<Self>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let mut connection = Connection::open_with_flags(path, flags)?;
        // SQLite takes what it gets. Without a log it would want to make one.
        let read_only = connection.is_readonly(rusqlite::MAIN_DB)?;
        if read_only && role != Role::Writer && !Files::new(path).wal().exists() {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_EXRESCODE;
            connection = Connection::open_with_flags(unchanging(path), flags)?;
        }
        // Until the file is known to be ours, closing it must not fold its log in. Where there is no
        // log, closing removes the empty one that opening makes.
        let has_log = Files::new(path).wal_bytes() > 0;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log)?;
        connection.busy_timeout(BUSY_PATIENCE)?;
        // Before anything is read of the content or written.
        if integer(&connection, "PRAGMA application_id")? != APPLICATION_ID {
            return Ok(None);
        }
        let keep_log = has_log && role == Role::Examiner;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log)?;
        connection.set_prepared_statement_cache_capacity(256);
        // Plans do not depend on values, so a statement is planned once and not at each use.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous=FULL;
             PRAGMA wal_autocheckpoint=0;
             PRAGMA journal_size_limit={WAL_KEPT_BYTES};
             PRAGMA foreign_keys=ON;
             PRAGMA cell_size_check=ON;
             PRAGMA mmap_size=0;
             PRAGMA trusted_schema=OFF;
             PRAGMA temp_store=MEMORY;
             PRAGMA fullfsync=ON;
             PRAGMA checkpoint_fullfsync=ON;
             PRAGMA query_only={};",
            i32::from(role != Role::Writer)
        ))?;
        if integer(&connection, "PRAGMA synchronous")? != 2 {
            return Err(misuse("SQLite did not accept synchronous=FULL"));
        }
        let limit = Arc::new(AtomicI64::new(UNLIMITED));
        let watched = limit.clone();
        connection.progress_handler(
            1000,
            Some(move || {
                let limit = watched.load(Ordering::Relaxed);
                limit != UNLIMITED && uptime_millis() > limit
            }),
        )?;
        Ok(Some(Self { connection, limit }))
    }

    /// Lets statements run until `deadline` and then interrupts them.
    pub(super) fn limit(&self, deadline: Option<Duration>) {
        let limit =
            deadline.map_or(UNLIMITED, |patience| uptime_millis().saturating_add(millis(patience)));
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether commits wait until they are on the disk. Not inside a transaction.
    pub(super) fn sync_commits(&self, sync: bool) -> rusqlite::Result<()> {
        let level = if sync { "FULL" } else { "NORMAL" };
        self.connection.execute_batch(&format!("PRAGMA synchronous={level};"))
    }

    pub(super) fn integer(&self, sql: &str) -> rusqlite::Result<i64> {
        integer(&self.connection, sql)
    }

    /// Runs `job` on one moment of the database, without a limit.
    pub(super) fn read(
        &self,
        path: &Path,
        now: i64,
        job: &mut dyn FnMut(&mut ReadTx<'_>),
    ) -> Result<Fitness> {
        read_on(&self.connection, path, now, job)
    }

    /// Copies the write-ahead log into the database, in one of SQLite's modes, waiting at most
    /// `patience` for others. Answers whether it was done.
    pub(super) fn checkpoint(&self, mode: &str, patience: Duration) -> rusqlite::Result<bool> {
        self.connection.busy_timeout(patience)?;
        let busy = self.integer(&format!("PRAGMA wal_checkpoint({mode})"));
        self.connection.busy_timeout(BUSY_PATIENCE)?;
        Ok(busy? == 0)
    }

    /// The journal mode the file has.
    pub(super) fn journal(&self, path: &Path) -> Result<Journal> {
        let mode: String = self
            .connection
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .map_err(|error| described(path, &error, Duration::ZERO))?;
        Ok(if mode == "wal" { Journal::Wal } else { Journal::Rollback })
    }
}

/// Opens an empty file that is about to become a store, outside the rules for existing ones.
#[expect(clippy::disallowed_methods, reason = "this module opens databases")]
pub(super) fn open_blank(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON;")?;
    Ok(connection)
}

/// Whether a connection can be used further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitness {
    Fit,
    /// Something failed on it; what was read may be read again on another one.
    Spoilt,
}

/// Runs `job` inside a read transaction.
pub(super) fn read_on(
    connection: &Connection,
    path: &Path,
    now: i64,
    job: &mut dyn FnMut(&mut ReadTx<'_>),
) -> Result<Fitness> {
    let mut session = SqliteSession::new(connection, path, Duration::ZERO);
    connection.execute_batch("BEGIN").map_err(|error| session.described(&error))?;
    job(&mut ReadTx::new(&mut session, now));
    if session.spoilt.get() {
        return Ok(Fitness::Spoilt);
    }
    connection.execute_batch("COMMIT").map_err(|error| session.described(&error))?;
    Ok(Fitness::Fit)
}

fn integer(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus::RePrepare;

    use super::{Link, Role};
    use crate::{Component, Location, Migration, Options, Schema, Store};

    const ENTRIES: Component = Component {
        name: "entries",
        migrations: &[Migration::Both(
            "CREATE TABLE entries (
                session TEXT NOT NULL,
                seq INTEGER NOT NULL,
                body TEXT NOT NULL,
                PRIMARY KEY (session, seq)
            ) STRICT;",
        )],
    };

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let options = Options::new(Schema::new(&[ENTRIES]));
        drop(Store::open(&Location::file(path.clone()), options).unwrap());
        let link = Link::open(&path, Role::Writer).unwrap();
        let sql = "SELECT seq FROM entries WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
        for session in ["a", "b", "c"] {
            let mut statement = link.connection.prepare_cached(sql).unwrap();
            statement.raw_bind_parameter(1, session).unwrap();
            assert!(statement.raw_query().next().unwrap().is_none());
            assert_eq!(statement.get_status(RePrepare), 0, "{session}");
        }
    }
}
