//! Calls: intent, then effect, then outcome.

use mainstay_message::{AssistantPart, Call};
use mainstay_store::{FromValue, ReadTx, ToValue, ValueRef, WriteTx, params};

use crate::entry::{self, Body, Entry};
use crate::storable::storable;
use crate::turn::words;
use crate::{CallId, Error, Result, SessionId, TurnId, TurnRef};

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
    /// The arguments that it was started with, where they are others than the model's.
    pub input: Option<String>,
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

/// A call that a model asked for.
#[derive(Clone, Debug)]
pub struct Intended {
    /// Its name, for ever.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Whether it is about to have its effect.
    pub start: Option<Start>,
}

/// A call that is about to have its effect.
#[derive(Clone, Debug)]
pub struct Start {
    /// What the tool wants to know after a crash, as JSON.
    pub plan: Option<String>,
    /// The arguments that it is given, where they are others than the model's.
    pub input: Option<String>,
}

/// Writes down a call that a model asked for in the entry `seq`, as its call number `position`.
pub fn intend(
    tx: &mut WriteTx<'_>,
    place: TurnRef,
    seq: i64,
    position: usize,
    call: &Intended,
) -> Result<()> {
    let TurnRef { session, turn } = place;
    let position = i64::try_from(position).unwrap_or(i64::MAX);
    let Intended { id, tool, start } = call;
    let (state, started_at) = match start {
        None => (State::Intended, None),
        Some(_) => (State::Started, Some(tx.now())),
    };
    let (plan, input) = match start {
        None => (None, None),
        Some(Start { plan, input }) => (plan.as_deref(), input.as_deref().map(storable)),
    };
    let tool = storable(tool);
    tx.execute(
        "INSERT INTO calls
             (id, session, turn, seq, position, tool, state, plan, started_at, input)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            *id,
            session,
            turn,
            seq,
            position,
            &*tool,
            state,
            plan,
            started_at,
            input.as_deref()
        ],
    )?;
    Ok(())
}

/// Writes down that a call is about to have its effect.
pub fn start(tx: &mut WriteTx<'_>, session: SessionId, id: CallId, start: &Start) -> Result<()> {
    let now = tx.now();
    let input = start.input.as_deref().map(storable);
    tx.execute(
        "UPDATE calls SET state = ?3, plan = ?4, started_at = ?5, input = ?6
         WHERE session = ?1 AND id = ?2",
        params![session, id, State::Started, start.plan.as_deref(), now, input.as_deref()],
    )?;
    Ok(())
}

/// Writes down that the outcome of a call is the entry `seq`. Answers false when it had one.
pub fn finish(tx: &mut WriteTx<'_>, session: SessionId, id: CallId, seq: i64) -> Result<bool> {
    let changed = tx.execute(
        "UPDATE calls SET state = ?3, result_seq = ?4
         WHERE session = ?1 AND id = ?2 AND result_seq IS NULL",
        params![session, id, State::Done, seq],
    )?;
    Ok(changed == 1)
}

/// The calls of a session that have no outcome, in the order they were asked for. What was asked
/// stands in the entries.
pub fn open(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Open>> {
    let rows = tx.query(
        "SELECT id, turn, seq, position, state, plan, started_at, input FROM calls
         WHERE session = ?1 AND state <> 'done' ORDER BY seq, position",
        params![session],
        |row| {
            let (seq, position): (i64, i64) = (row.get(2)?, row.get(3)?);
            let (state, plan, started_at) = (row.get(4)?, row.get(5)?, row.get(6)?);
            let input: Option<String> = row.get(7)?;
            Ok((row.get(0)?, row.get(1)?, seq, position, state, plan, started_at, input))
        },
    )?;
    let mut open = Vec::with_capacity(rows.len());
    // An entry may ask for a thousand calls, and is read once.
    let mut asked: (i64, Vec<Call>) = (0, Vec::new());
    for (id, turn, seq, position, state, plan, started_at, input) in rows {
        if asked.0 != seq {
            asked = (seq, calls_of(entry::get(tx, session, seq)?));
        }
        let call = usize::try_from(position).ok().and_then(|place| asked.1.get(place)).cloned();
        let call = call.ok_or_else(|| Error::Damaged {
            what: format!("call {id}"),
            detail: format!("entry {seq} of session {session} does not ask for it"),
        })?;
        open.push(Open { id, turn, seq, call, state, plan, started_at, input });
    }
    Ok(open)
}

/// The plans of all calls that were started and have no outcome, in turns that go on.
pub fn unsettled_plans(tx: &mut ReadTx<'_>) -> Result<Vec<String>> {
    Ok(tx.query(
        "SELECT calls.plan FROM turns JOIN calls
             ON calls.session = turns.session AND calls.turn = turns.id
         WHERE turns.state <> 'ended' AND calls.state = 'started' AND calls.plan IS NOT NULL",
        params![],
        |row| row.get(0),
    )?)
}

/// What an entry asks for.
fn calls_of(entry: Option<Entry>) -> Vec<Call> {
    let Some(Body::Assistant { parts, .. }) = entry.map(|entry| entry.body) else {
        return Vec::new();
    };
    let calls = parts.into_iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        _ => None,
    });
    calls.collect()
}
