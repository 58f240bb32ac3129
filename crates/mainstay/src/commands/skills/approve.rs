//! `mainstay skills approve`

use clap::Args;
use mainstay_agent::skills::{self, ProposalState};
use mainstay_store::ProcessIdentity;

use super::proposals;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::humans_only;
use crate::printing;

/// Show what a proposed skill changes, and start using it
///
/// The skill is replaced as a whole, and the old version goes to the trash. A skill that changed
/// after the proposal was made is left alone.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// Proposal to approve (a prefix of its ID is enough); see `mainstay skills proposals`
    id: String,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(args: &ApproveArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay skills approve")?;
    let paths = context.paths()?;
    let shelf = super::shelf(&paths);
    let (store, owner, found) = super::named(&paths, &args.id)?;
    if found.state == ProposalState::Waiting {
        let (text, _) = proposals::shown(&shelf, &found);
        if !context.json() {
            printing::say(&text);
        }
        skills::preview(&shelf, &found)?;
        if !args.yes && !humans_only::confirm(&format!("approve {} as shown", found.name))? {
            context.output.answer(&proposals::data(&found), "Nothing was changed.\n")?;
            return Ok(Exit::Done);
        }
    }
    let by = format!("`mainstay skills approve` ({})", ProcessIdentity::current());
    let approved = skills::approve(&store, owner, &shelf, found.id, &by)?;
    let name = &approved.name;
    let text = format!("Approved. New sessions know {name}{}\n", super::in_a_chat(name));
    context.output.answer(&proposals::data(&approved), &text)?;
    Ok(Exit::Done)
}
