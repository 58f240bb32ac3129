//! One batch: several transactions, one commit.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::ahead;
use super::connection::Link;
use super::ledger;
use super::queue::Ticket;
use super::session::SqliteSession;
use crate::panic_text::panic_text;
use crate::schema::Schema;
use crate::tx::WriteTx;
use crate::{Error, Result};

/// How much one commit carries, so that the log stays small: a transaction that takes it further is
/// the last one.
const BATCH_BYTES: usize = 4 << 20;

/// What a batch needs to run.
pub(super) struct Batch<'a> {
    pub(super) link: &'a Link,
    pub(super) path: &'a Path,
    pub(super) schema: &'a Schema,
    /// Names this writer in `engine_batches`.
    pub(super) writer: &'a str,
    /// The number this batch gets.
    pub(super) number: i64,
    /// Whether it is the first on its connection.
    pub(super) first: bool,
    /// How many frames the log had after the last commit.
    pub(super) frames: u32,
    pub(super) room: &'a ahead::Room,
    /// The changes of others, as SQLite counts them, with which the schema was last looked at.
    pub(super) checked: &'a Cell<Option<i64>>,
    pub(super) now: i64,
    pub(super) limit: Duration,
}

/// A batch that is ready to be committed.
pub(super) struct Ready {
    /// What to answer to each ticket once the commit is made: to the first ones, where not all of
    /// them fitted in.
    pub(super) answers: Vec<Result<()>>,
    /// The topics of all transactions that are kept.
    pub(super) topics: BTreeSet<String>,
    /// Whether there is anything to commit.
    pub(super) keeps: bool,
}

/// A batch that fell over as a whole: nothing of it was kept.
pub(super) struct Fallen {
    /// The connection must be thrown away.
    pub(super) spoilt: bool,
    /// A page could not be read, or is broken.
    pub(super) misread: bool,
    /// The disk is full.
    pub(super) full: bool,
    pub(super) cause: Cause,
}

/// Why a batch fell over.
pub(super) enum Cause {
    /// It could not begin, or go on.
    Store(Error),
    /// The statement of one ticket did it; this is the answer to that ticket. The others may try
    /// again.
    Ticket(usize, Result<()>),
}

impl Batch<'_> {
    /// Begins, checks the schema, and runs every job: in a savepoint where there are several, so that
    /// one that is not kept leaves the others. One that is alone is undone with the batch.
    pub(super) fn prepare(&self, tickets: &[Arc<Ticket>]) -> Result<Ready, Fallen> {
        let mut session = SqliteSession::new(&self.link.connection, self.path, self.limit);
        let mut ready = Ready { answers: Vec::new(), topics: BTreeSet::new(), keeps: false };
        let mut run = || {
            self.begin(&session).map_err(Cause::Store)?;
            let alone = tickets.len() == 1;
            for (index, ticket) in tickets.iter().enumerate() {
                let answer = self.one(index, ticket, alone, &mut session, &mut ready)?;
                ready.answers.push(answer);
                if session.bytes.get() > BATCH_BYTES {
                    // The others go into the next commit.
                    break;
                }
            }
            Ok(())
        };
        match run() {
            Ok(()) => Ok(ready),
            Err(cause) => Err(Fallen {
                spoilt: session.spoilt.get(),
                misread: session.misread.get(),
                full: session.full.get(),
                cause,
            }),
        }
    }

    fn begin(&self, session: &SqliteSession<'_>) -> Result<()> {
        let failed = |error: rusqlite::Error| session.described(&error);
        self.run("BEGIN IMMEDIATE").map_err(failed)?;
        ahead::make_room(&self.link.connection, self.frames, self.room);
        self.check_schema(session)?;
        if self.first {
            ledger::forget_the_dead(&self.link.connection).map_err(failed)?;
        }
        ledger::enter(&self.link.connection, self.writer, self.number).map_err(failed)
    }

    /// Refuses a schema that this program cannot write. As long as only this connection writes, what was
    /// looked at holds: SQLite counts the changes that others made.
    fn check_schema(&self, session: &SqliteSession<'_>) -> Result<()> {
        let failed = |error: rusqlite::Error| session.described(&error);
        let connection = &self.link.connection;
        let others = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .map_err(failed)?;
        if self.checked.get() == Some(others) {
            return Ok(());
        }
        let mut statement = connection
            .prepare_cached("SELECT component, version FROM schema_versions")
            .map_err(failed)?;
        let found: rusqlite::Result<Vec<(String, i64)>> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect);
        self.schema.check(&found.map_err(failed)?)?;
        self.checked.set(Some(others));
        Ok(())
    }

    /// Runs one job. The outer error means that the whole batch is lost.
    fn one(
        &self,
        index: usize,
        ticket: &Ticket,
        alone: bool,
        session: &mut SqliteSession<'_>,
        ready: &mut Ready,
    ) -> Result<Result<()>, Cause> {
        if !alone {
            self.run("SAVEPOINT job").map_err(|error| Cause::Store(session.described(&error)))?;
        }
        let mut tx = WriteTx::new(session, self.now);
        // Each has the whole limit: a slow neighbour is not its fault.
        self.link.limit(Some(self.limit));
        let verdict = catch_unwind(AssertUnwindSafe(|| ticket.run(&mut tx)));
        self.link.limit(None);
        let failure = tx.failure().map(str::to_owned);
        let topics = tx.take_topics();
        let (kept, answer) = match (verdict, failure) {
            (Err(panic), _) => (false, Err(Error::Panicked(panic_text(panic.as_ref())))),
            // The closure's own error is its caller's answer.
            (Ok(false), _) => (false, Ok(())),
            (Ok(true), Some(failure)) => (false, Err(Error::Statement(failure))),
            (Ok(true), None) => (true, Ok(())),
        };
        if session.spoilt.get() || self.link.connection.is_autocommit() {
            return Err(Cause::Ticket(index, answer));
        }
        if kept {
            ready.topics.extend(topics);
            ready.keeps = true;
        }
        let ends: &[&str] = match (alone, kept) {
            (true, _) => &[],
            (false, true) => &["RELEASE job"],
            (false, false) => &["ROLLBACK TO job", "RELEASE job"],
        };
        for sql in ends {
            self.run(sql).map_err(|error| Cause::Store(session.described(&error)))?;
        }
        Ok(answer)
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.link.connection.prepare_cached(sql)?.raw_execute().map(drop)
    }

    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.run("COMMIT")
    }

    /// Undoes the batch. SQLite may have done so already.
    pub(super) fn roll_back(&self) -> rusqlite::Result<()> {
        if self.link.connection.is_autocommit() { Ok(()) } else { self.run("ROLLBACK") }
    }
}
