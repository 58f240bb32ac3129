//! Forks: a session that begins as another one was after some turn.

use mainstay_store::{ReadTx, WriteTx, params};

use crate::entry::{self, Body};
use crate::turn::{self, Outcome, State};
use crate::{Error, Result, SessionId, TurnId};

/// Begins a session as `parent` was after its turn `after`, or after its last one. Answers how many
/// turns it has.
///
/// The entries are copied, so that each session lives without the other. A turn that is not over in
/// the parent is over in the fork: whoever goes on there asks something new.
pub fn fork(
    tx: &mut WriteTx<'_>,
    id: SessionId,
    parent: SessionId,
    after: Option<i64>,
) -> Result<i64> {
    let now = tx.now();
    let turns: Vec<(TurnId, i64, bool)> = tx.query(
        "SELECT id, number, state FROM turns WHERE session = ?1 AND number <= ?2 ORDER BY number",
        params![parent, after.unwrap_or(i64::MAX)],
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<State>(2)? == State::Ended)),
    )?;
    let position = position(tx, parent, after)?;
    let count = turns.last().map_or(0, |(_, number, _)| *number);
    tx.execute(
        "INSERT INTO sessions
             (id, owner, workspace, prompt, title, parent, parent_seq, turns, created_at, used_at)
         SELECT ?1, owner, workspace, prompt, title, id, ?3, ?4, ?5, ?5 FROM sessions
         WHERE id = ?2",
        params![id, parent, position, count, now],
    )?;
    let mut unfinished = None;
    for (old, number, ended) in turns {
        let new = TurnId::new();
        // The key of an input names the turn it was first given to, and no other.
        let key = format!("fork/{id}/{number}");
        let (state, outcome) =
            if ended { (None, None) } else { (Some(State::Ended), Some(Outcome::Interrupted)) };
        tx.execute(
            "INSERT INTO turns (id, session, number, input_key, state, outcome, reason,
                 started_at, ended_at)
             SELECT ?1, ?2, number, ?3, COALESCE(?5, state), COALESCE(?6, outcome), reason,
                 started_at, COALESCE(ended_at, ?7)
             FROM turns WHERE id = ?4",
            params![new, id, key, old, state, outcome, now],
        )?;
        tx.execute(
            "INSERT INTO entries (session, seq, turn, kind, body, at)
             SELECT ?1, seq, ?2, kind, body, at FROM entries WHERE session = ?3 AND turn = ?4",
            params![id, new, parent, old],
        )?;
        if !ended {
            unfinished = Some(new);
        }
    }
    tx.execute(
        "INSERT INTO compactions (session, number, seq)
         SELECT ?1, number, seq FROM compactions WHERE session = ?2 AND seq <= ?3",
        params![id, parent, position],
    )?;
    if let Some(turn) = unfinished {
        let body = Body::End { outcome: Outcome::Interrupted, reason: None };
        entry::append(tx, id, turn, &body)?;
    }
    Ok(count)
}

/// The last entry of a session up to the end of a turn.
fn position(tx: &mut ReadTx<'_>, session: SessionId, after: Option<i64>) -> Result<i64> {
    let Some(number) = after else { return entry::count(tx, session) };
    let sql = "SELECT e.seq FROM entries e JOIN turns t ON t.id = e.turn
               WHERE e.session = ?1 AND t.number <= ?2 ORDER BY e.seq DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![session, number], |row| row.get(0))?.unwrap_or(0))
}

/// The input of the last turn of a session, and the turn's number, so that it can be asked again.
pub fn last_input(
    tx: &mut ReadTx<'_>,
    session: SessionId,
) -> Result<Option<(i64, Vec<mainstay_message::Content>)>> {
    let Some(last) = turn::last(tx, session)? else { return Ok(None) };
    let first = tx.query_opt(
        "SELECT seq FROM entries WHERE session = ?1 AND turn = ?2 AND kind = 'user'
         ORDER BY seq LIMIT 1",
        params![session, last.id],
        |row| row.get(0),
    )?;
    let Some(first) = first else { return Ok(None) };
    match entry::get(tx, session, first)?.map(|entry| entry.body) {
        Some(Body::User { content }) => Ok(Some((last.number, content))),
        _ => Err(Error::Damaged {
            what: format!("entry {first} of session {session}"),
            detail: "it is not the input that it is said to be".to_owned(),
        }),
    }
}
