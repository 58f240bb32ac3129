//! `mainstay memory feedback`

use clap::{Args, ValueEnum};
use mainstay_memory::facts;
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only};

/// Say whether a fact was helpful
///
/// Trusted facts are found first; facts trusted less than 0.3 are not recalled.
#[derive(Args, Debug)]
pub(crate) struct FeedbackArgs {
    /// Number of the fact
    id: String,

    /// What it was
    #[arg(value_enum)]
    rating: Rating,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rating {
    /// Correct or useful
    Helpful,
    /// Wrong or misleading
    Unhelpful,
}

pub(crate) fn run(args: &FeedbackArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("changing memories")?;
    let id = super::fact_id(&args.id)?;
    let store = open_existing(&context.paths()?)?;
    let owner = engine::existing_owner(&store, "fact", &args.id)?;
    let helpful = args.rating == Rating::Helpful;
    let trust = store.write(|tx| facts::feedback(tx, owner, id, helpful))?;
    let trust = trust.ok_or_else(|| super::no_fact(id))?;
    let data = json!({ "id": id.number(), "trust": trust });
    context.output.answer(&data, &format!("Fact {id} now has trust {trust:.2}.\n"))?;
    Ok(Exit::Done)
}
