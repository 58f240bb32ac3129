//! The ledger of model calls: every attempt, of every purpose.

use mainstay_message::Usage;
use mainstay_store::{Id, OwnerId, ReadTx, Row, WriteTx, params};

use crate::storable::storable;
use crate::{Result, SessionId, TurnId, TurnRef};

/// What a model call is for and who pays.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// Whose it is.
    pub owner: OwnerId,
    /// The session, if it is for one.
    pub session: Option<SessionId>,
    /// The turn, if it is for one.
    pub turn: Option<TurnId>,
    /// Such as `turn`, `title`, `summary`.
    pub purpose: &'a str,
}

/// What became of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// The `provider/model` that was asked.
    pub model: String,
    /// How long it took, in milliseconds.
    pub latency: i64,
    /// How long the first byte took, in milliseconds.
    pub first_byte: Option<i64>,
    /// What it took, where the provider said so.
    pub usage: Usage,
    /// What it cost, in millionths of a dollar.
    pub cost: i64,
    /// The name of the fault, if it failed.
    pub fault: Option<String>,
    /// The provider's words, if it failed.
    pub said: Option<String>,
    /// The HTTP status.
    pub status: Option<i64>,
    /// The provider's name for the request.
    pub request_id: Option<String>,
}

/// What was spent on something.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Spent {
    /// What: a day, a model, a session.
    pub what: String,
    /// How many attempts.
    pub calls: i64,
    /// How many of them failed.
    pub failed: i64,
    /// Their tokens.
    pub usage: Usage,
    /// Millionths of a dollar.
    pub cost: i64,
}

/// Whose spending is told.
#[derive(Clone, Copy, Debug)]
pub enum On {
    /// That of a session.
    Session(SessionId),
    /// That of a turn.
    Turn(TurnRef),
}

/// What spending is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By day, in UTC.
    Day,
    /// By model.
    Model,
    /// By session.
    Session,
}

impl Purpose<'_> {
    /// What stands for the session and the turn in the ledger; nothing is an empty text.
    fn place(&self) -> (&str, &str) {
        let session = self.session.as_ref().map_or("", SessionId::as_str);
        (session, self.turn.as_ref().map_or("", TurnId::as_str))
    }
}

/// Writes down that a model is about to be asked.
pub fn begin(tx: &mut WriteTx<'_>, id: Id, purpose: &Purpose<'_>, model: &str) -> Result<()> {
    let now = tx.now();
    let (session, turn) = purpose.place();
    tx.execute(
        "INSERT INTO model_calls (id, owner, session, turn, purpose, model, state, started_at,
             input, cached, cache_written, output, reasoning, cost)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7, 0, 0, 0, 0, 0, 0)",
        params![id, purpose.owner, session, turn, purpose.purpose, model, now],
    )?;
    Ok(())
}

/// Writes down what became of a call: its first attempt in the row that was begun, each further
/// one in a row of its own.
pub fn finish(
    tx: &mut WriteTx<'_>,
    id: Id,
    purpose: &Purpose<'_>,
    attempts: &[Attempt],
) -> Result<()> {
    let (session, turn) = purpose.place();
    for (number, attempt) in attempts.iter().enumerate() {
        let row = if number == 0 {
            id
        } else {
            let further = Id::new();
            begin(tx, further, purpose, &attempt.model)?;
            further
        };
        let Attempt { usage, .. } = attempt;
        let said = attempt.said.as_deref().map(storable);
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        tx.execute(
            "UPDATE model_calls SET model = ?2, state = ?3, latency = ?4, first_byte = ?5,
                 input = ?6, cached = ?7, cache_written = ?8, output = ?9, reasoning = ?10,
                 cost = ?11, fault = ?12, said = ?13, status = ?14, request_id = ?15
             WHERE id = ?1 AND session = ?16 AND turn = ?17",
            params![
                row,
                attempt.model,
                if attempt.fault.is_some() { "failed" } else { "answered" },
                attempt.latency,
                attempt.first_byte,
                count(usage.input),
                count(usage.cached),
                count(usage.cache_written),
                count(usage.output),
                count(usage.reasoning),
                attempt.cost,
                attempt.fault,
                said.as_deref(),
                attempt.status,
                attempt.request_id,
                session,
                turn
            ],
        )?;
    }
    Ok(())
}

/// Takes back that a model is about to be asked: it was not.
pub fn withdraw(tx: &mut WriteTx<'_>, id: Id, purpose: &Purpose<'_>) -> Result<()> {
    let (session, turn) = purpose.place();
    tx.execute(
        "DELETE FROM model_calls WHERE id = ?1 AND session = ?2 AND turn = ?3",
        params![id, session, turn],
    )?;
    Ok(())
}

/// Closes a call that a crash or a cancellation interrupted, like [`abandon`].
pub fn lose(tx: &mut WriteTx<'_>, id: Id, purpose: &Purpose<'_>) -> Result<()> {
    let (session, turn) = purpose.place();
    tx.execute(
        "UPDATE model_calls SET state = 'unknown'
         WHERE id = ?1 AND session = ?2 AND turn = ?3 AND state = 'open'",
        params![id, session, turn],
    )?;
    Ok(())
}

/// Closes the calls of a session that a crash or a cancellation interrupted: the provider may have
/// answered and billed them, nobody knows. Answers how many there were.
pub fn abandon(tx: &mut WriteTx<'_>, session: SessionId) -> Result<usize> {
    Ok(tx.execute(
        "UPDATE model_calls SET state = 'unknown' WHERE session = ?1 AND state = 'open'",
        params![session],
    )?)
}

/// What an owner spent since `since`, in milliseconds since 1970, the newest or largest first.
pub fn spent(tx: &mut ReadTx<'_>, owner: OwnerId, by: By, since: i64) -> Result<Vec<Spent>> {
    let (what, order) = match by {
        // Whole days since 1970; named below.
        By::Day => ("CAST(started_at / 86400000 AS TEXT)", "MAX(started_at) DESC"),
        By::Model => ("model", "9 DESC, 1"),
        By::Session => ("session", "MAX(started_at) DESC"),
    };
    let sql = format!(
        "SELECT {what}, {SUMS} FROM model_calls WHERE owner = ?1 AND started_at >= ?2
         GROUP BY 1 ORDER BY {order}"
    );
    Ok(tx.query(&sql, params![owner, since], read)?)
}

/// What a provider counted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Counted {
    /// The `provider/model`.
    pub model: String,
    /// All tokens that it read.
    pub tokens: u64,
}

/// What a provider counted when it last answered in a session.
pub fn last_counted(tx: &mut ReadTx<'_>, session: SessionId) -> Result<Option<Counted>> {
    let sql = "SELECT model, input + cached + cache_written FROM model_calls
               WHERE session = ?1 AND purpose = 'turn' AND state = 'answered'
                   AND input + cached + cache_written > 0
               ORDER BY started_at DESC, id DESC LIMIT 1";
    Ok(tx.query_opt(sql, params![session], |row| {
        let tokens = u64::try_from(row.get::<i64>(1)?).unwrap_or(0);
        Ok(Counted { model: row.get(0)?, tokens })
    })?)
}

/// All tokens that a provider counted when it last answered in a turn.
pub fn counted_in(tx: &mut ReadTx<'_>, session: SessionId, turn: TurnId) -> Result<Option<u64>> {
    let sql = "SELECT input + cached + cache_written FROM model_calls
               WHERE session = ?1 AND turn = ?2 AND purpose = 'turn' AND state = 'answered'
               ORDER BY id DESC LIMIT 1";
    let counted = tx.query_opt(sql, params![session, turn], |row| row.get::<i64>(0))?;
    Ok(counted.and_then(|tokens| u64::try_from(tokens).ok()).filter(|tokens| *tokens > 0))
}

/// An attempt that was made, as far as it tells how calls of one purpose went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The turn it was made for, where it was for one.
    pub turn: Option<TurnId>,
    /// When it was made, in milliseconds since 1970.
    pub started_at: i64,
    /// How long it took, in milliseconds, where that is known.
    pub latency: Option<i64>,
    /// Whether there was an answer.
    pub answered: bool,
    /// The fault, where it failed.
    pub fault: Option<String>,
}

/// The attempts of one purpose in a session, the oldest first.
pub fn of_purpose(tx: &mut ReadTx<'_>, session: SessionId, purpose: &str) -> Result<Vec<Tried>> {
    let sql = "SELECT turn, started_at, latency, state, fault FROM model_calls
               WHERE session = ?1 AND purpose = ?2 ORDER BY started_at, id";
    Ok(tx.query(sql, params![session, purpose], |row| {
        let (turn, state): (String, String) = (row.get(0)?, row.get(3)?);
        Ok(Tried {
            turn: if turn.is_empty() { None } else { Some(row.get(0)?) },
            started_at: row.get(1)?,
            latency: row.get(2)?,
            answered: state == "answered",
            fault: row.get(4)?,
        })
    })?)
}

/// What the calls of one session or turn took.
pub fn spent_on(tx: &mut ReadTx<'_>, what: On) -> Result<Spent> {
    let (session, turn) = match &what {
        On::Session(session) => (session, ""),
        On::Turn(turn) => (&turn.session, turn.turn.as_str()),
    };
    let sql = format!(
        "SELECT COALESCE(MAX(session), ''), {SUMS} FROM model_calls
         WHERE session = ?1 AND (?2 = '' OR turn = ?2)"
    );
    Ok(tx.query_one(&sql, params![session, turn], read)?)
}

const SUMS: &str = "COUNT(*),
    CAST(COALESCE(SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), 0) AS BIGINT),
    CAST(COALESCE(SUM(input), 0) AS BIGINT), CAST(COALESCE(SUM(cached), 0) AS BIGINT),
    CAST(COALESCE(SUM(cache_written), 0) AS BIGINT), CAST(COALESCE(SUM(output), 0) AS BIGINT),
    CAST(COALESCE(SUM(reasoning), 0) AS BIGINT), CAST(COALESCE(SUM(cost), 0) AS BIGINT)";

fn read(row: &Row<'_>) -> mainstay_store::Result<Spent> {
    let tokens = |column| Ok(u64::try_from(row.get::<i64>(column)?).unwrap_or(0));
    Ok(Spent {
        what: row.get(0)?,
        calls: row.get(1)?,
        failed: row.get(2)?,
        usage: Usage {
            input: tokens(3)?,
            cached: tokens(4)?,
            cache_written: tokens(5)?,
            output: tokens(6)?,
            reasoning: tokens(7)?,
        },
        cost: row.get(8)?,
    })
}
