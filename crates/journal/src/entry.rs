//! Entries: what was said and done, in order, never changed.

use std::ops::ControlFlow;

use mainstay_message::{AssistantPart, CallResult, Content};
use mainstay_store::{ReadTx, WriteTx, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compaction::Compaction;
use crate::turn::Outcome;
use crate::{Error, Result, SessionId, TurnId, pictures};

/// An entry of a session.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number within the session, from one, without gaps.
    pub seq: i64,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// When it was written, in milliseconds since 1970.
    pub at: i64,
    /// What it says.
    pub body: Body,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// What the user said.
    User {
        /// Words and pictures.
        content: Vec<Content>,
    },
    /// What a model answered.
    Assistant {
        /// Its parts, in order.
        parts: Vec<AssistantPart>,
        /// The `provider/model` that answered.
        model: String,
    },
    /// What came of a call.
    Result {
        /// What the model reads.
        result: CallResult,
        /// What later calls have to know; the tools know its shape.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<Value>,
        /// Tells whether two results are the same, whatever their times and marks.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fingerprint: String,
        /// The blob with all of the output, where the result shows only a part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<String>,
    },
    /// Something the harness tells both the model and the user.
    Notice {
        /// A sentence.
        text: String,
        /// What code has to know of it; whoever wrote it knows its shape. It is `None` in entries of
        /// versions that recorded the sentence only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<Vec<Value>>,
    },
    /// The end of a turn.
    End {
        /// How it ended.
        outcome: Outcome,
        /// Why, where it did not end with an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// From here on the view shows less of what was before.
    Compaction(Box<Compaction>),
    /// The compaction with this number and those after it are taken back.
    Restored {
        /// The number.
        number: i64,
    },
}

impl Body {
    /// A notice that only its readers have to understand: no code decides by its words.
    pub fn notice(text: impl Into<String>) -> Self {
        Self::Notice { text: text.into(), facts: Some(Vec::new()) }
    }

    /// The word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::User { .. } => "user",
            Body::Assistant { .. } => "assistant",
            Body::Result { .. } => "result",
            Body::Notice { .. } => "notice",
            Body::End { .. } => "end",
            Body::Compaction(_) => "compaction",
            Body::Restored { .. } => "restored",
        }
    }
}

/// Appends an entry and answers its number.
pub fn append(tx: &mut WriteTx<'_>, session: SessionId, turn: TurnId, body: &Body) -> Result<i64> {
    let seq = count(tx, session)? + 1;
    insert(tx, session, turn, seq, body)?;
    Ok(seq)
}

/// Appends an entry under the number that comes after the last one, which the caller knows.
pub fn insert(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    seq: i64,
    body: &Body,
) -> Result<()> {
    let now = tx.now();
    let text = to_text(&*pictures::keep(tx, body)?)?;
    tx.execute(
        "INSERT INTO entries (session, seq, turn, kind, body, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![session, seq, turn, body.kind(), text, now],
    )?;
    Ok(())
}

/// Hands the entries from one number to another to `each`, in order.
fn read(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    (from, to): (i64, i64),
    mut each: impl FnMut(Entry),
) -> Result<()> {
    // Pictures are fetched when the rows are read: a connection runs one query at a time.
    let mut pictured = Vec::new();
    let mut entries = Vec::new();
    let mut damaged = None;
    tx.for_each(
        "SELECT seq, turn, at, body FROM entries WHERE session = ?1 AND seq BETWEEN ?2 AND ?3
         ORDER BY seq",
        params![session, from, to],
        |row| {
            let (seq, turn, at): (i64, TurnId, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let text: String = row.get(3)?;
            match serde_json::from_str::<Body>(&text) {
                Ok(body) => {
                    if pictures::any_kept(&body) {
                        pictured.push(entries.len());
                    }
                    entries.push(Entry { seq, turn, at, body });
                    Ok(ControlFlow::Continue(()))
                }
                Err(error) => {
                    damaged = Some(Error::Damaged {
                        what: format!("entry {seq} of session {session}"),
                        detail: error.to_string(),
                    });
                    Ok(ControlFlow::Break(()))
                }
            }
        },
    )?;
    if let Some(error) = damaged {
        return Err(error);
    }
    for index in pictured {
        if let Some(entry) = entries.get_mut(index) {
            pictures::fetch(tx, &mut entry.body)?;
        }
    }
    entries.into_iter().for_each(&mut each);
    Ok(())
}

/// How many entries a session has.
pub fn count(tx: &mut ReadTx<'_>, session: SessionId) -> Result<i64> {
    let sql = "SELECT seq FROM entries WHERE session = ?1 ORDER BY seq DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![session], |row| row.get(0))?.unwrap_or(0))
}

/// One entry of a session.
pub fn get(tx: &mut ReadTx<'_>, session: SessionId, seq: i64) -> Result<Option<Entry>> {
    let mut found = None;
    read(tx, session, (seq, seq), |entry| found = Some(entry))?;
    Ok(found)
}

/// Every entry of a session.
pub fn all(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    read(tx, session, (1, i64::MAX), |entry| entries.push(entry))?;
    Ok(entries)
}

fn to_text(body: &Body) -> Result<String> {
    serde_json::to_string(body)
        .map_err(|error| Error::Damaged { what: "an entry".to_owned(), detail: error.to_string() })
}
