//! Compactions: entries that change the view of a session and delete nothing.
//!
//! How one is made, by whoever holds the session's lease:
//!
//! - [`entry::all`] and [`last`] are read together; the next number is the last one and one.
//! - [`cut`](crate::cut) says where the tail begins that stays, and which words of the user before it
//!   are kept; [`ledger`](crate::ledger::ledger) what is remembered without a model, and
//!   [`Ledger::within`] fits it into a small window.
//! - [`shown_through`](crate::shown_through) is what a summary is to be made of: the entries up to the
//!   cut as they are shown now, with the record of earlier compactions.
//! - [`preview`](crate::preview) is what would be sent, so that it can be measured first.
//! - [`commit`] writes it down. Number n of a session exists once: the primary key decides between two
//!   who made the same one, and the loser's transaction changes nothing. Who lost reads the entries
//!   again and goes on with the winner's view.
//! - [`Transcript::of`](crate::Transcript::of) makes the growing view anew, once.
//!
//! [`restore`] takes back a compaction and those after it; numbers are not used again. What all of
//! them together make of a journal is a [`Standing`].

use mainstay_store::{ReadTx, WriteTx, params};
use serde::{Deserialize, Serialize};

use crate::entry::{self, Body, Entry};
use crate::ledger::Ledger;
use crate::{Error, Result, SessionId, TurnId};

/// What a compaction says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Its number within the session: 1, 2, 3 and so on.
    pub number: i64,
    /// The entries up to this one are replaced by the summary and the ledger; 0: none, and what an
    /// earlier compaction replaced stays replaced.
    #[serde(default)]
    pub through: i64,
    /// The entries after those, up to this one, are shown shortened; 0: none more than before.
    #[serde(default)]
    pub trimmed: i64,
    /// Covered entries that stay verbatim: the user's instruction in force and what the user said
    /// since; where entries are shortened, also such as hold the list of steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<i64>,
    /// What a model, or a rule, made of the replaced entries; `None` where entries are only
    /// shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the harness itself remembers.
    #[serde(default)]
    pub ledger: Ledger,
    /// The tokens of the next request before it.
    #[serde(default)]
    pub before: u64,
    /// And after it.
    #[serde(default)]
    pub after: u64,
    /// What the user wanted it to look after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// What came of committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It is the entry with this number.
    Made(i64),
    /// Another one has its number, which is this; nothing was changed.
    Taken {
        /// The number.
        number: i64,
    },
}

/// Writes a compaction down as an entry of its session, unless there is one with its number. The
/// caller guards the session's lease in the same transaction. Numbers leave no gap: one after a number
/// that does not exist is an error.
pub fn commit(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    compaction: &Compaction,
) -> Result<Committed> {
    let seq = entry::count(tx, session)? + 1;
    let number = compaction.number;
    let last = last(tx, session)?;
    if !(1..=last + 1).contains(&number) {
        return Err(Error::Damaged {
            what: format!("compaction {number} of session {session}"),
            detail: format!("the last one is {last}"),
        });
    }
    let made = tx.execute(
        "INSERT INTO compactions (session, number, seq) VALUES (?1, ?2, ?3)
         ON CONFLICT (session, number) DO NOTHING",
        params![session, number, seq],
    )?;
    if made == 0 {
        return Ok(Committed::Taken { number });
    }
    entry::insert(tx, session, turn, seq, &Body::Compaction(Box::new(compaction.clone())))?;
    Ok(Committed::Made(seq))
}

/// Takes back a compaction and those after it: the view is again what it was before, with what came
/// since. Answers the number of the entry.
pub fn restore(tx: &mut WriteTx<'_>, session: SessionId, turn: TurnId, number: i64) -> Result<i64> {
    entry::append(tx, session, turn, &Body::Restored { number })
}

/// The number of the last compaction of a session, also of one that was taken back; 0 where there is
/// none.
pub fn last(tx: &mut ReadTx<'_>, session: SessionId) -> Result<i64> {
    // Not MAX(number): SQLite would prepare that anew every time.
    let sql = "SELECT number FROM compactions WHERE session = ?1 ORDER BY number DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![session], |row| row.get(0))?.unwrap_or(0))
}

/// The numbers of all compactions of a session, each with the number of its entry.
pub fn numbers(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<(i64, i64)>> {
    Ok(tx.query(
        "SELECT number, seq FROM compactions WHERE session = ?1 ORDER BY number",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?)
}

/// What the compactions in force make of a journal.
#[derive(Clone, Debug, Default)]
pub struct Standing<'a> {
    /// Those in force, in order, each with the number of its entry.
    pub made: Vec<(i64, &'a Compaction)>,
    /// Entries up to this one are replaced; 0: none.
    pub through: i64,
    /// Entries after those up to this one are shortened; 0: none.
    pub trimmed: i64,
    /// Those of them that are not.
    pub keeps: &'a [i64],
}

impl<'a> Standing<'a> {
    /// Finds it. Whatever the entries say, a compaction reaches no further than to itself.
    pub fn of(entries: &'a [Entry]) -> Self {
        let mut made: Vec<(i64, &Compaction)> = Vec::new();
        for entry in entries {
            match &entry.body {
                Body::Compaction(compaction) => made.push((entry.seq, compaction)),
                Body::Restored { number } => made.retain(|(_, other)| other.number < *number),
                _ => {}
            }
        }
        Self::made(made)
    }

    /// What it would be with one more compaction after all entries.
    #[must_use]
    pub fn and(&self, seq: i64, compaction: &'a Compaction) -> Self {
        let mut made = self.made.clone();
        made.push((seq, compaction));
        Self::made(made)
    }

    fn made(made: Vec<(i64, &'a Compaction)>) -> Self {
        let within = |mark: i64, seq: i64| mark.min(seq - 1).max(0);
        let mut replaced = made.iter().rev().map(|(seq, made)| within(made.through, *seq));
        let through = replaced.find(|through| *through > 0).unwrap_or(0);
        let trimmed = made.iter().map(|(seq, made)| within(made.trimmed, *seq)).max().unwrap_or(0);
        let shortening = made.iter().rev().find(|(_, made)| made.trimmed > 0);
        let keeps = shortening.map_or(&[][..], |(_, made)| made.keeps.as_slice());
        Self { made, through, trimmed, keeps }
    }

    /// The compaction that says what stands for the replaced entries.
    pub fn replacing(&self) -> Option<&'a Compaction> {
        let reaches = |(seq, made): &&(i64, &Compaction)| made.through > 0 && *seq > 1;
        self.made.iter().rev().find(reaches).map(|(_, made)| *made)
    }

    /// The last compaction in force.
    pub fn last(&self) -> Option<&'a Compaction> {
        self.made.last().map(|(_, made)| *made)
    }

    /// The number of the entry of the last compaction in force; 0 where there is none.
    pub fn since(&self) -> i64 {
        self.made.last().map_or(0, |(seq, _)| *seq)
    }
}
