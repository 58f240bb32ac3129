//! Turns: one input, and the work until it is answered.

mod choices;
mod parked;

pub use choices::{Mode, TurnChoices};
use mainstay_store::{FromValue, OwnerId, ReadTx, Row, ToValue, ValueRef, WriteTx, params};

pub use parked::{BudgetLimit, BudgetScope, ParkReason, Parked};

use crate::session::NO_CHILD;
use crate::storable::storable;
use crate::{Error, Result, SessionId, TurnId, TurnRef, session};

/// A turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its name.
    pub id: TurnId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The first turn of a session has number one.
    pub number: i64,
    /// The name of its input: the same input sent twice is the same turn.
    pub input_key: String,
    /// How far it is.
    pub state: State,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// Why it is parked, or why it ended as it did, in a sentence.
    pub reason: Option<String>,
    /// Why it is parked, if it is.
    pub parked: Option<ParkReason>,
    /// What was chosen for it; `None` if a version of the program began it that recorded no choices.
    pub choices: Option<TurnChoices>,
    /// When it began.
    pub started_at: i64,
}

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is being worked on, or was when its process died.
    Open,
    /// It waits for something outside.
    Parked,
    /// It is over.
    Ended,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// With an error, which is an entry too.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// It went in circles.
    Stuck,
    /// New input came before it was finished.
    Interrupted,
}

macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl ToValue for $name {
            fn to_value(&self) -> ValueRef<'_> {
                ValueRef::Text(self.as_str())
            }
        }
        impl FromValue for $name {
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    $(ValueRef::Text($word) => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use words;

words!(State { Open = "open", Parked = "parked", Ended = "ended" });
words!(Outcome {
    Answered = "answered",
    Failed = "failed",
    Cancelled = "cancelled",
    Stuck = "stuck",
    Interrupted = "interrupted",
});

const COLUMNS: &str = "id, session, number, input_key, state, outcome, reason, parked, resume_at, \
                       choices, started_at FROM turns";

/// The turn of this input, if it was sent before.
pub fn with_key(tx: &mut ReadTx<'_>, session: SessionId, input_key: &str) -> Result<Option<Turn>> {
    let sql = format!("SELECT {COLUMNS} WHERE session = ?1 AND input_key = ?2");
    Ok(tx.query_opt(&sql, params![session, input_key], read)?)
}

/// The newest turn of any session of this owner that was begun with this key.
pub fn with_key_anywhere(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    input_key: &str,
) -> Result<Option<Turn>> {
    let sql = format!(
        "SELECT {COLUMNS} WHERE input_key = ?1
         AND session IN (SELECT id FROM sessions WHERE owner = ?2)
         ORDER BY started_at DESC, id DESC LIMIT 1"
    );
    Ok(tx.query_opt(&sql, params![input_key, owner], read)?)
}

/// Begins a turn. The caller has seen that the key is new; two who did clash here.
pub fn begin(
    tx: &mut WriteTx<'_>,
    id: TurnId,
    session: SessionId,
    input_key: &str,
) -> Result<Turn> {
    let (now, state) = (tx.now(), State::Open);
    let number: i64 = tx.query_one(
        "UPDATE sessions SET turns = turns + 1, used_at = ?2 WHERE id = ?1 RETURNING turns",
        params![session, now],
        |row| row.get(0),
    )?;
    tx.execute(
        "INSERT INTO turns (id, session, number, input_key, state, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![id, session, number, input_key, state, now],
    )?;
    Ok(Turn {
        id,
        session,
        number,
        input_key: input_key.to_owned(),
        state,
        outcome: None,
        reason: None,
        parked: None,
        choices: None,
        started_at: now,
    })
}

/// The turn with this name.
pub fn get(tx: &mut ReadTx<'_>, id: TurnId) -> Result<Option<Turn>> {
    Ok(tx.query_opt(&format!("SELECT {COLUMNS} WHERE id = ?1"), params![id], read)?)
}

/// The last turn of a session.
pub fn last(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Option<Turn>> {
    let sql = format!("SELECT {COLUMNS} WHERE session = ?1 ORDER BY number DESC LIMIT 1");
    Ok(tx.query_opt(&sql, params![session], read)?)
}

/// All turns of an owner that are not over, the newest first. A child goes on with the turn that began
/// it.
pub fn unfinished(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<Turn>> {
    let sql = format!(
        "SELECT {COLUMNS} WHERE state <> 'ended'
         AND session IN (SELECT id FROM sessions WHERE owner = ?1 AND {NO_CHILD})
         ORDER BY started_at DESC, id DESC"
    );
    Ok(tx.query(&sql, params![owner], read)?)
}

/// Writes down what was chosen for a turn, in place of what was chosen before.
pub fn choose(tx: &mut WriteTx<'_>, id: TurnId, choices: &TurnChoices) -> Result<()> {
    let choices = to_json(choices)?;
    tx.execute("UPDATE turns SET choices = ?2 WHERE id = ?1", params![id, choices])?;
    Ok(())
}

/// Parks a turn: it goes on when the reason is out of the way.
pub fn park(tx: &mut WriteTx<'_>, id: TurnId, parked: &Parked) -> Result<()> {
    let (reason, resume_at) = (to_json(&parked.reason)?, parked.reason.resume_at());
    tx.execute(
        "UPDATE turns SET state = ?2, reason = ?3, parked = ?4, resume_at = ?5 WHERE id = ?1",
        params![id, State::Parked, &*storable(&parked.text), reason, resume_at],
    )?;
    Ok(())
}

/// Lets a parked or failed turn go on.
pub fn reopen(tx: &mut WriteTx<'_>, id: TurnId) -> Result<()> {
    tx.execute(
        "UPDATE turns SET state = ?2, outcome = NULL, reason = NULL, parked = NULL,
             resume_at = NULL, ended_at = NULL WHERE id = ?1",
        params![id, State::Open],
    )?;
    Ok(())
}

/// Ends a turn. The entry that says so is the caller's, in the same transaction.
pub fn end(tx: &mut WriteTx<'_>, id: TurnId, outcome: Outcome, reason: Option<&str>) -> Result<()> {
    let (now, reason) = (tx.now(), reason.map(storable));
    let session = tx.query_one(
        "UPDATE turns SET state = ?2, outcome = ?3, reason = ?4, parked = NULL, resume_at = NULL,
             ended_at = ?5
         WHERE id = ?1 RETURNING session",
        params![id, State::Ended, outcome, reason.as_deref(), now],
        |row| row.get(0),
    )?;
    session::used(tx, session)
}

fn read(row: &Row<'_>) -> mainstay_store::Result<Turn> {
    let until: Option<i64> = row.get(8)?;
    Ok(Turn {
        id: row.get(0)?,
        session: row.get(1)?,
        number: row.get(2)?,
        input_key: row.get(3)?,
        state: row.get(4)?,
        outcome: row.get(5)?,
        reason: row.get(6)?,
        // Versions that recorded no reason named a time for providers alone.
        parked: row
            .get::<Option<ParkReason>>(7)?
            .or(until.map(|until| ParkReason::Provider { until })),
        choices: row.get(9)?,
        started_at: row.get(10)?,
    })
}

fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Damaged { what: "a turn".to_owned(), detail: error.to_string() })
}

impl Turn {
    /// Why it is parked. Returns `None` if it is not.
    pub fn parked(&self) -> Option<Parked> {
        let reason = match (self.state, &self.parked) {
            (State::Parked, Some(reason)) => reason.clone(),
            (State::Parked, None) => ParkReason::Unrecorded,
            (State::Open | State::Ended, _) => return None,
        };
        Some(Parked { reason, text: self.reason.clone().unwrap_or_default() })
    }

    /// When it can go on, in milliseconds since 1970. Returns `None` if that is not a matter of time.
    pub fn resume_at(&self) -> Option<i64> {
        self.parked()?.reason.resume_at()
    }

    /// The turn with its session.
    pub fn place(&self) -> TurnRef {
        TurnRef { session: self.session, turn: self.id }
    }
}

macro_rules! json_column {
    ($name:ident) => {
        impl FromValue for $name {
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    ValueRef::Text(text) => serde_json::from_str(text).ok(),
                    _ => None,
                }
            }
        }
    };
}

json_column!(ParkReason);
json_column!(TurnChoices);
