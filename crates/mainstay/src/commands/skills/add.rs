//! `mainstay skills add`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_agent::skills::{SkillError, SkillFiles};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, humans_only};

/// Copy a folder into the home's skills
///
/// The folder is checked first. Its scripts run only when a model asks for them, under the policy
/// and in the sandbox; read them before you add them all the same.
#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// Folder to copy; its name is the skill's name
    #[arg(value_hint = ValueHint::DirPath)]
    path: PathBuf,

    /// Replace a skill of the same name, which goes to the trash
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(args: &AddArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay skills add")?;
    let paths = context.paths()?;
    let folder = args.path.canonicalize().map_err(|error| {
        Error::usage(format!("could not read {}: {error}", args.path.display()))
            .hint("Pass the folder that holds the SKILL.md.")
    })?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tree = SkillFiles::read(&folder)?;
    engine::make_home(&paths)?;
    let shelf = super::shelf(&paths);
    let locked = shelf.lock()?;
    let before = shelf.read(&name)?.map(|before| before.hash());
    if before.is_some() && !args.replace {
        return Err(SkillError::Exists(name).into());
    }
    locked.put(&name, &tree, before.as_deref())?;
    let did = if before.is_some() { "Replaced" } else { "Added" };
    let text = format!("{did} {name}. New sessions know it{}\n", super::in_a_chat(&name));
    let path = paths.home.join("skills").join(&name);
    let data = json!({ "name": name, "path": path, "replaced": before.is_some() });
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
