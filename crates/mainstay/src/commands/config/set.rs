//! `mainstay config set` and `config unset`

use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::config::edit::{self, HomeLock};
use crate::config::layers::{self, Origin};
use crate::config::name::Name;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Change a setting in config.toml, keeping comments and order
///
/// Values are written as in the file; text needs no quotes, and a list may be written with commas:
/// `config set fallback ollama/qwen3,openai/gpt-5`. Values that would not work are refused.
#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// Setting: model, budget.turn_usd, models.ollama/qwen3.window, profiles.fast.model
    #[arg(value_name = "KEY")]
    key: String,

    /// New value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
}

/// Remove a setting from config.toml, so that its default applies again
#[derive(Args, Debug)]
pub(crate) struct UnsetArgs {
    /// Setting to remove
    #[arg(value_name = "KEY")]
    key: String,
}

pub(crate) fn run(args: &SetArgs, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let name = Name::parse(&args.key)?;
    refuse_keys(&name, &args.value)?;

    let lock = HomeLock::take(&paths.home)?;
    let path = paths.home.join("config.toml");
    edit::set(&path, &[(name.clone(), edit::meanings(&args.value))])?;
    drop(lock);
    let data = json!({ "set": name.to_string(), "path": path });
    context.output.answer(&data, &format!("Set {name} in {}", path.display()))?;
    say_what_hides_it(&name, context);
    Ok(Exit::Done)
}

pub(crate) fn unset(args: &UnsetArgs, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let name = Name::parse(&args.key)?;

    let lock = HomeLock::take(&paths.home)?;
    let path = paths.home.join("config.toml");
    let was_set = edit::unset(&path, &name)?;
    drop(lock);
    let data = json!({ "unset": name.to_string(), "was_set": was_set, "path": path });
    let text = if was_set {
        format!("Unset {name} in {}", path.display())
    } else {
        format!("{name} was not set in {}", path.display())
    };
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

/// A key in place of the name of its variable would be on show in the file.
fn refuse_keys(name: &Name, value: &str) -> Result<(), Error> {
    let is_variable = |value: &str| {
        value.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && value.chars().any(|letter| letter.is_ascii_uppercase() || letter == '_')
            && value.len() < 64
    };
    match name.0.as_slice() {
        [.., provider, last] if last == "api_key_env" && !is_variable(value) => Err(Error::usage(
            format!("{name} takes the name of a variable, not a key"),
        )
        .hint(match provider.as_str() {
            "search" => "Store a key with `mainstay config key set brave`.".to_owned(),
            provider => format!("Store a key with `mainstay config key set {provider}`."),
        })),
        _ => Ok(()),
    }
}

/// Warns where something else says what the setting is here and now.
fn say_what_hides_it(name: &Name, context: &Context) {
    let Ok(paths) = context.paths() else { return };
    let here = std::env::current_dir().ok();
    let Ok(config) = Config::load(&paths, here.as_deref(), context.output) else { return };
    match layers::find(config.layers(), &name.0) {
        Some((_, Origin::Home)) | None => {}
        Some((_, origin)) => {
            context.output.warning(format!("{origin} overrides {name} here"));
        }
    }
}
