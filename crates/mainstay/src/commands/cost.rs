//! `mainstay cost`

use clap::{Args, ValueEnum};
use mainstay_agent::budget::dollars;
use mainstay_journal::model_call::{self, By, Spent};
use mainstay_store::wall_millis;
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Show what models cost
///
/// Every call counts, including failed ones. Models without a known price count as free; set prices
/// in config.toml under [models."PROVIDER/MODEL"].
#[derive(Args, Debug)]
pub(crate) struct CostArgs {
    /// Group costs by this
    #[arg(long, value_enum, default_value_t = Sum::Day)]
    by: Sum,

    /// Count only the last DAYS days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    days: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sum {
    /// Day, in UTC
    Day,
    /// Model
    Model,
    /// Session
    Session,
}

const DAY: i64 = 24 * 60 * 60 * 1000;

pub(crate) fn run(args: &CostArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let since = wall_millis() - i64::from(args.days) * DAY;
    let by = match args.by {
        Sum::Day => By::Day,
        Sum::Model => By::Model,
        Sum::Session => By::Session,
    };
    let mut parts: Vec<Spent> = match engine::find_owner(&store)? {
        Some(owner) => store.read(|tx| model_call::spent(tx, owner, by, since))?,
        None => Vec::new(),
    };
    if args.by == Sum::Day {
        for part in &mut parts {
            let day = part.what.parse::<i64>().unwrap_or(0);
            part.what = wording::date(day * DAY);
        }
    }
    let total: i64 = parts.iter().map(|part| part.cost).sum();
    let data = json!({ "by": args.by.to_possible_value().map(|value| value.get_name().to_owned()),
        "days": args.days, "parts": parts, "cost_usd": usd(total) });
    context.output.answer(&data, &table(&parts, total))?;
    Ok(Exit::Done)
}

fn table(parts: &[Spent], total: i64) -> String {
    if parts.is_empty() {
        return "Nothing spent: no model was called.\n".to_owned();
    }
    let width = parts.iter().map(|part| part.what.chars().count()).max().unwrap_or(0).max(5);
    let line = |what: &str, calls: &str, failed: &str, input: &str, output: &str, cost: &str| {
        format!("{what:<width$}  {calls:>7}  {failed:>7}  {input:>12}  {output:>10}  {cost:>10}\n")
    };
    let mut text = line("", "calls", "failed", "tokens in", "out", "cost");
    for part in parts {
        text.push_str(&line(
            &part.what,
            &part.calls.to_string(),
            &part.failed.to_string(),
            &part.usage.all_input().to_string(),
            &part.usage.output.to_string(),
            &dollars(part.cost),
        ));
    }
    text.push_str(&line("total", "", "", "", "", &dollars(total)));
    text
}

#[expect(clippy::cast_precision_loss, reason = "it is for reading")]
pub(super) fn usd(micros: i64) -> f64 {
    micros as f64 / 1e6
}
