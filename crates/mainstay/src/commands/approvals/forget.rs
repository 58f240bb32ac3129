//! `mainstay approvals forget`

use clap::Args;
use mainstay_agent::approvals;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only, wording};

/// Remove an "always" rule, so that you are asked again
#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    /// Rule to remove (a prefix of its ID is enough)
    id: String,
}

pub(super) fn run(args: &ForgetArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay approvals forget")?;
    let paths = context.paths()?;
    let store = open_existing(&paths)?;
    let owner = engine::existing_owner(&store, "rule", &args.id)?;
    let rule = store.write(|tx| approvals::rules::forget(tx, owner, &args.id))?;
    let text = format!("Removed: {}\n", wording::line(&rule.rule.describe()));
    context.output.answer(&super::rules::data(&rule), &text)?;
    Ok(Exit::Done)
}
