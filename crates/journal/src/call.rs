//! Calls: intent, then effect, then outcome.

use mainstay_message::Call;
use mainstay_store::{FromValue, ReadTx, Row, ToValue, ValueRef, WriteTx, params};

use crate::storable::storable;
use crate::turn::words;
use crate::{CallId, Result, SessionId, TurnId};

/// A call that has no outcome yet.
#[derive(Clone, Debug)]
pub struct Open {
    /// Its name, for ever.
    pub id: CallId,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The number of the entry that asked for it.
    pub seq: i64,
    /// What the model asked for; [`Call::id`] names it within the session.
    pub call: Call,
    /// How far it is.
    pub state: State,
    /// What the tool wanted to know after a crash, as JSON.
    pub plan: Option<String>,
    /// When it was started, in milliseconds since 1970.
    pub started_at: Option<i64>,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The model asked for it; nothing was done.
    Intended,
    /// It may have had its effect.
    Started,
    /// Its outcome is an entry.
    Done,
}

words!(State { Intended = "intended", Started = "started", Done = "done" });

/// Writes down that a model asked for `call` in the entry `seq`, as number `position` of it.
pub fn intend(
    tx: &mut WriteTx<'_>,
    id: CallId,
    place: (SessionId, TurnId, i64, usize),
    call: &Call,
) -> Result<()> {
    let (session, turn, seq, position) = place;
    let position = i64::try_from(position).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO calls (id, session, turn, seq, position, name, tool, arguments, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            id,
            session,
            turn,
            seq,
            position,
            call.id,
            &*storable(&call.name),
            &*storable(&call.arguments),
            State::Intended
        ],
    )?;
    Ok(())
}

/// Writes down that a call is about to have its effect.
pub fn start(tx: &mut WriteTx<'_>, id: CallId, plan: Option<&str>) -> Result<()> {
    let now = tx.now();
    tx.execute(
        "UPDATE calls SET state = ?2, plan = ?3, started_at = ?4 WHERE id = ?1",
        params![id, State::Started, plan, now],
    )?;
    Ok(())
}

/// Writes down that the outcome of a call is the entry `seq`. Answers false when it had one.
pub fn finish(tx: &mut WriteTx<'_>, id: CallId, seq: i64) -> Result<bool> {
    let changed = tx.execute(
        "UPDATE calls SET state = ?2, result_seq = ?3 WHERE id = ?1 AND result_seq IS NULL",
        params![id, State::Done, seq],
    )?;
    Ok(changed == 1)
}

/// The calls of a session that have no outcome, in the order they were asked for.
pub fn open(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Open>> {
    Ok(tx.query(
        "SELECT id, turn, seq, name, tool, arguments, state, plan, started_at FROM calls
         WHERE session = ?1 AND state <> 'done' ORDER BY seq, position",
        params![session],
        read,
    )?)
}

fn read(row: &Row<'_>) -> mainstay_store::Result<Open> {
    let (name, arguments): (String, String) = (row.get(4)?, row.get(5)?);
    Ok(Open {
        id: row.get(0)?,
        turn: row.get(1)?,
        seq: row.get(2)?,
        call: Call { id: row.get(3)?, name, arguments, extra: None },
        state: row.get(6)?,
        plan: row.get(7)?,
        started_at: row.get(8)?,
    })
}
