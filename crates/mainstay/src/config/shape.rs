//! What the files may say. A part that has a file of its own is described there, with its settings in a
//! new `config.toml` and what the engine is told of it.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use toml::{Table, Value};

use super::budget::Budget;
use super::compaction::Compaction;
use super::known_keys::Keys;
use super::limits::Limits;
use super::memory::Memory;
use super::policy::Policy;
use super::sandbox::Sandbox;
use super::skills::Skills;
use super::web::{Fetch, Search};

/// `config.toml` in the home.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    /// Which of `profiles` holds where nobody asks for another.
    pub(super) profile: Option<String>,
    /// Sets of settings, each over what this file says besides.
    pub(super) profiles: BTreeMap<String, Table>,
    pub(super) model: Option<String>,
    /// `plan`, `auto`, `ask` or `yes`.
    pub(super) mode: Option<String>,
    pub(super) fallback: Vec<String>,
    pub(super) max_output: Option<u32>,
    pub(super) temperature: Option<f32>,
    pub(super) effort: Option<String>,
    pub(super) providers: BTreeMap<String, Provider>,
    pub(super) models: BTreeMap<String, Model>,
    pub(super) budget: Budget,
    pub(super) policy: Policy,
    pub(super) keeper: Keeper,
    pub(super) limits: Limits,
    pub(super) shell: Shell,
    pub(super) sandbox: Sandbox,
    pub(super) skills: Skills,
    pub(super) delegate: Delegate,
    pub(super) compaction: Compaction,
    pub(super) fetch: Fetch,
    pub(super) search: Search,
    pub(super) memory: Memory,
    /// Their shape is the engine's to know.
    pub(super) hooks: serde_json::Value,
}

/// A provider: what is left out comes from the known one of the same name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Provider {
    pub(super) api: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) api_key_command: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
}

/// What is known of a model, by `provider/model`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    pub(super) window: Option<u64>,
    pub(super) max_output: Option<u32>,
    /// Dollars for a million tokens.
    pub(super) input: Option<f64>,
    pub(super) cached: Option<f64>,
    pub(super) cache_written: Option<f64>,
    pub(super) output: Option<f64>,
}

/// The keeper of processes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Keeper {
    pub(super) grace: Option<Time>,
}

/// The settings of the keeper in a new file.
pub(super) const KEEPER: &str = r#"
# How long commands keep running after their agent died, so that the work can be resumed.
[keeper]
#grace = "30s"
"#;

/// What commands are given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shell {
    pub(super) pass_environment: Vec<String>,
}

/// The settings of commands in a new file.
pub(super) const SHELL: &str = "
# Additional environment variables for commands.
[shell]
#pass_environment = []
";

/// Child sessions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delegate {
    pub(super) at_once: Option<usize>,
}

/// The settings of child sessions in a new file.
pub(super) const DELEGATE: &str = "
# Helpers that the model delegates tasks to.
[delegate]
# How many may work side by side.
#at_once = 4
";

/// A time: a number of seconds, or words such as `500ms`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Time {
    Whole(u32),
    Fraction(f64),
    Words(String),
}

impl Time {
    /// The time, if it is one.
    pub(super) fn duration(&self) -> Option<Duration> {
        match self {
            Time::Whole(seconds) => Some(Duration::from_secs((*seconds).into())),
            Time::Fraction(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Time::Words(words) => super::duration(words),
        }
    }
}

/// `.mainstay.toml` in a workspace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkspaceFile {
    model: Option<String>,
    max_output: Option<u32>,
    temperature: Option<f32>,
    effort: Option<String>,
}

impl WorkspaceFile {
    /// What a workspace may say, of what it says.
    pub(super) fn allowed(table: Table) -> Table {
        table.into_iter().filter(|(key, _)| WORKSPACE.below(key).is_some()).collect()
    }
}

/// A file whose keys are known.
pub(super) trait KnownKeys {
    /// Warnings on keys that nobody knows, each with the nearest name.
    fn unknown_keys(table: &Table) -> Vec<String>;
}

/// The keys of the home's file.
static FILE: LazyLock<Keys> = LazyLock::new(Keys::of::<File>);
/// The keys that a workspace may set.
static WORKSPACE: LazyLock<Keys> = LazyLock::new(Keys::of::<WorkspaceFile>);

/// The names of all settings but those below `providers`, `models`, `profiles`, `hooks` and
/// `memory.providers`.
pub(super) fn names() -> Vec<String> {
    let mut names = FILE.settings();
    names.retain(|name| name != "hooks");
    names
}

/// What a model is known by.
pub(super) fn model_keys() -> Vec<&'static str> {
    let models = FILE.below("models").and_then(|models| models.below(""));
    models.map(Keys::names).unwrap_or_default()
}

impl KnownKeys for File {
    fn unknown_keys(table: &Table) -> Vec<String> {
        let mut found = Vec::new();
        for (name, profile) in table.get("profiles").and_then(Value::as_table).into_iter().flatten()
        {
            let Some(profile) = profile.as_table() else { continue };
            let within = |problem: String| format!("profiles.{name}: {problem}");
            found.extend(Self::unknown_keys(profile).into_iter().map(within));
            for key in ["profile", "profiles"].iter().filter(|key| profile.contains_key(**key)) {
                found.push(within(format!("`{key}` cannot be set in a profile")));
            }
        }
        FILE.check(table, "", &mut |key, path, known| found.push(unknown_key(key, path, known)));
        found
    }
}

impl KnownKeys for WorkspaceFile {
    fn unknown_keys(table: &Table) -> Vec<String> {
        let allowed = WORKSPACE.names();
        let (ours, others): (Vec<&String>, Vec<&String>) =
            table.keys().partition(|key| FILE.below(key).is_some());
        let forbidden = ours.into_iter().filter(|key| !allowed.contains(&key.as_str()));
        let mut found: Vec<String> = forbidden
            .map(|key| format!("a workspace cannot set `{key}`; set it in config.toml in the home"))
            .collect();
        found.extend(others.into_iter().map(|key| unknown_key(key, "", &allowed)));
        found
    }
}

fn unknown_key(key: &str, part: &str, known: &[&str]) -> String {
    let whole = if part.is_empty() { key.to_owned() } else { format!("{part}.{key}") };
    match nearest(key, known) {
        Some(name) => format!("unknown setting `{whole}`; did you mean `{name}`?"),
        None => format!("unknown setting `{whole}`"),
    }
}

/// The name that was meant, most likely: two letters that changed places are more likely than one that
/// is too much.
pub(super) fn nearest<'n>(typed: &str, known: &[&'n str]) -> Option<&'n str> {
    let rated = known.iter().map(|name| {
        let distance = strsim::osa_distance(typed, name);
        (distance, typed.len().abs_diff(name.len()), *name)
    });
    rated.min().filter(|(distance, ..)| *distance <= typed.len() / 2).map(|(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_told_with_the_nearest_name() {
        let text =
            "modle = 'x'\n[providers.local]\nbase_ulr = 'y'\n[keeper]\ngrace = 3\nzzzzzzzz = 1";
        let table: Table = toml::from_str(text).unwrap();
        assert_eq!(
            File::unknown_keys(&table),
            [
                "unknown setting `modle`; did you mean `model`?",
                "unknown setting `keeper.zzzzzzzz`",
                "unknown setting `providers.local.base_ulr`; did you mean `base_url`?",
            ]
        );
    }

    #[test]
    fn every_setting_is_found_in_the_structs() {
        let names = names();
        for name in ["model", "budget.day_calls", "memory.half_life", "search.api_key_command"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        let is_open = |name: &String| {
            ["providers", "models", "profiles", "hooks", "memory.providers"]
                .contains(&name.as_str())
        };
        assert!(!names.iter().any(is_open), "{names:?}");
        assert_eq!(model_keys().len(), 6);
        let provider: Table = toml::from_str("[[memory.providers]]\nnmae = 'x'").unwrap();
        assert_eq!(
            File::unknown_keys(&provider),
            ["unknown setting `memory.providers.nmae`; did you mean `name`?"]
        );
    }

    #[test]
    fn a_workspace_changes_the_model_and_neither_keys_nor_policy() {
        let text = "model = 'b/y'\nprofile = 'wild'\n[policy]\nexecute = 'allow'\n[providers.b]\n\
                    base_url = 'http://evil'";
        let table: Table = toml::from_str(text).unwrap();
        let allowed = WorkspaceFile::allowed(table.clone());
        assert_eq!(allowed.keys().collect::<Vec<_>>(), ["model"]);
        let told = WorkspaceFile::unknown_keys(&table);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("a workspace cannot set `policy`"), "{told:?}");
    }
}
