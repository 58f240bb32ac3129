//! A small pool of connections that only read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use super::connection::{Fitness, Link, Role};
use super::files::Files;
use super::session::SqliteSession;
use crate::clock::Deadline;
use crate::lock::lock;
use crate::panic_text::panic_text;
use crate::store::Limits;
use crate::tx::ReadTx;
use crate::{Error, Result};

/// How many reads run side by side in one process.
const READERS: usize = 4;

pub(super) struct Readers {
    files: Files,
    limits: Limits,
    pool: Mutex<Pool>,
    freed: Condvar,
}

struct Pool {
    idle: Vec<Link>,
    out: usize,
    /// Counts the times everything was closed; a connection from before is not taken back.
    era: u64,
}

impl Readers {
    /// A pool that starts with the connection the store was examined with.
    pub(super) fn new(files: Files, limits: Limits, first: Link) -> Self {
        let pool = Mutex::new(Pool { idle: vec![first], out: 0, era: 0 });
        Self { files, limits, pool, freed: Condvar::new() }
    }

    /// Runs a read at one moment of the store. A failure of the file is tried once more on a new
    /// connection: a passing read error looks like damage.
    pub(super) fn read(&self, now: i64, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()> {
        let first = self.attempt(now, job)?;
        if first == Fitness::Spoilt {
            self.attempt(now, job)?;
        }
        Ok(())
    }

    fn attempt(&self, now: i64, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<Fitness> {
        let (link, era) = self.take()?;
        let mut borrowed = Borrowed { readers: self, link: Some(link), era };
        let Some(link) = &borrowed.link else { return Ok(Fitness::Spoilt) };
        link.limit(Some(self.limits.read));
        let mut session =
            SqliteSession::new(&link.connection, &self.files.database, self.limits.read);
        let run = |sql: &str| link.connection.prepare_cached(sql)?.raw_execute();
        if let Err(error) = run("BEGIN") {
            let error = session.described(&error);
            borrowed.link = None;
            return Err(error);
        }
        let mut tx = ReadTx::new(&mut session, now);
        let verdict = catch_unwind(AssertUnwindSafe(|| job(&mut tx)));
        link.limit(None);
        let spoilt = session.spoilt.get() || run("COMMIT").is_err();
        if spoilt {
            borrowed.link = None;
        }
        verdict.map_err(|panic| Error::Panicked(panic_text(panic.as_ref())))?;
        Ok(if spoilt { Fitness::Spoilt } else { Fitness::Fit })
    }

    fn take(&self) -> Result<(Link, u64)> {
        let deadline = Deadline::after(self.limits.write);
        let mut pool = lock(&self.pool);
        loop {
            if let Some(link) = pool.idle.pop() {
                pool.out += 1;
                return Ok((link, pool.era));
            }
            if pool.out < READERS {
                pool.out += 1;
                let era = pool.era;
                drop(pool);
                let opened = self
                    .files
                    .refuse_replaced()
                    .and_then(|()| Link::open(&self.files.database, Role::Reader));
                return opened.map(|link| (link, era)).inspect_err(|_| self.give(None, era));
            }
            let left = deadline.left();
            if left.is_zero() {
                let limit = self.limits.write;
                return Err(Error::TooSlow { what: "waiting for a reader".to_owned(), limit });
            }
            let waited = self.freed.wait_timeout(pool, left);
            pool = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give(&self, link: Option<Link>, era: u64) {
        let mut pool = lock(&self.pool);
        pool.out -= 1;
        if era == pool.era {
            pool.idle.extend(link);
        }
        self.freed.notify_one();
    }

    /// Closes every connection; those in use are closed when they come back.
    pub(super) fn close(&self) {
        let mut pool = lock(&self.pool);
        pool.era += 1;
        pool.idle.clear();
    }
}

/// Gives the connection back, or its place if it was thrown away.
struct Borrowed<'a> {
    readers: &'a Readers,
    link: Option<Link>,
    era: u64,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.readers.give(self.link.take(), self.era);
    }
}
