//! Core memory: short notes on the user and on a workspace, told to every new session.
//!
//! A note is a row, so no text can pass for two notes and an addition rewrites nothing. What is
//! changed together is changed as a whole or not at all, and judged by what would be there
//! afterwards. Whatever cannot be read is an error of the transaction: nothing takes it for "none".

mod change;

use mainstay_store::{OwnerId, ReadTx, Result, Row, WriteTx, params};
use serde::Serialize;

pub use change::{Change, Refused};
use change::{Planned, plan};

/// The most characters of the notes on a user.
pub const USER_LIMIT: usize = 1_375;
/// The most characters of the notes on a workspace.
pub const WORKSPACE_LIMIT: usize = 2_200;

/// Whom or what notes are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The user, wherever they work.
    User,
    /// A workspace, by its path.
    Workspace(&'a str),
}

impl<'a> Scope<'a> {
    /// How the table names it: no path is empty.
    fn column(self) -> &'a str {
        match self {
            Scope::User => "",
            Scope::Workspace(path) => path,
        }
    }
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Its place among the notes of its scope, which stays when others go.
    pub number: i64,
    /// What it says.
    pub text: String,
    /// Who wrote it, such as `user` or `session 0198…`.
    pub source: String,
    /// When it was written, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was last written anew.
    pub changed_at: i64,
}

/// How many characters notes have, a line each.
pub fn size<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    let lines = texts.into_iter().map(|text| text.chars().count() + 1);
    lines.sum::<usize>().saturating_sub(1)
}

/// The notes of an owner on something, the oldest first.
pub fn read(tx: &mut ReadTx<'_>, owner: OwnerId, scope: Scope<'_>) -> Result<Vec<Note>> {
    tx.query(
        "SELECT number, text, source, created_at, changed_at FROM notes
         WHERE owner = ?1 AND workspace = ?2 ORDER BY number",
        params![owner, scope.column()],
        note,
    )
}

/// All workspaces that an owner has notes on.
pub fn workspaces(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<String>> {
    tx.query(
        "SELECT DISTINCT workspace FROM notes WHERE owner = ?1 AND workspace <> '' ORDER BY workspace",
        params![owner],
        |row| row.get(0),
    )
}

/// Changes the notes on something as a whole, or not at all. Answers the notes as they are then.
pub fn change(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    scope: Scope<'_>,
    changes: &[Change],
    source: &str,
    limit: usize,
) -> Result<std::result::Result<Vec<Note>, Refused>> {
    let notes = read(tx, owner, scope)?;
    let planned = match plan(&notes, changes, limit) {
        Ok(planned) => planned,
        Err(refused) => return Ok(Err(refused)),
    };
    let now = tx.now();
    let place = scope.column();
    // Whatever changes goes first: one may take the text that another had.
    let stays =
        |note: &Note| planned.iter().any(|one| one.number == Some(note.number) && !one.changed);
    for gone in notes.iter().filter(|note| !stays(note)) {
        tx.execute(
            "DELETE FROM notes WHERE owner = ?1 AND workspace = ?2 AND number = ?3",
            params![owner, place, gone.number],
        )?;
    }
    let mut next = notes.last().map_or(1, |note| note.number + 1);
    for Planned { number, text, .. } in planned.iter().filter(|one| one.changed) {
        let before = notes.iter().find(|note| Some(note.number) == *number);
        let created_at = before.map_or(now, |note| note.created_at);
        let number = number.unwrap_or(next);
        next = next.max(number + 1);
        tx.execute(
            "INSERT INTO notes
                 (owner, workspace, number, text, digest, source, created_at, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![owner, place, number, text, digest(text), source, created_at, now],
        )?;
    }
    Ok(Ok(read(tx, owner, scope)?))
}

/// What makes a text unique; an index cannot hold a long one.
fn digest(text: &str) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(text.as_bytes()).to_vec()
}

fn note(row: &Row<'_>) -> Result<Note> {
    Ok(Note {
        number: row.get(0)?,
        text: row.get(1)?,
        source: row.get(2)?,
        created_at: row.get(3)?,
        changed_at: row.get(4)?,
    })
}
