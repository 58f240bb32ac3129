//! `mainstay config get`

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;
use toml::{Table, Value};

use crate::config::layers::{self, Origin};
use crate::config::name::Name;
use crate::config::{Config, setting_names, template};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Show the settings in effect here, and where each comes from
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// Only this setting or group: budget.turn_usd, policy
    #[arg(value_name = "KEY")]
    key: Option<String>,
}

/// A setting that holds.
struct EffectiveSetting {
    name: String,
    /// `None` if it is not set and has no default.
    value: Option<Value>,
    origin: Origin,
}

pub(crate) fn run(args: &GetArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let wanted = args.key.as_deref().map(Name::parse).transpose()?;
    let here = std::env::current_dir().ok();
    let config = Config::load(&paths, here.as_deref(), context.output)?;

    let all = effective_settings(&config);
    let chosen: Vec<EffectiveSetting> = match &wanted {
        None => all,
        Some(name) => {
            let (whole, group) = (name.to_string(), format!("{name}."));
            let is_wanted =
                |held: &EffectiveSetting| held.name == whole || held.name.starts_with(&group);
            all.into_iter().filter(is_wanted).collect()
        }
    };
    if chosen.is_empty()
        && let Some(name) = &wanted
    {
        return Err(Error::usage(format!("{name} is not set"))
            .hint(format!("Set it: `mainstay config set {name} VALUE`")));
    }
    let data: Vec<serde_json::Value> = chosen.iter().map(as_json).collect();
    context.output.answer(&data, &as_text(&chosen))?;
    Ok(Exit::Done)
}

/// Every setting that there is, those of models and providers as far as somebody speaks of them.
fn effective_settings(config: &Config) -> Vec<EffectiveSetting> {
    let defaults = template::defaults();
    let mut names: Vec<Vec<String>> =
        setting_names().iter().map(|name| name.split('.').map(str::to_owned).collect()).collect();
    let mut further = BTreeSet::new();
    for layer in config.layers() {
        for part in ["providers", "models"] {
            if let Some(Value::Table(table)) = layer.table.get(part) {
                leaves(table, &mut vec![part.to_owned()], &mut further);
            }
        }
    }
    names.extend(further);
    let one = |path: Vec<String>| {
        let said = layers::find(config.layers(), &path);
        let (value, origin) = match said {
            Some((value, origin)) => (Some(value.clone()), origin.clone()),
            None => (layers::at(&defaults, &path).cloned(), Origin::Default),
        };
        let name = Name(path);
        let value = value.map(|value| presentable(&name, value));
        EffectiveSetting { name: name.to_string(), value, origin }
    };
    names.into_iter().map(one).collect()
}

/// The paths of all values in a table.
fn leaves(table: &Table, above: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    for (key, value) in table {
        above.push(key.clone());
        match value {
            Value::Table(below) => leaves(below, above, found),
            _ => {
                // What nobody knows was warned of; it may be a key in the wrong place.
                if Name::parse(&Name(above.clone()).to_string()).is_ok() {
                    found.insert(above.clone());
                }
            }
        }
        above.pop();
    }
}

/// A value without its secrets.
fn presentable(name: &Name, value: Value) -> Value {
    if name.is_secret() {
        return Value::String("(not shown)".to_owned());
    }
    match value.as_str().and_then(|text| text.parse::<url::Url>().ok()) {
        Some(mut url) if url.password().is_some() => {
            // It fails only for addresses that cannot carry one.
            let _ = url.set_password(Some("***"));
            Value::String(url.into())
        }
        _ => value,
    }
}

fn as_json(held: &EffectiveSetting) -> serde_json::Value {
    let EffectiveSetting { name, value, origin } = held;
    json!({ "name": name, "value": value, "origin": origin })
}

fn as_text(all: &[EffectiveSetting]) -> String {
    let shown =
        |held: &EffectiveSetting| held.value.as_ref().map_or("-".to_owned(), ToString::to_string);
    let width = |words: &dyn Fn(&EffectiveSetting) -> String, most: usize| {
        all.iter().map(|held| words(held).chars().count()).max().unwrap_or(0).min(most)
    };
    let (names, values) = (width(&|held| held.name.clone(), 60), width(&shown, 40));
    let mut text = String::new();
    for held in all {
        let origin = match held.value {
            Some(_) => held.origin.to_string(),
            None => "not set".to_owned(),
        };
        text.push_str(&format!("{:<names$}  {:<values$}  {origin}\n", held.name, shown(held)));
    }
    text
}
