//! `mainstay skills restore`

use clap::Args;
use mainstay_agent::skills::SkillError;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::humans_only;

/// Restore the skill of this name that was removed or replaced last
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// Name of the skill
    name: String,
}

pub(super) fn run(args: &RestoreArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay skills restore")?;
    let paths = context.paths()?;
    let shelf = super::shelf(&paths);
    if !shelf.is_there() {
        return Err(SkillError::NotInTrash(args.name.clone()).into());
    }
    shelf.lock()?.restore(&args.name).map_err(|trouble| {
        let taken = matches!(trouble, SkillError::Exists(_));
        let error = Error::from(trouble);
        if taken {
            error.only_hint(format!("Remove it first: `mainstay skills remove {}`", args.name))
        } else {
            error
        }
    })?;
    let text = format!("Restored {}.\n", args.name);
    context.output.answer(&json!({ "name": args.name }), &text)?;
    Ok(Exit::Done)
}
