//! What the two engines do differently: how words are kept, and how they are found.

use mainstay_store::{Dialect, OwnerId, ReadTx, ToValue, Value, WriteTx, params};

use super::query::Term;
use super::{Filter, Who, postgres, sqlite};
use crate::{Result, SessionId};

/// The tables that say what state the index is in.
pub(super) const STATE_TABLES: [&str; 2] = ["cache_search_state", "cache_search_gone"];

/// Matches that are looked through for those that pass the filters, the newest first.
pub(super) const LOOKED_THROUGH: i64 = 20_000;

/// An engine's full-text index.
pub(super) trait Engine: Sync {
    /// Whether all tables of the index are there.
    fn is_present(&self, tx: &mut ReadTx<'_>) -> Result<bool>;
    /// Makes sure that nobody else makes the tables until the end of the transaction; answers whether
    /// that went well.
    fn take_turn(&self, tx: &mut WriteTx<'_>) -> Result<bool>;
    /// The tables, by name, each with the statement that makes it.
    fn tables(&self) -> &'static [(&'static str, &'static str)];
    /// Removes the tables that are there.
    fn discard(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        for (name, _) in self.tables() {
            tx.execute(&format!("DROP TABLE IF EXISTS {name}"), params![])?;
        }
        Ok(())
    }
    /// Makes the tables.
    fn create(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        for (_, sql) in self.tables() {
            tx.execute(sql, params![])?;
        }
        self.make_indexes(tx)
    }
    /// Makes what stands beside the tables.
    fn make_indexes(&self, _: &mut WriteTx<'_>) -> Result<()> {
        Ok(())
    }
    /// Adds an entry's words.
    fn insert(&self, tx: &mut WriteTx<'_>, document: &Document<'_>) -> Result<()>;
    /// Removes the entries of a session.
    fn remove(&self, tx: &mut WriteTx<'_>, number: i64) -> Result<()>;
    /// The entries that match, the newest first or the oldest.
    fn matches(&self, tx: &mut ReadTx<'_>, wanted: &Wanted<'_>) -> Result<Vec<Candidate>>;
    /// In how many of an owner's entries a term is: at most `most`.
    fn count(&self, tx: &mut ReadTx<'_>, owner: OwnerId, term: &Term, most: i64) -> Result<i64>;
    /// What it cannot do, in a sentence, where something is missing.
    fn shortcoming(&self, tx: &mut ReadTx<'_>) -> Result<Option<String>>;
}

/// The engine of a transaction.
pub(super) fn of(tx: &ReadTx<'_>) -> &'static dyn Engine {
    match tx.dialect() {
        Dialect::Sqlite => &sqlite::Sqlite,
        Dialect::Postgres => &postgres::Postgres,
    }
}

/// An entry as it is indexed.
pub(super) struct Document<'a> {
    pub(super) id: i64,
    pub(super) owner: OwnerId,
    /// The session's number in the index.
    pub(super) session: i64,
    pub(super) seq: i64,
    pub(super) who: Who,
    pub(super) at: i64,
    pub(super) tokens: &'a str,
    pub(super) fragments: &'a str,
}

/// What is to be found.
pub(super) struct Wanted<'a> {
    pub(super) owner: OwnerId,
    pub(super) filter: &'a Filter,
    /// Words that must be there; none where only fragments are looked for.
    pub(super) terms: &'a [&'a Term],
    pub(super) without: &'a [Term],
    /// Pieces of names that must be there.
    pub(super) fragments: &'a [&'a str],
    /// The first and the last document that can match.
    pub(super) bounds: (i64, i64),
    pub(super) oldest_first: bool,
    pub(super) most: i64,
}

/// An entry that matches.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) id: i64,
    pub(super) session: SessionId,
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) body: String,
}

/// A statement that is put together.
#[derive(Default)]
pub(super) struct Statement {
    pub(super) sql: String,
    values: Vec<Value>,
}

impl Statement {
    /// Adds a value and answers its place.
    pub(super) fn bind(&mut self, value: impl ToValue) -> String {
        self.values.push(value.to_value().to_owned());
        format!("?{}", self.values.len())
    }

    /// Adds what an entry must be besides a match: the owner's, above all.
    pub(super) fn filter(&mut self, owner: OwnerId, filter: &Filter) {
        let owner = self.bind(owner);
        let mut sql = format!(" WHERE s.owner = {owner}");
        let Filter { session, except, workspace, who, since, until } = filter;
        if let Some(session) = session {
            sql.push_str(&format!(" AND i.session = {}", self.bind(*session)));
        }
        if let Some(session) = except {
            sql.push_str(&format!(" AND i.session <> {}", self.bind(*session)));
        }
        if let Some(workspace) = workspace {
            let exactly = self.bind(workspace.as_str());
            let below = format!("{}/", workspace.trim_end_matches('/'));
            let length = self.bind(i64::try_from(below.chars().count()).unwrap_or(i64::MAX));
            let below = self.bind(below.as_str());
            sql.push_str(&format!(
                " AND (s.workspace = {exactly}
                       OR substr(s.workspace, 1, CAST({length} AS INTEGER)) = {below})"
            ));
        }
        if let Some(who) = who {
            sql.push_str(&format!(" AND d.who = {}", self.bind(who.number())));
        }
        if let Some(since) = since {
            sql.push_str(&format!(" AND d.at >= {}", self.bind(*since)));
        }
        if let Some(until) = until {
            sql.push_str(&format!(" AND d.at < {}", self.bind(*until)));
        }
        self.sql.push_str(&sql);
    }

    /// Runs it; its columns are a candidate's.
    pub(super) fn candidates(&self, tx: &mut ReadTx<'_>) -> Result<Vec<Candidate>> {
        let values: Vec<&dyn ToValue> = self.values.iter().map(|value| value as _).collect();
        Ok(tx.query(&self.sql, &values, |row| {
            Ok(Candidate {
                id: row.get(0)?,
                session: row.get(1)?,
                seq: row.get(2)?,
                at: row.get(3)?,
                body: row.get(4)?,
            })
        })?)
    }

    /// Runs it; it counts.
    pub(super) fn number(&self, tx: &mut ReadTx<'_>) -> Result<i64> {
        let values: Vec<&dyn ToValue> = self.values.iter().map(|value| value as _).collect();
        Ok(tx.query_one(&self.sql, &values, |row| row.get(0))?)
    }
}
