//! `mainstay skills reject`

use clap::Args;
use mainstay_agent::skills;
use mainstay_store::ProcessIdentity;

use super::proposals;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::humans_only;

/// Reject a proposed skill
#[derive(Args, Debug)]
pub(crate) struct RejectArgs {
    /// Proposal to reject (a prefix of its ID is enough); see `mainstay skills proposals`
    id: String,
}

pub(super) fn run(args: &RejectArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay skills reject")?;
    let paths = context.paths()?;
    let (store, owner, found) = super::named(&paths, &args.id)?;
    let by = format!("`mainstay skills reject` ({})", ProcessIdentity::current());
    let rejected = skills::reject(&store, owner, found.id, &by)?;
    let text = format!("Rejected; {} stays as it is.\n", rejected.name);
    context.output.answer(&proposals::data(&rejected), &text)?;
    Ok(Exit::Done)
}
