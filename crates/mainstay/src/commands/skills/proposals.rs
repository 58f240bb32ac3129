//! `mainstay skills proposals`

use std::fmt::Write as _;

use clap::Args;
use mainstay_agent::skills::{self, Proposal, ProposalFilter, ProposalState, Shelf, visible};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// List skills that models propose, or show what one would change
#[derive(Args, Debug)]
pub(crate) struct ProposalsArgs {
    /// Proposal to show (a prefix of its ID is enough)
    id: Option<String>,

    /// Also show decided proposals
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

pub(super) fn run(args: &ProposalsArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    if let Some(typed) = &args.id {
        let (_, _, found) = super::named(&paths, typed)?;
        let (text, data) = shown(&super::shelf(&paths), &found);
        context.output.answer(&data, &paths.completed(&text))?;
        return Ok(Exit::Done);
    }
    let which = if args.all { ProposalFilter::All } else { ProposalFilter::Waiting };
    let found = match super::proposed(&paths)? {
        None => Vec::new(),
        Some((store, owner)) => store.read(|tx| skills::list(tx, owner, which))?,
    };
    let mut text: String = found.iter().map(line).collect();
    text.push_str(if found.iter().any(|proposal| proposal.state == ProposalState::Waiting) {
        "Show what one changes: `mainstay skills proposals ID`. Decide: `mainstay skills approve ID` \
         or `mainstay skills reject ID`\n"
    } else {
        "No proposals are waiting.\n"
    });
    let data: Vec<Value> = found.iter().map(data).collect();
    context.output.answer(&data, &paths.completed(&text))?;
    Ok(Exit::Done)
}

/// A proposal in a line or two.
fn line(proposal: &Proposal) -> String {
    let new = if proposal.base.is_none() { "new skill" } else { "changes to" };
    let mut text = format!(
        "{}  {:<9} {new} {}: {}\n",
        proposal.id,
        proposal.state.as_str(),
        proposal.name,
        visible(&wording::line(&proposal.reason))
    );
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "    {}; {}; session {}",
        wording::count(proposal.files.len() as u64, "file"),
        wording::minute(proposal.proposed_at),
        proposal.session
    );
    if let Some(origin) = &proposal.origin {
        let _ =
            write!(text, "; the session had read text from {}", visible(&wording::line(origin)));
    }
    text.push('\n');
    text
}

/// A proposal with what it changes, in words and as data.
pub(super) fn shown(shelf: &Shelf, proposal: &Proposal) -> (String, Value) {
    let mut data = data(proposal);
    let mut text = line(proposal);
    if proposal.state != ProposalState::Waiting {
        return (text, data);
    }
    match skills::preview(shelf, proposal) {
        Ok((before, after)) => {
            let diff = skills::diff(&before, &after);
            text.push_str(&diff);
            data["diff"] = json!(diff);
        }
        Err(error) => {
            let _ = writeln!(text, "    {error}");
            data["obstacle"] = json!(error.to_string());
        }
    }
    (text, data)
}

/// A proposal as data.
pub(super) fn data(proposal: &Proposal) -> Value {
    json!(proposal)
}
