//! `mainstay skills restore`

use clap::Args;
use mainstay_agent::skills::SkillError;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::person;

/// Bring back the skill of this name that was removed or replaced last
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// Its name
    name: String,
}

pub(super) fn run(args: &RestoreArgs, context: &Context) -> Result<Exit, Error> {
    person::only("mainstay skills restore")?;
    let settings = context.settings()?;
    let shelf = super::shelf(&settings);
    if !shelf.is_there() {
        return Err(SkillError::NotInTrash(args.name.clone()).into());
    }
    shelf.lock()?.restore(&args.name).map_err(|trouble| {
        let taken = matches!(trouble, SkillError::Exists(_));
        let error = Error::from(trouble);
        match taken {
            true => {
                error.only_hint(format!("Remove it first: `mainstay skills remove {}`", args.name))
            }
            false => error,
        }
    })?;
    let text = format!("{} is back.\n", args.name);
    context.output.answer(&json!({ "name": args.name }), &text)?;
    Ok(Exit::Done)
}
