//! What is reserved for model calls: by which process, how far each call came, and what becomes of
//! those whose process is gone.
//!
//! A call that was not sent cost nothing. One that was sent may be billed for all that was sent and
//! for as much output as it asked for, whatever was seen of it: providers may go on after the
//! connection is gone, and do not stream all that they count. So an abandoned call keeps what was
//! reserved for it, until a person knows better.

use mainstay_journal::model_call::{self, Attempt, Purpose};
use mainstay_journal::{SessionId, TurnId};
use mainstay_store::{
    Dialect, Id, Liveness, OwnerId, ProcessIdentity, ReadTx, Row, Store, WriteTx, params,
};
use serde::Serialize;

use super::{Account, Amount, BudgetExhausted, ancestry, charge_each, day_of, reserve};
use crate::Result;
use crate::turn::reserve::used_by;

/// A row is there as long as something is reserved. `budget` is the lowest one that was charged,
/// `day` the one above all.
pub(crate) const TABLES: &str = "
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (id),
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    budget TEXT NOT NULL,
    day TEXT NOT NULL,
    process TEXT NOT NULL,
    stage TEXT NOT NULL,
    money INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_of_session ON reservations (session);
";

/// The topic of what people did to budgets.
pub const EVENTS: &str = "budgets";

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is reserved, and nothing was sent.
    Ready,
    /// It may have been sent.
    Sent,
    /// It may have been sent, and nobody will learn what it cost.
    Abandoned,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Stage::Ready => "ready",
            Stage::Sent => "sent",
            Stage::Abandoned => "abandoned",
        }
    }

    fn read(text: &str) -> Self {
        match text {
            "ready" => Stage::Ready,
            "sent" => Stage::Sent,
            _ => Stage::Abandoned,
        }
    }
}

/// A model call that is about to be reserved.
pub(crate) struct NewReservation<'a> {
    pub(crate) id: Id,
    pub(crate) purpose: Purpose<'a>,
    pub(crate) model: &'a str,
    pub(crate) account: &'a Account,
    pub(crate) amount: Amount,
    pub(crate) stage: Stage,
}

impl NewReservation<'_> {
    /// Reserves the call in all budgets and writes it down; names the budget that has no room where
    /// one has none. `correction` belongs to earlier calls and is charged in any case.
    pub(crate) fn make(
        &self,
        tx: &mut WriteTx<'_>,
        correction: &Amount,
    ) -> Result<std::result::Result<(), BudgetExhausted>> {
        let Self { id, purpose, model, account, amount, stage } = self;
        if let Err(spent) = reserve(tx, account, amount, correction)? {
            return Ok(Err(spent));
        }
        model_call::begin(tx, *id, purpose, model)?;
        let now = tx.now();
        let session = purpose.session.as_ref().map_or("", SessionId::as_str);
        let turn = purpose.turn.as_ref().map_or("", TurnId::as_str);
        tx.execute(
            "INSERT INTO reservations (id, owner, session, turn, purpose, model, budget, day,
                 process, stage, money, tokens, calls, made_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                *id,
                purpose.owner,
                session,
                turn,
                purpose.purpose,
                *model,
                account.path.first().map_or("", String::as_str),
                day_of(now, account.owner),
                ProcessIdentity::current().to_string(),
                stage.as_str(),
                amount.money,
                amount.tokens,
                amount.calls,
                now
            ],
        )?;
        Ok(Ok(()))
    }
}

/// Writes down that a call is about to be sent, and how large it turned out. Answers whether it is
/// still reserved: where it is not, it must not be sent.
pub(crate) fn mark_sent(tx: &mut WriteTx<'_>, id: Id, amount: &Amount) -> Result<bool> {
    let Some(found) = find(tx, id)? else { return Ok(false) };
    if found.stage != Stage::Ready {
        return Ok(false);
    }
    found.charge(tx, &amount.minus(&found.amount))?;
    tx.execute(
        "UPDATE reservations SET stage = ?2, money = ?3, tokens = ?4, calls = ?5 WHERE id = ?1",
        params![id, Stage::Sent.as_str(), amount.money, amount.tokens, amount.calls],
    )?;
    Ok(true)
}

/// Writes down what became of a call of which `held` was reserved. Answers what the budgets differ
/// by: if the reservation was cleared meanwhile, everything that was used.
pub(crate) fn finish(
    tx: &mut WriteTx<'_>,
    id: Id,
    purpose: &Purpose<'_>,
    attempts: &[Attempt],
    held: &Amount,
) -> Result<Amount> {
    model_call::finish(tx, id, purpose, attempts)?;
    let used = used_by(attempts);
    Ok(if remove(tx, id)? { used.minus(held) } else { used })
}

/// Takes a reservation back: no model was asked. Answers what the budgets differ by.
pub(crate) fn withdraw(
    tx: &mut WriteTx<'_>,
    id: Id,
    purpose: &Purpose<'_>,
    held: &Amount,
) -> Result<Amount> {
    model_call::withdraw(tx, id, purpose)?;
    Ok(if remove(tx, id)? { Amount::default().minus(held) } else { Amount::default() })
}

/// Settles the calls of a session that a crash or a cancellation interrupted. Only for whoever holds
/// the session's lease: nobody else will finish them.
pub(crate) fn abandon(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    let sql = format!("{SELECT} WHERE session = ?1 AND stage <> ?2");
    let open = tx.query(&sql, params![session, Stage::Abandoned.as_str()], Reservation::read)?;
    for reservation in &open {
        reservation.settle(tx)?;
    }
    model_call::abandon(tx, session)?;
    Ok(())
}

/// Removes what is known of a session that is deleted. What its calls may have cost stays in the
/// day's budget.
pub(crate) fn forget(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    tx.execute("DELETE FROM reservations WHERE session = ?1", params![session])?;
    Ok(())
}

fn remove(tx: &mut WriteTx<'_>, id: Id) -> Result<bool> {
    Ok(tx.execute("DELETE FROM reservations WHERE id = ?1", params![id])? == 1)
}

/// What is reserved for a model call.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Its name, which is the call's.
    pub id: Id,
    /// The session that it is for, if it is for one.
    pub session: Option<SessionId>,
    /// Such as `turn`, `summary`, `trial`.
    pub purpose: String,
    /// The `provider/model` that is asked first.
    pub model: String,
    /// Who reserved it.
    pub process: String,
    /// How far it came.
    pub stage: Stage,
    /// What is reserved.
    pub amount: Amount,
    /// Since when, in milliseconds since 1970.
    pub made_at: i64,
    turn: Option<TurnId>,
    owner: OwnerId,
    budget: String,
    day: String,
}

const SELECT: &str = "SELECT id, owner, session, turn, purpose, model, budget, day, process, stage,
    money, tokens, calls, made_at FROM reservations";

impl Reservation {
    fn read(row: &Row<'_>) -> mainstay_store::Result<Self> {
        let (session, turn): (String, String) = (row.get(2)?, row.get(3)?);
        Ok(Self {
            id: row.get(0)?,
            owner: row.get(1)?,
            session: if session.is_empty() { None } else { Some(row.get(2)?) },
            turn: if turn.is_empty() { None } else { Some(row.get(3)?) },
            purpose: row.get(4)?,
            model: row.get(5)?,
            budget: row.get(6)?,
            day: row.get(7)?,
            process: row.get(8)?,
            stage: Stage::read(&row.get::<String>(9)?),
            amount: Amount { money: row.get(10)?, tokens: row.get(11)?, calls: row.get(12)? },
            made_at: row.get(13)?,
        })
    }

    /// Charges the budgets that it is reserved in, as far as they are still there.
    fn charge(&self, tx: &mut WriteTx<'_>, amount: &Amount) -> Result<()> {
        let mut path =
            if self.budget.is_empty() { Vec::new() } else { ancestry(tx, &self.budget)? };
        path.push(self.day.clone());
        charge_each(tx, &path.iter().collect::<Vec<_>>(), amount)?;
        Ok(())
    }

    /// Gives back what certainly was not used, and keeps the rest for a person to look at.
    fn settle(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        let purpose = Purpose {
            owner: self.owner,
            session: self.session,
            turn: self.turn,
            purpose: &self.purpose,
        };
        if self.was_not_sent(tx.dialect()) {
            self.charge(tx, &Amount::default().minus(&self.amount))?;
            remove(tx, self.id)?;
            model_call::withdraw(tx, self.id, &purpose)?;
            return Ok(());
        }
        tx.execute(
            "UPDATE reservations SET stage = ?2 WHERE id = ?1",
            params![self.id, Stage::Abandoned.as_str()],
        )?;
        model_call::lose(tx, self.id, &purpose)?;
        Ok(())
    }

    /// Whether it is certain that nothing was sent. The mark outlasts a process that is killed; in a
    /// file it may not outlast a machine that lost its power.
    fn was_not_sent(&self, dialect: Dialect) -> bool {
        self.stage == Stage::Ready
            && match dialect {
                Dialect::Postgres => true,
                Dialect::Sqlite => self
                    .process
                    .parse()
                    .is_ok_and(|process: ProcessIdentity| process.shares_clock()),
            }
    }

    /// Whether somebody may still finish it: a process that lives, and that has the session.
    pub fn is_open(&self, store: &Store) -> Result<bool> {
        if self.stage == Stage::Abandoned {
            return Ok(false);
        }
        let Ok(process) = self.process.parse::<ProcessIdentity>() else { return Ok(false) };
        if process.liveness() == Liveness::Dead {
            return Ok(false);
        }
        let Some(session) = self.session else { return Ok(true) };
        let resource = crate::agent::lease_of(session);
        let holders = store.lease_holders()?;
        let holder = holders.iter().find(|holder| holder.resource == resource);
        Ok(holder.is_some_and(|holder| holder.process == process && !store.is_free(holder)))
    }
}

fn find(tx: &mut ReadTx<'_>, id: Id) -> Result<Option<Reservation>> {
    Ok(tx.query_opt(&format!("{SELECT} WHERE id = ?1"), params![id], Reservation::read)?)
}

/// Everything that is reserved for an owner's calls, the oldest first.
pub fn all(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<Reservation>> {
    let sql = format!("{SELECT} WHERE owner = ?1 ORDER BY made_at, id");
    Ok(tx.query(&sql, params![owner], Reservation::read)?)
}

/// Settles the calls of processes that are gone, of whatever session.
pub fn sweep(store: &Store, owner: OwnerId) -> Result<()> {
    let me = ProcessIdentity::current().to_string();
    let sql = format!("{SELECT} WHERE owner = ?1 AND stage <> ?2 AND process <> ?3");
    let others = store.read(|tx| {
        tx.query(&sql, params![owner, Stage::Abandoned.as_str(), me], Reservation::read)
    })?;
    let mut gone = Vec::new();
    for reservation in others {
        if !reservation.is_open(store)? {
            gone.push(reservation);
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    store.write(|tx| -> Result<()> {
        for reservation in &gone {
            // Whoever took the session up meanwhile has settled it.
            if let Some(found) = find(tx, reservation.id)?
                && found.process == reservation.process
                && found.stage == reservation.stage
            {
                found.settle(tx)?;
            }
        }
        Ok(())
    })
}

/// A person's decision about reservations, as it is published.
#[derive(Debug, Serialize)]
pub struct Cleared<'a> {
    /// Who decided.
    pub by: &'a str,
    /// Why.
    pub why: &'a str,
    /// The reservations.
    pub ids: Vec<Id>,
    /// What was given back, in millionths of a dollar.
    pub money: i64,
    /// And in tokens.
    pub tokens: i64,
}

/// Gives back what is reserved for abandoned calls, because a person says that it was not billed.
/// Calls that somebody may still finish are left alone. It is published under [`EVENTS`].
pub fn clear<'a>(
    tx: &mut WriteTx<'_>,
    ids: &[Id],
    by: &'a str,
    why: &'a str,
) -> Result<Cleared<'a>> {
    let mut cleared = Cleared { by, why, ids: Vec::new(), money: 0, tokens: 0 };
    for id in ids {
        let Some(found) = find(tx, *id)?.filter(|found| found.stage == Stage::Abandoned) else {
            continue;
        };
        // That a model was asked stays counted.
        found.charge(tx, &Amount { calls: 0, ..Amount::default().minus(&found.amount) })?;
        remove(tx, *id)?;
        cleared.ids.push(*id);
        cleared.money += found.amount.money;
        cleared.tokens += found.amount.tokens;
    }
    if !cleared.ids.is_empty() {
        let body = serde_json::to_string(&cleared)
            .map_err(|error| mainstay_store::Error::Statement(error.to_string()))?;
        tx.publish(EVENTS, &body)?;
    }
    Ok(cleared)
}

/// What is kept for abandoned calls in a budget, and for how many.
pub(crate) fn kept_in(tx: &mut ReadTx<'_>, budget: &str) -> Result<(i64, i64)> {
    let (column, value) = match budget.split_once('/') {
        Some((column @ ("session" | "turn"), id)) => (column, id),
        _ => ("day", budget),
    };
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(money), 0) AS BIGINT), COUNT(*) FROM reservations
         WHERE {column} = ?1 AND stage = ?2"
    );
    Ok(tx.query_one(&sql, params![value, Stage::Abandoned.as_str()], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?)
}
