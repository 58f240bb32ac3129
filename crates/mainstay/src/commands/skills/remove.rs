//! `mainstay skills remove`

use clap::Args;
use mainstay_agent::skills::SkillError;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::person;

/// Move a skill of the home to the trash, where `restore` finds it
#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// Its name
    name: String,
}

pub(super) fn run(args: &RemoveArgs, context: &Context) -> Result<Exit, Error> {
    person::only("mainstay skills remove")?;
    let settings = context.settings()?;
    let shelf = super::shelf(&settings);
    if !shelf.is_there() {
        return Err(SkillError::Missing(args.name.clone()).into());
    }
    let path = shelf.lock()?.remove(&args.name)?;
    let restore = settings.command(&format!("skills restore {}", args.name));
    let text = format!("Removed {}. Bring it back: `{restore}`\n", args.name);
    context.output.answer(&json!({ "name": args.name, "trash": path }), &text)?;
    Ok(Exit::Done)
}
