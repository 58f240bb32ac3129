//! `mainstay skills remove`

use clap::Args;
use mainstay_agent::skills::SkillError;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::humans_only;

/// Move a skill of the home to the trash; `skills restore` brings it back
#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// Name of the skill
    name: String,
}

pub(super) fn run(args: &RemoveArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay skills remove")?;
    let paths = context.paths()?;
    let shelf = super::shelf(&paths);
    if !shelf.is_there() {
        return Err(SkillError::Missing(args.name.clone()).into());
    }
    let path = shelf.lock()?.remove(&args.name)?;
    let restore = paths.command(&format!("skills restore {}", args.name));
    let text = format!("Removed {}. Restore it: `{restore}`\n", args.name);
    context.output.answer(&json!({ "name": args.name, "trash": path }), &text)?;
    Ok(Exit::Done)
}
