//! `mainstay approvals forget`

use clap::Args;
use mainstay_agent::approvals;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, person, wording};

/// Take back an "always": the next time you are asked again
#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    /// The rule (the start of its id is enough)
    id: String,
}

pub(super) fn run(args: &ForgetArgs, context: &Context) -> Result<Exit, Error> {
    person::only("mainstay approvals forget")?;
    let settings = context.settings()?;
    let store = open_existing(&settings.store)?;
    let owner = engine::existing_owner(&store, "rule", &args.id)?;
    let rule = store.write(|tx| approvals::rules::forget(tx, owner, &args.id))?;
    let text = format!("Forgotten: {}\n", wording::line(&rule.rule.describe()));
    context.output.answer(&super::rules::data(&rule), &text)?;
    Ok(Exit::Done)
}
