//! `mainstay memory feedback`

use clap::{Args, ValueEnum};
use mainstay_memory::facts;
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only};

/// Say whether a fact was right
///
/// What is trusted more is found first; what is trusted less than 0.3 is not brought to a session.
#[derive(Args, Debug)]
pub(crate) struct FeedbackArgs {
    /// The fact's number
    id: String,

    /// What it was
    #[arg(value_enum)]
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Right, or of use
    Helpful,
    /// Wrong, or misleading
    Unhelpful,
}

pub(crate) fn run(args: &FeedbackArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("to change what is remembered")?;
    let id = super::fact_id(&args.id)?;
    let store = open_existing(&context.paths()?.store)?;
    let owner = engine::existing_owner(&store, "fact", &args.id)?;
    let helpful = args.what == What::Helpful;
    let trust = store.write(|tx| facts::feedback(tx, owner, id, helpful))?;
    let trust = trust.ok_or_else(|| super::no_fact(id))?;
    let data = json!({ "id": id.number(), "trust": trust });
    context.output.answer(&data, &format!("Fact {id} is trusted {trust:.2} now.\n"))?;
    Ok(Exit::Done)
}
