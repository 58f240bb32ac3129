//! `[budget]`: what may be spent.

use mainstay_agent::Budgets;
use mainstay_agent::budget::Limits;
use serde::Deserialize;

use super::build::time;
use super::shape::Time;
use super::{Config, Overrides};
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# What may be spent: dollars, tokens, model calls and time.
[budget]
#turn_usd = 10.0
#turn_tokens = 200_000_000
#turn_calls = 2000
#turn_time = "12h"
#session_usd = 50.0
#day_usd = 50.0
#day_calls = 20_000
"#;

/// What may be spent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Budget {
    pub(super) turn_usd: Option<f64>,
    pub(super) turn_tokens: Option<i64>,
    pub(super) turn_calls: Option<i64>,
    pub(super) turn_time: Option<Time>,
    pub(super) session_usd: Option<f64>,
    pub(super) day_usd: Option<f64>,
    pub(super) day_calls: Option<i64>,
}

/// What the engine is told of budgets.
pub(super) fn budgets(config: &Config, over: &Overrides) -> Result<Budgets, Error> {
    let said = &config.file.budget;
    let usual = Budgets::default();
    let money = |name: &str, dollars: Option<f64>, usual: Option<i64>| match dollars {
        None => Ok(usual),
        Some(dollars) if (0.0..1e9).contains(&dollars) => {
            #[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
            let micros = (dollars * 1e6).round() as i64;
            Ok(Some(micros))
        }
        Some(dollars) => Err(config
            .wrong(format!("{name} is {dollars}, which is not a valid amount"))
            .hint("Write dollars, such as 5 or 0.25.")),
    };
    let turn = Limits {
        money: money("the budget of a turn", over.budget.or(said.turn_usd), usual.turn.money)?,
        tokens: said.turn_tokens.or(usual.turn.tokens),
        calls: said.turn_calls.or(usual.turn.calls),
    };
    let session = Limits {
        money: money("budget.session_usd", said.session_usd, usual.session.money)?,
        ..usual.session
    };
    let day = Limits {
        money: money("budget.day_usd", said.day_usd, usual.day.money)?,
        calls: said.day_calls.or(usual.day.calls),
        ..usual.day
    };
    let wall = match &said.turn_time {
        Some(said) => time(config, "budget.turn_time", said)?,
        None => usual.wall,
    };
    Ok(Budgets { day, session, turn, wall, ..usual })
}
