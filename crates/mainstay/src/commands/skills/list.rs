//! `mainstay skills list`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_agent::skills::{self, ProposalFilter, visible};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// List skills, where each comes from, and which cannot be used
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Directory to look from [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
}

pub(super) fn run(args: &ListArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let (places, workspace) = super::places(context, args.workspace.as_deref())?;
    let waiting = match super::proposed(&paths)? {
        None => 0,
        Some((store, owner)) => {
            store.read(|tx| skills::list(tx, owner, ProposalFilter::Waiting))?.len()
        }
    };
    let found = skills::find(&places, &workspace);
    let mut text = String::new();
    let width = found.skills.iter().map(|skill| skill.front.name.len()).max().unwrap_or(0);
    for skill in &found.skills {
        let (name, origin) = (&skill.front.name, skill.origin.as_str());
        let description = visible(&wording::line(&skill.front.description));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<width$}  {origin:<9}  {description}");
        for hidden in found.shadowed.iter().filter(|it| it.skill.front.name == *name) {
            let (hidden, holds) = (hidden.skill.path.display(), skill.path.display());
            let _ = writeln!(text, "    {holds} hides {hidden}");
        }
    }
    if found.skills.is_empty() {
        text.push_str("No skills. Add one: `mainstay skills add FOLDER`\n");
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "unusable: {}", visible(&wording::line(&warning.to_string())));
    }
    if waiting > 0 {
        let many = wording::count(waiting as u64, "proposal");
        let verb = if waiting == 1 { "is" } else { "are" };
        let _ = writeln!(text, "{many} {verb} waiting for you: `mainstay skills proposals`");
    }
    let mut data = json!(found);
    data["waiting"] = json!(waiting);
    context.output.answer(&data, &paths.completed(&text))?;
    Ok(Exit::Done)
}
