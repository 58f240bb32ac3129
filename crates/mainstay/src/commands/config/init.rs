//! `mainstay config init`

use clap::Args;
use serde_json::json;

use crate::config::edit::{self, HomeLock};
use crate::config::template::TEMPLATE;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::first_run;

/// Create a config.toml that lists every setting
///
/// On a terminal, you first choose a model from those that run on this machine or that you have a
/// key for. An existing file is left alone.
#[derive(Args, Debug)]
pub(crate) struct InitArgs {}

pub(crate) fn run(_args: &InitArgs, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let path = paths.home.join("config.toml");
    if path.exists() {
        return Err(Error::usage(format!("{} already exists", path.display()))
            .hint("Show its settings: `mainstay config get`"));
    }
    let chosen = first_run::choose_for_init(context, &paths)?;
    if chosen.is_none() {
        let _lock = HomeLock::take(&paths.home)?;
        if !path.exists() {
            edit::write(&path, &TEMPLATE)?;
        }
    }
    let data = json!({ "path": path, "model": chosen });
    context.output.answer(&data, &format!("Wrote {}", path.display()))?;
    Ok(Exit::Done)
}
