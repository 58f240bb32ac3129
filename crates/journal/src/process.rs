//! Background processes: rows, so that the end of one is told even if nobody was there to see it.

use mainstay_store::{FromValue, ReadTx, Row, ToValue, ValueRef, WriteTx, params};

use crate::storable::storable;
use crate::turn::words;
use crate::{Result, SessionId, TurnId};

/// A background process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name, that of the call that started it.
    pub id: String,
    /// The keeper that owns it.
    pub keeper: String,
    /// What it runs.
    pub command: String,
    /// Whether it runs, as far as the record knows.
    pub state: State,
    /// How it ended, in words.
    pub ending: Option<String>,
    /// When it was started, in milliseconds since 1970.
    pub started_at: i64,
    /// When its end was written down.
    pub ended_at: Option<i64>,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As far as the record knows.
    Running,
    /// It ended.
    Ended,
}

words!(State { Running = "running", Ended = "ended" });

/// Writes down that a process runs in the background.
pub fn started(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    id: &str,
    keeper: &str,
    command: &str,
) -> Result<()> {
    let now = tx.now();
    tx.execute(
        "INSERT INTO processes (id, session, keeper, command, state, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING",
        params![id, session, keeper, &*storable(command), State::Running, now],
    )?;
    Ok(())
}

/// Writes down that a process ended, and how. Answers false when that was known.
pub fn ended(tx: &mut WriteTx<'_>, id: &str, ending: &str) -> Result<bool> {
    let now = tx.now();
    let changed = tx.execute(
        "UPDATE processes SET state = ?2, ending = ?3, ended_at = ?4 WHERE id = ?1 AND state = ?5",
        params![id, State::Ended, &*storable(ending), now, State::Running],
    )?;
    Ok(changed == 1)
}

/// Takes note of the end of a process: it is not announced again. Answers false when there is no
/// such end.
pub fn acknowledge(tx: &mut WriteTx<'_>, session: SessionId, id: &str) -> Result<bool> {
    let now = tx.now();
    let changed = tx.execute(
        "UPDATE processes SET acknowledged_at = ?3
         WHERE id = ?1 AND session = ?2 AND state = 'ended'",
        params![id, session, now],
    )?;
    Ok(changed == 1)
}

/// The processes of a session whose end nobody took note of, oldest first.
pub fn owed(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Vec<Process>> {
    Ok(tx.query(
        "SELECT id, keeper, command, state, ending, started_at, ended_at FROM processes
         WHERE session = ?1 AND acknowledged_at IS NULL ORDER BY started_at, id",
        params![session],
        read,
    )?)
}

/// Ends that this turn was not told of yet; they count as told from now on. A turn hears of each
/// once, until somebody takes note of it.
pub fn announce(tx: &mut WriteTx<'_>, session: SessionId, turn: TurnId) -> Result<Vec<Process>> {
    Ok(tx.query(
        "UPDATE processes SET announced = ?2
         WHERE session = ?1 AND acknowledged_at IS NULL AND state = 'ended'
             AND (announced IS NULL OR announced <> ?2)
         RETURNING id, keeper, command, state, ending, started_at, ended_at",
        params![session, turn],
        read,
    )?)
}

/// The keepers of all processes that run, as far as the record knows.
pub fn keepers(tx: &mut ReadTx<'_>) -> Result<Vec<String>> {
    Ok(tx.query(
        "SELECT DISTINCT keeper FROM processes WHERE acknowledged_at IS NULL AND state = 'running'",
        params![],
        |row| row.get(0),
    )?)
}

fn read(row: &Row<'_>) -> mainstay_store::Result<Process> {
    Ok(Process {
        id: row.get(0)?,
        keeper: row.get(1)?,
        command: row.get(2)?,
        state: row.get(3)?,
        ending: row.get(4)?,
        started_at: row.get(5)?,
        ended_at: row.get(6)?,
    })
}
