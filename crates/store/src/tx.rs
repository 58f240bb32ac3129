//! Transactions as closures see them.
//!
//! SQL is written once, in the subset that both engines share: `?1` parameters, `ON CONFLICT`,
//! `RETURNING`, integers for time and truth, sums cast to `BIGINT`. A statement that fails dooms
//! its transaction on both engines, whatever the closure then answers; what may clash is written
//! with `ON CONFLICT`.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Deref, DerefMut};

use crate::{Error, Params, Result, Row};

/// A transaction that only reads: one consistent moment of the store.
pub struct ReadTx<'a> {
    session: &'a mut dyn Session,
    now: i64,
    failure: Option<String>,
}

/// A transaction that reads and writes; durable when [`Store::write`](crate::Store::write)
/// returns.
pub struct WriteTx<'a> {
    read: ReadTx<'a>,
    topics: BTreeSet<String>,
}

/// An engine's connection inside a transaction.
pub(crate) trait Session {
    fn dialect(&self) -> Dialect;
    fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<usize>;
    fn query(&mut self, sql: &str, params: Params<'_>, each: &mut Each<'_>) -> Result<()>;
    /// Fails where the transaction must run again in its turn. An engine with one writer at a time
    /// has nothing to do.
    fn in_turn(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What happens with each row; `Break` ends the query early.
pub(crate) type Each<'a> = dyn FnMut(&Row<'_>) -> ControlFlow<()> + 'a;

/// A write transaction's closure, its result kept by its caller. Answers whether to keep its
/// changes.
pub(crate) type Job<'a> = dyn FnMut(&mut WriteTx<'_>) -> bool + Send + 'a;

/// Whether `text` can name a topic: topics travel as lines.
pub(crate) fn is_topic(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\0'])
}

/// Which engine runs the statements, for the few that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl<'a> ReadTx<'a> {
    pub(crate) fn new(session: &'a mut dyn Session, now: i64) -> Self {
        Self { session, now, failure: None }
    }

    /// The transaction's time, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// All rows of a query.
    pub fn query<T>(
        &mut self,
        sql: &str,
        params: Params<'_>,
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.for_each(sql, params, |row| {
            rows.push(map(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// The first row of a query, if there is one.
    pub fn query_opt<T>(
        &mut self,
        sql: &str,
        params: Params<'_>,
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.for_each(sql, params, |row| {
            first = Some(map(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// The first row of a query that always has one, such as a count.
    pub fn query_one<T>(
        &mut self,
        sql: &str,
        params: Params<'_>,
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.query_opt(sql, params, map)?
            .ok_or_else(|| Error::Statement(format!("no row came back from: {sql}")))
    }

    /// Hands each row to `each` as it comes, until it breaks or fails.
    pub fn for_each(
        &mut self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut failed = None;
        let outcome = self.session.query(sql, params, &mut |row| match each(row) {
            Ok(flow) => flow,
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        self.note(outcome)?;
        failed.map_or(Ok(()), Err)
    }

    /// Runs a statement that changes nothing in the store, such as a cursor's declaration.
    pub(crate) fn run(&mut self, sql: &str) -> Result<()> {
        let outcome = self.session.execute(sql, &[]).map(drop);
        self.note(outcome)
    }

    /// Which engine runs the statements.
    pub fn dialect(&self) -> Dialect {
        self.session.dialect()
    }

    /// The first statement that failed, which dooms the transaction.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && self.failure.is_none()
        {
            self.failure = Some(error.to_string());
        }
        outcome
    }
}

impl<'a> WriteTx<'a> {
    pub(crate) fn new(session: &'a mut dyn Session, now: i64) -> Self {
        Self { read: ReadTx::new(session, now), topics: BTreeSet::new() }
    }

    /// Runs a statement and answers how many rows it changed.
    pub fn execute(&mut self, sql: &str, params: Params<'_>) -> Result<usize> {
        let outcome = self.read.session.execute(sql, params);
        self.read.note(outcome)
    }

    /// Lets this transaction and others that ask for it run one after another, where the engine
    /// would run them side by side: for what changes rows that all of them change, so that no work
    /// is done in vain. Costs a start of its own; the closure runs again from its beginning.
    pub fn in_turn(&mut self) -> Result<()> {
        let outcome = self.read.session.in_turn();
        self.read.note(outcome)
    }

    /// Wakes whoever listens to `topic`, in any process, once this transaction is durable.
    /// A topic is any text without a line break.
    pub fn wake(&mut self, topic: &str) -> Result<()> {
        if !is_topic(topic) {
            return Err(Error::Unstorable("a topic that is empty or has a line break"));
        }
        if !self.topics.contains(topic) {
            self.topics.insert(topic.to_owned());
        }
        Ok(())
    }

    pub(crate) fn take_topics(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.topics)
    }
}

impl<'a> Deref for WriteTx<'a> {
    type Target = ReadTx<'a>;

    fn deref(&self) -> &ReadTx<'a> {
        &self.read
    }
}

impl<'a> DerefMut for WriteTx<'a> {
    fn deref_mut(&mut self) -> &mut ReadTx<'a> {
        &mut self.read
    }
}
