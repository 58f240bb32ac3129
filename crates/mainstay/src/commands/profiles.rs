//! `mainstay profiles`

use clap::{Args, Subcommand};
use serde_json::json;
use toml::{Table, Value};

use crate::config::edit::{self, HomeLock};
use crate::config::name::Name;
use crate::config::profiles;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// List, show and choose profiles: named sets of settings
///
/// A profile is a table [profiles.NAME] in config.toml with the same settings as the file itself,
/// and overrides it. `mainstay config set profiles.fast.model PROVIDER/MODEL` creates one;
/// --profile NAME uses it.
#[derive(Args, Debug)]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    command: Option<ProfilesCommand>,
}

#[derive(Debug, Subcommand)]
enum ProfilesCommand {
    /// List the profiles
    List,
    /// Show the settings of a profile
    Show {
        /// Name of the profile
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make a profile the default
    Use {
        /// Name of the profile
        #[arg(value_name = "NAME", required_unless_present = "none")]
        name: Option<String>,

        /// Use no profile by default
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
}

pub(crate) fn run(args: &ProfilesArgs, context: &Context) -> Result<Exit, Error> {
    match args.command.as_ref().unwrap_or(&ProfilesCommand::List) {
        ProfilesCommand::List => list(context),
        ProfilesCommand::Show { name } => show(name, context),
        ProfilesCommand::Use { name, .. } => choose(name.as_deref(), context),
    }
}

fn list(context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let (profiles, by_file) = profiles(&paths.home)?;
    let by_file = by_file.map(|name| (name, "config.toml"));
    let chosen = paths.profile.clone().or(by_file);
    let width = profiles.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut data = Vec::new();
    for (name, table) in &profiles {
        let holds = chosen.as_ref().filter(|(chosen, _)| chosen == name).map(|(_, by)| *by);
        let model = table.as_table().and_then(|table| table.get("model")).and_then(Value::as_str);
        let mark = if holds.is_some() { "*" } else { " " };
        let by = holds.map(|by| format!("  (from {by})")).unwrap_or_default();
        let line = format!("{mark} {name:<width$}  {}{by}", model.unwrap_or("-"));
        text.push_str(&format!("{}\n", line.trim_end()));
        data.push(json!({ "name": name, "model": model, "holds": holds.is_some(), "by": holds }));
    }
    if profiles.is_empty() {
        let make = paths.command("config set profiles.NAME.model PROVIDER/MODEL");
        text = format!("No profiles. Create one: {make}\n");
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

fn show(name: &str, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let (profiles, _) = profiles(&paths.home)?;
    let table = profiles.get(name).and_then(Value::as_table).ok_or_else(|| unknown(name))?;
    let mut lines = Vec::new();
    flatten(table, &mut Vec::new(), &mut lines);
    let data: Table = lines.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let text: String = lines.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    context.output.answer(&json!({ "name": name, "settings": data }), &text)?;
    Ok(Exit::Done)
}

fn choose(name: Option<&str>, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let path = paths.home.join("config.toml");
    let profile = Name(vec!["profile".to_owned()]);
    let lock = HomeLock::take(&paths.home)?;
    let text = match name {
        Some(name) => {
            if !profiles(&paths.home)?.0.contains_key(name) {
                return Err(unknown(name));
            }
            edit::set(&path, &[(profile, vec![name.into()])])?;
            format!(
                "Now using profile {name} by default; go back with `{}`",
                paths.command("profiles use --none")
            )
        }
        None => {
            edit::unset(&path, &profile)?;
            "Now using no profile by default".to_owned()
        }
    };
    drop(lock);
    context.output.answer(&json!({ "profile": name }), &text)?;
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Error {
    Error::usage(format!("unknown profile {name:?}")).hint("List the profiles: `mainstay profiles`")
}

/// All settings of a table, by their names.
fn flatten(table: &Table, above: &mut Vec<String>, found: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        above.push(key.clone());
        match value {
            Value::Table(below) => flatten(below, above, found),
            value => {
                let name = Name(above.clone());
                let shown = if name.is_secret() { "(not shown)".into() } else { value.clone() };
                found.push((name.to_string(), shown));
            }
        }
        above.pop();
    }
}
