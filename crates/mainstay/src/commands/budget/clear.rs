//! `mainstay budget clear`

use clap::Args;
use mainstay_agent::budget::dollars;
use mainstay_agent::budget::reservations::{self, Stage};
use mainstay_store::{Id, ProcessIdentity};
use serde_json::json;

use super::super::cost::usd;
use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only, redaction, wording};

/// Give back what is kept for abandoned calls
///
/// Do this when your provider's bill shows that they were not charged. Who did it and why is
/// recorded. Calls that are still running are left alone.
#[derive(Args, Debug)]
pub(crate) struct ClearArgs {
    /// Reservations to clear (a prefix of each ID is enough); see `mainstay budget`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,

    /// Clear all that are abandoned
    #[arg(long)]
    all: bool,

    /// Reason, which is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn run(args: &ClearArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay budget clear")?;
    let store = open_existing(&context.paths()?)?;
    let typed = args.ids.first().map_or("", String::as_str);
    let owner = engine::existing_owner(&store, "reservation", typed)?;
    reservations::sweep(&store, owner)?;
    let mut ids: Vec<Id> = Vec::new();
    for typed in &args.ids {
        ids.push(store.read(|tx| tx.find_id("reservations", "reservation", typed))?);
    }
    if args.all {
        let all = store.read(|tx| reservations::all(tx, owner))?;
        let abandoned = all.iter().filter(|found| found.stage == Stage::Abandoned);
        ids.extend(abandoned.map(|found| found.id));
    }
    let why = redaction::typed(&args.reason, context)?;
    let by = format!("`mainstay budget clear` ({})", ProcessIdentity::current());
    let cleared = store.write(|tx| reservations::clear(tx, &ids, &by, &why))?;
    let left: Vec<Id> = ids.into_iter().filter(|id| !cleared.ids.contains(id)).collect();
    let data =
        json!({ "cleared": cleared.ids, "given_back_usd": usd(cleared.money), "left": left });
    let number = u64::try_from(cleared.ids.len()).unwrap_or(u64::MAX);
    let mut text = format!(
        "Cleared {}: {} given back.\n",
        wording::count(number, "reservation"),
        dollars(cleared.money)
    );
    for id in &left {
        text.push_str(&format!("{id} is still running and was left alone.\n"));
    }
    context.output.answer(&data, &text)?;
    Ok(if left.is_empty() { Exit::Done } else { Exit::InUse })
}
