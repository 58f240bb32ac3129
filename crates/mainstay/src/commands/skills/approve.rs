//! `mainstay skills approve`

use std::io::Write as _;

use clap::Args;
use mainstay_agent::skills::{self, ProposalState};
use mainstay_store::ProcessIdentity;

use super::proposals;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::person;

/// Show what a proposed skill changes, and use it from now on
///
/// The skill is put in place as a whole. One that was changed since the proposal was made is left
/// alone; the version that is replaced goes to the trash.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// The proposal (the start of its id is enough); see `mainstay skills proposals`
    id: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(args: &ApproveArgs, context: &Context) -> Result<Exit, Error> {
    person::only("mainstay skills approve")?;
    let settings = context.settings()?;
    let shelf = super::shelf(&settings);
    let (store, owner, found) = super::named(&settings, &args.id)?;
    if found.state == ProposalState::Waiting {
        let (text, _) = proposals::shown(&shelf, &found);
        if !context.json() {
            // With standard error gone there is nobody to show it to.
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        skills::preview(&shelf, &found)?;
        if !args.yes && !person::confirms(&format!("Use {} like this?", found.name))? {
            context.output.answer(&proposals::data(&found), "Nothing was changed.\n")?;
            return Ok(Exit::Done);
        }
    }
    let by = format!("`mainstay skills approve` ({})", ProcessIdentity::current());
    let approved = skills::approve(&store, owner, &shelf, found.id, &by)?;
    let name = &approved.name;
    let text = format!("Approved. New sessions are told of {name}{}\n", super::in_a_chat(name));
    context.output.answer(&proposals::data(&approved), &text)?;
    Ok(Exit::Done)
}
