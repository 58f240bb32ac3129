//! Where a setting comes from: each source is a table, and a later one wins.

use std::fmt;

use serde::Serialize;
use toml::{Table, Value};

/// Where the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from", content = "name")]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// `config.toml` in the home.
    Home,
    /// A profile in it.
    Profile(String),
    /// `.mainstay.toml` in the workspace.
    Workspace,
    /// A variable.
    Environment(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Home => f.write_str("config.toml"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::Workspace => f.write_str(".mainstay.toml"),
            Self::Environment(name) => f.write_str(name),
        }
    }
}

/// What one source says.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) origin: Origin,
    pub(crate) table: Table,
}

/// All of them as one table.
pub(super) fn merged(layers: &[Layer]) -> Table {
    let mut whole = Table::new();
    for layer in layers {
        put_over(&mut whole, &layer.table);
    }
    whole
}

/// The value that holds, and where it comes from.
pub(crate) fn find<'l>(layers: &'l [Layer], path: &[String]) -> Option<(&'l Value, &'l Origin)> {
    let found = |layer: &'l Layer| Some((at(&layer.table, path)?, &layer.origin));
    layers.iter().rev().find_map(found)
}

/// The value at a path.
pub(crate) fn at<'t>(table: &'t Table, path: &[String]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(first)?;
    if rest.is_empty() { Some(value) } else { at(value.as_table()?, rest) }
}

/// Tables are joined; anything else is replaced.
fn put_over(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => put_over(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_source_wins_where_it_says_something() {
        let layer = |origin, text: &str| Layer { origin, table: toml::from_str(text).unwrap() };
        let layers = [
            layer(
                Origin::Home,
                "model = 'a/x'\nfallback = ['b/y']\n[budget]\nturn_usd = 1.0\nday_usd = 2.0",
            ),
            layer(Origin::Profile("p".into()), "fallback = []\n[budget]\nturn_usd = 3.0"),
        ];
        let whole = merged(&layers);
        let told = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(at(&whole, &path), find(&layers, &path).map(|(value, _)| value));
            find(&layers, &path).map(|(value, origin)| format!("{value} {origin}"))
        };
        assert_eq!(told(&["model"]).as_deref(), Some("\"a/x\" config.toml"));
        assert_eq!(told(&["fallback"]).as_deref(), Some("[] profile p"));
        assert_eq!(told(&["budget", "turn_usd"]).as_deref(), Some("3.0 profile p"));
        assert_eq!(told(&["budget", "day_usd"]).as_deref(), Some("2.0 config.toml"));
        assert_eq!(told(&["budget", "turn_time"]), None);
    }
}
