//! Budgets: a tree of limits, and no call without a reservation in all of them.
//!
//! A turn's budget hangs below its session's, that of a child session below the turn that asked for
//! it, and everything below the owner's day. A reservation is charged at once and corrected when the
//! true figures are known, so a crash can make a budget look fuller than it is, never emptier.

pub mod reservations;

use mainstay_journal::turn::{BudgetLimit, BudgetScope};
use mainstay_store::{Dialect, OwnerId, ReadTx, Row, ToValue, WriteTx, params};
use serde::{Deserialize, Serialize};

use crate::Result;

pub(crate) const TABLES: &str = "
CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    parent TEXT REFERENCES budgets (id),
    depth INTEGER NOT NULL,
    money_limit INTEGER,
    tokens_limit INTEGER,
    calls_limit INTEGER,
    money INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    calls INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What may be spent. `None` stands for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Millionths of a dollar.
    pub money: Option<i64>,
    /// Tokens, read and written.
    pub tokens: Option<i64>,
    /// Calls of models.
    pub calls: Option<i64>,
}

/// What a call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Millionths of a dollar.
    pub money: i64,
    /// Tokens, read and written.
    pub tokens: i64,
    /// Calls of models.
    pub calls: i64,
}

/// A limit that leaves no room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetExhausted {
    /// The budget that has it.
    pub budget: String,
    /// Which of its limits it is.
    pub limit: BudgetLimit,
    /// Which one that is and what was used of it, in a sentence.
    pub text: String,
}

impl BudgetExhausted {
    /// Whose budget it is.
    pub fn scope(&self) -> BudgetScope {
        scope(&self.budget)
    }
}

/// Where a turn's spending is charged.
#[derive(Clone, Debug)]
pub struct Account {
    /// Who pays.
    pub owner: OwnerId,
    /// The turn's budget, and those above it.
    pub path: Vec<String>,
    /// What the owner may spend in a day.
    pub day: Limits,
}

/// The name of a session's budget.
pub fn of_session(session: impl std::fmt::Display) -> String {
    format!("session/{session}")
}

/// The name of a turn's budget.
pub fn of_turn(turn: impl std::fmt::Display) -> String {
    format!("turn/{turn}")
}

/// Opens a budget below `parent`, or changes its limits if it is open already.
pub fn open(tx: &mut WriteTx<'_>, id: &str, parent: Option<&str>, limits: &Limits) -> Result<i64> {
    let depth: i64 = match parent {
        None => 0,
        Some(parent) => tx
            .query_opt("SELECT depth FROM budgets WHERE id = ?1", params![parent], |row| {
                row.get(0)
            })?
            .map_or(0, |depth: i64| depth + 1),
    };
    tx.execute(
        "INSERT INTO budgets
             (id, parent, depth, money_limit, tokens_limit, calls_limit, money, tokens, calls)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0)
         ON CONFLICT (id) DO UPDATE SET money_limit = excluded.money_limit,
             tokens_limit = excluded.tokens_limit, calls_limit = excluded.calls_limit",
        params![id, parent, depth, limits.money, limits.tokens, limits.calls],
    )?;
    Ok(depth)
}

/// Charges `amount` to the turn and everything above it. Where one of them has no room for it, it
/// is not charged and that one is named. `correction` is what earlier reservations turn out to
/// differ by; it is charged in any case.
pub fn reserve(
    tx: &mut WriteTx<'_>,
    account: &Account,
    amount: &Amount,
    correction: &Amount,
) -> Result<std::result::Result<(), BudgetExhausted>> {
    let path = charge(tx, account, &amount.plus(correction))?;
    for charged in &path {
        let before = charged.used.minus(amount);
        if let Some((limit, what)) = charged.limits.left_out(&before, amount) {
            charge(tx, account, &Amount::default().minus(amount))?;
            let whose = match scope(&charged.id) {
                BudgetScope::Day => "today's",
                BudgetScope::Session => "this session's",
                BudgetScope::Turn => "this turn's",
            };
            let (kept, calls) = reservations::kept_in(tx, &charged.id)?;
            let kept = match calls {
                0 => String::new(),
                _ => format!(
                    "; {} of that is kept for {calls} abandoned model {}, see `mainstay budget`",
                    dollars(kept),
                    if calls == 1 { "call" } else { "calls" }
                ),
            };
            let text = format!("{whose} budget is spent: {what}{kept}");
            return Ok(Err(BudgetExhausted { budget: charged.id.clone(), limit, text }));
        }
    }
    Ok(Ok(()))
}

/// Charges what earlier reservations turn out to differ by.
pub fn correct(tx: &mut WriteTx<'_>, account: &Account, correction: &Amount) -> Result<()> {
    if *correction != Amount::default() {
        charge(tx, account, correction)?;
    }
    Ok(())
}

/// A budget after an amount was charged to it.
struct ChargedBudget {
    id: String,
    limits: Limits,
    used: Amount,
}

impl ChargedBudget {
    fn read(row: &Row<'_>) -> mainstay_store::Result<Self> {
        let limits = Limits { money: row.get(1)?, tokens: row.get(2)?, calls: row.get(3)? };
        let used = Amount { money: row.get(4)?, tokens: row.get(5)?, calls: row.get(6)? };
        Ok(Self { id: row.get(0)?, limits, used })
    }
}

/// Charges an amount to the budgets of an account, and to the day's, which is opened with its first
/// use. Returns them as they are after that.
fn charge(tx: &mut WriteTx<'_>, account: &Account, amount: &Amount) -> Result<Vec<ChargedBudget>> {
    let today = day_of(tx.now(), account.owner);
    let ids: Vec<&String> = account.path.iter().chain([&today]).collect();
    let mut path = charge_each(tx, &ids, amount)?;
    if !path.iter().any(|charged| charged.id == today) {
        open(tx, &today, None, &account.day)?;
        path.extend(charge_each(tx, &[&today], amount)?);
    }
    // The settings may have changed since the day was opened; they hold, not the row.
    for day in path.iter_mut().filter(|charged| charged.id == today) {
        day.limits = account.day;
    }
    Ok(path)
}

fn charge_each(
    tx: &mut WriteTx<'_>,
    ids: &[&String],
    amount: &Amount,
) -> Result<Vec<ChargedBudget>> {
    const COLUMNS: &str = "id, money_limit, tokens_limit, calls_limit, money, tokens, calls";
    let charge = format!(
        "UPDATE budgets SET money = money + ?1, tokens = tokens + ?2, calls = calls + ?3
         WHERE id IN ({})",
        places(4, ids.len())
    );
    let named = ids.iter().map(|id| *id as &dyn ToValue);
    let mut charged: Vec<&dyn ToValue> = vec![&amount.money, &amount.tokens, &amount.calls];
    charged.extend(named.clone());
    match tx.dialect() {
        // A round trip to the server costs more than RETURNING.
        Dialect::Postgres => {
            Ok(tx.query(&format!("{charge} RETURNING {COLUMNS}"), &charged, ChargedBudget::read)?)
        }
        // SQLite collects what RETURNING gives in a temporary table; a second SELECT takes a fifth of
        // the time.
        Dialect::Sqlite => {
            tx.execute(&charge, &charged)?;
            let each = |place: usize| format!("SELECT {COLUMNS} FROM budgets WHERE id = ?{place}");
            let all: Vec<String> = (1..=ids.len()).map(each).collect();
            Ok(tx.query(
                &all.join(" UNION ALL "),
                &named.collect::<Vec<_>>(),
                ChargedBudget::read,
            )?)
        }
    }
}

/// So many parameters from a number on.
fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

/// What a budget has left. `None` stands for no limit.
pub fn left(tx: &mut ReadTx<'_>, id: &str) -> Result<Limits> {
    let left = tx.query_opt(
        "SELECT money_limit - money, tokens_limit - tokens, calls_limit - calls
         FROM budgets WHERE id = ?1",
        params![id],
        |row| Ok(Limits { money: row.get(0)?, tokens: row.get(1)?, calls: row.get(2)? }),
    )?;
    Ok(left.unwrap_or_default())
}

/// What an owner's budget of today is charged with.
pub fn used_today(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Amount> {
    let used = tx.query_opt(
        "SELECT money, tokens, calls FROM budgets WHERE id = ?1",
        params![day_of(tx.now(), owner)],
        |row| Ok(Amount { money: row.get(0)?, tokens: row.get(1)?, calls: row.get(2)? }),
    )?;
    Ok(used.unwrap_or_default())
}

/// A budget and those above it.
pub fn ancestry(tx: &mut ReadTx<'_>, id: &str) -> Result<Vec<String>> {
    let mut path = vec![id.to_owned()];
    while let Some(last) = path.last()
        && let Some(parent) = tx
            .query_opt("SELECT parent FROM budgets WHERE id = ?1", params![last], |row| {
                row.get::<Option<String>>(0)
            })?
            .flatten()
    {
        path.push(parent);
    }
    Ok(path)
}

fn day_of(now: i64, owner: OwnerId) -> String {
    format!("day/{owner}/{}", now.div_euclid(24 * 60 * 60 * 1000))
}

/// Whose budget it is, by the name that [`of_session`], [`of_turn`] or [`day_of`] gave it.
fn scope(id: &str) -> BudgetScope {
    match id.split('/').next() {
        Some("day") => BudgetScope::Day,
        Some("session") => BudgetScope::Session,
        _ => BudgetScope::Turn,
    }
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            money: self.money.saturating_add(other.money),
            tokens: self.tokens.saturating_add(other.tokens),
            calls: self.calls.saturating_add(other.calls),
        }
    }

    /// What this is more than another.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { money: -other.money, tokens: -other.tokens, calls: -other.calls })
    }
}

impl Limits {
    /// Which limit has no room for `amount` beside what was `used`, and how it stands in words.
    fn left_out(&self, used: &Amount, amount: &Amount) -> Option<(BudgetLimit, String)> {
        let over = |limit: Option<i64>, used: i64, amount: i64| {
            limit.filter(|limit| used.saturating_add(amount) > *limit)
        };
        if let Some(limit) = over(self.money, used.money, amount.money) {
            let text = format!(
                "{} of {} used, and the next call may cost {}",
                dollars(used.money),
                dollars(limit),
                dollars(amount.money)
            );
            return Some((BudgetLimit::Money, text));
        }
        if let Some(limit) = over(self.tokens, used.tokens, amount.tokens) {
            let text = format!(
                "{} of {limit} tokens used, and the next call may take {}",
                used.tokens, amount.tokens
            );
            return Some((BudgetLimit::Tokens, text));
        }
        let limit = over(self.calls, used.calls, amount.calls)?;
        Some((BudgetLimit::Calls, format!("{} of {limit} model calls made", used.calls)))
    }
}

/// An amount of money, as people write it.
pub fn dollars(micros: i64) -> String {
    let digits = if micros.abs() >= 1_000_000 || micros == 0 { 2 } else { 4 };
    #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
    let dollars = micros as f64 / 1e6;
    format!("${dollars:.digits$}")
}

#[cfg(test)]
mod tests {
    use mainstay_journal::{SessionId, TurnId};

    use super::*;
    use crate::Settings;
    use crate::test_session::TestSession;

    #[test]
    fn a_budget_is_known_by_its_name() {
        let owner = TestSession::new(Settings::default()).session.agent.owner();
        let cases = [
            (of_session(SessionId::new()), BudgetScope::Session),
            (of_turn(TurnId::new()), BudgetScope::Turn),
            (day_of(0, owner), BudgetScope::Day),
            (day_of(1_800_000_000_000, owner), BudgetScope::Day),
        ];
        for (id, expected) in cases {
            assert_eq!(scope(&id), expected, "{id}");
            let exhausted =
                BudgetExhausted { budget: id, limit: BudgetLimit::Money, text: String::new() };
            assert_eq!(exhausted.scope(), expected);
        }
    }
}
