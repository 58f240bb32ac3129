//! The rows: what was known of files at one moment of a session.

use std::collections::BTreeMap;

use mainstay_journal::{CallId, SessionId, TurnId, TurnRef};
use mainstay_store::{ReadTx, WriteTx, params};
use mainstay_tools::snapshot::{Scanned, State, escaped};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The tables of snapshots.
pub(crate) const TABLES: &str = "
CREATE TABLE snapshot_objects (
    hash TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE snapshots (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    turn TEXT NOT NULL,
    call TEXT,
    workspace TEXT,
    root TEXT,
    mark TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshots_of_workspace ON snapshots (workspace, taken_at) WHERE root IS NOT NULL;

CREATE TABLE undos (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    turns TEXT NOT NULL,
    steps TEXT NOT NULL,
    taken_back TEXT,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (session, number)
) STRICT;

CREATE TABLE snapshot_sweeps (
    one INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    swept_at INTEGER NOT NULL
) STRICT;
";

/// What was known of files at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    /// The whole workspace, before a command.
    Tree(Tree),
    /// Single paths, escaped, before a tool changes one of them.
    Files(BTreeMap<String, State>),
    /// How it all was when the turn ended or was parked.
    After {
        /// The workspace, where it was looked at before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<Tree>,
        /// The single paths.
        files: BTreeMap<String, State>,
    },
}

/// A workspace at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// The object of its listing.
    pub(crate) root: String,
    /// Its directory, escaped.
    pub(crate) workspace: String,
    /// What is not kept of it, escaped, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<(String, mainstay_tools::snapshot::Omission)>,
    /// How much is not kept.
    #[serde(default)]
    pub(crate) left_count: usize,
}

impl From<Scanned> for Tree {
    fn from(scanned: Scanned) -> Self {
        Self {
            root: scanned.root,
            workspace: escaped(&scanned.workspace),
            left: scanned.left.iter().map(|left| (escaped(&left.path), left.why)).collect(),
            left_count: scanned.left_count,
        }
    }
}

/// A mark of a session, as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) turn: TurnId,
    pub(crate) number: i64,
    pub(crate) at: i64,
    pub(crate) mark: Mark,
}

/// Writes a mark down.
pub(crate) fn write(
    tx: &mut WriteTx<'_>,
    place: TurnRef,
    number: i64,
    call: Option<CallId>,
    mark: &Mark,
) -> Result<()> {
    let TurnRef { session, turn } = place;
    let now = tx.now();
    let text = serde_json::to_string(mark).map_err(|error| damaged("a snapshot", &error))?;
    let tree = match mark {
        Mark::Tree(tree) => Some(tree),
        Mark::After { tree, .. } => tree.as_ref(),
        Mark::Files(_) => None,
    };
    let (workspace, root) = (tree.map(|tree| &tree.workspace), tree.map(|tree| &tree.root));
    tx.execute(
        "INSERT INTO snapshots (session, number, turn, call, workspace, root, mark, taken_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![session, number, turn, call, workspace, root, text, now],
    )?;
    Ok(())
}

/// The listing of a workspace when it was last looked at, in any session.
pub(crate) fn last_root(tx: &mut ReadTx<'_>, workspace: &str) -> Result<Option<String>> {
    let sql = "SELECT root FROM snapshots WHERE workspace = ?1 AND root IS NOT NULL
               ORDER BY taken_at DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![workspace], |row| row.get(0))?)
}

/// The number of the last mark of a session.
pub(crate) fn last(tx: &mut ReadTx<'_>, session: SessionId) -> Result<i64> {
    let sql = "SELECT number FROM snapshots WHERE session = ?1 ORDER BY number DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![session], |row| row.get(0))?.unwrap_or(0))
}

/// All marks of a session, in order.
pub(crate) fn all(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Marked>> {
    let rows: Vec<(TurnId, i64, i64, String)> = tx.query(
        "SELECT turn, number, taken_at, mark FROM snapshots WHERE session = ?1 ORDER BY number",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let read = |(turn, number, at, text): (TurnId, i64, i64, String)| {
        let mark = serde_json::from_str(&text)
            .map_err(|error| damaged(&format!("a snapshot of session {session}"), &error))?;
        Ok(Marked { turn, number, at, mark })
    };
    rows.into_iter().map(read).collect()
}

/// Takes the marks and undos of a session away. Their objects go with the next sweep.
pub(crate) fn forget(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    tx.execute("DELETE FROM snapshots WHERE session = ?1", params![session])?;
    tx.execute("DELETE FROM undos WHERE session = ?1", params![session])?;
    Ok(())
}

/// A row that cannot be understood.
pub(crate) fn damaged(what: &str, error: &dyn std::fmt::Display) -> Error {
    let (what, detail) = (what.to_owned(), error.to_string());
    Error::Journal(mainstay_journal::Error::Damaged { what, detail })
}
