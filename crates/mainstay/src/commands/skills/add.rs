//! `mainstay skills add`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_agent::skills::{SkillError, SkillFiles};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, person};

/// Copy a folder from this machine into the home's skills
///
/// It is checked first. Its scripts run only when a model asks for it, under the policy and in the
/// sandbox; read them all the same before you add them.
#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The folder; its name is the skill's
    #[arg(value_hint = ValueHint::DirPath)]
    path: PathBuf,

    /// Replace one of the same name, which goes to the trash
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(args: &AddArgs, context: &Context) -> Result<Exit, Error> {
    person::only("mainstay skills add")?;
    let settings = context.settings()?;
    let folder = args.path.canonicalize().map_err(|error| {
        Error::usage(format!("{} cannot be read: {error}", args.path.display()))
            .hint("Name the folder that holds the SKILL.md.")
    })?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tree = SkillFiles::read(&folder)?;
    engine::make_home(&settings)?;
    let shelf = super::shelf(&settings);
    let locked = shelf.lock()?;
    let before = shelf.read(&name)?.map(|before| before.hash());
    if before.is_some() && !args.replace {
        return Err(SkillError::Exists(name).into());
    }
    locked.put(&name, &tree, before.as_deref())?;
    let did = if before.is_some() { "Replaced" } else { "Added" };
    let text = format!("{did} {name}. New sessions are told of it{}\n", super::in_a_chat(&name));
    let path = settings.home.join("skills").join(&name);
    let data = json!({ "name": name, "path": path, "replaced": before.is_some() });
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
