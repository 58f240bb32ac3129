//! `mainstay config`

mod get;
mod init;
mod key;
mod set;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Show and change settings
///
/// Settings are kept in config.toml in the home; `.mainstay.toml` in a workspace may set some of
/// them. Options and environment variables override both.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    Get(get::GetArgs),
    Set(set::SetArgs),
    Unset(set::UnsetArgs),
    Path(PathArgs),
    Init(init::InitArgs),
    #[command(subcommand)]
    Key(key::KeyCommand),
}

/// Print the path of config.toml, whether it exists or not
#[derive(Args, Debug)]
pub(crate) struct PathArgs {}

pub(crate) fn run(command: &ConfigCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        ConfigCommand::Get(args) => get::run(args, context),
        ConfigCommand::Set(args) => set::run(args, context),
        ConfigCommand::Unset(args) => set::unset(args, context),
        ConfigCommand::Path(_) => path(context),
        ConfigCommand::Init(args) => init::run(args, context),
        ConfigCommand::Key(command) => key::run(command, context),
    }
}

fn path(context: &Context) -> Result<Exit, Error> {
    let path = context.paths()?.home.join("config.toml");
    let data = json!({ "path": path, "exists": path.exists() });
    context.output.answer(&data, &path.display().to_string())?;
    Ok(Exit::Done)
}
