//! What the files may say.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::{Table, Value};

use super::memory_providers::{KEYS, MemoryProvider};

/// `config.toml` in the home.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    /// Which of `profiles` holds where nobody asks for another.
    pub(super) profile: Option<String>,
    /// Sets of settings, each over what this file says besides.
    pub(super) profiles: BTreeMap<String, Table>,
    pub(super) model: Option<String>,
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

/// What may be spent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Budget {
    pub(super) turn_usd: Option<f64>,
    pub(super) turn_tokens: Option<i64>,
    pub(super) turn_calls: Option<i64>,
    pub(super) turn_time: Option<Time>,
    pub(super) session_usd: Option<f64>,
    pub(super) day_usd: Option<f64>,
    pub(super) day_calls: Option<i64>,
}

/// What may be done without asking: `allow`, `ask` or `deny`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Policy {
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
    pub(super) write_outside: Option<String>,
    pub(super) execute: Option<String>,
    pub(super) network: Option<String>,
    pub(super) persist: Option<String>,
    pub(super) destructive: Option<String>,
    pub(super) tainted: Option<String>,
    /// How long a request waits for a decision.
    pub(super) request_time: Option<Time>,
}

/// The keeper of processes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Keeper {
    pub(super) grace: Option<Time>,
}

/// How long models are waited for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Limits {
    pub(super) connect: Option<Time>,
    pub(super) first_byte: Option<Time>,
    pub(super) idle: Option<Time>,
    pub(super) chain: Option<Time>,
    pub(super) retry_after: Option<Time>,
    pub(super) attempts: Option<u32>,
    pub(super) repeats: Option<u32>,
}

/// What commands are given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shell {
    pub(super) pass_environment: Vec<String>,
}

/// What commands and file tools are confined to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sandbox {
    /// `on`, `require` or `off`.
    pub(super) mode: Option<String>,
    pub(super) write: Vec<String>,
    pub(super) hide: Vec<String>,
    pub(super) show: Vec<String>,
    pub(super) network: Option<bool>,
}

/// Where skills are looked for besides the home and the workspace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Skills {
    pub(super) paths: Vec<String>,
}

/// Child sessions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delegate {
    pub(super) at_once: Option<usize>,
}

/// How conversations are compacted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Compaction {
    /// A share of the window.
    pub(super) at: Option<f64>,
    /// `abort` or `local`.
    pub(super) on_failure: Option<String>,
    pub(super) model: Option<String>,
    pub(super) timeout: Option<Time>,
}

/// What is fetched from the web.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fetch {
    pub(super) allow_private: Vec<String>,
}

/// Who searches the web.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    pub(super) searxng: Option<String>,
    pub(super) service: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) api_key_command: Option<String>,
}

/// What is remembered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// Whether a turn begins with what bears on it.
    pub(super) recall: Option<bool>,
    /// How many memories that brings at most.
    pub(super) limit: Option<usize>,
    /// What a memory must score for it, from 0 to 1.
    pub(super) least_score: Option<f64>,
    /// After this time a fact counts half.
    pub(super) half_life: Option<Time>,
    /// Characters of notes about the user, and about a workspace.
    pub(super) user_limit: Option<usize>,
    pub(super) workspace_limit: Option<usize>,
    /// Who has memories besides the store.
    pub(super) providers: Vec<MemoryProvider>,
}

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
        table.into_iter().filter(|(key, _)| WORKSPACE.contains(&key.as_str())).collect()
    }
}

/// A file whose keys are known.
pub(super) trait Known {
    /// Warnings on keys that nobody knows, each with the nearest name.
    fn strangers(table: &Table) -> Vec<String>;
}

/// The keys of each part of the home's file; an empty name stands for the top.
const PARTS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "profile",
            "profiles",
            "model",
            "fallback",
            "max_output",
            "temperature",
            "effort",
            "providers",
            "models",
            "budget",
            "policy",
            "keeper",
            "limits",
            "shell",
            "sandbox",
            "skills",
            "delegate",
            "compaction",
            "fetch",
            "search",
            "memory",
            "hooks",
        ],
    ),
    (
        "budget",
        &[
            "turn_usd",
            "turn_tokens",
            "turn_calls",
            "turn_time",
            "session_usd",
            "day_usd",
            "day_calls",
        ],
    ),
    (
        "policy",
        &[
            "read",
            "write",
            "write_outside",
            "execute",
            "network",
            "persist",
            "destructive",
            "tainted",
            "request_time",
        ],
    ),
    ("keeper", &["grace"]),
    ("limits", &["connect", "first_byte", "idle", "chain", "retry_after", "attempts", "repeats"]),
    ("shell", &["pass_environment"]),
    ("sandbox", &["mode", "write", "hide", "show", "network"]),
    ("skills", &["paths"]),
    ("delegate", &["at_once"]),
    ("compaction", &["at", "on_failure", "model", "timeout"]),
    ("fetch", &["allow_private"]),
    (
        "memory",
        &[
            "recall",
            "limit",
            "least_score",
            "half_life",
            "user_limit",
            "workspace_limit",
            "providers",
        ],
    ),
    ("search", &["searxng", "service", "base_url", "api_key_env", "api_key_command"]),
];
/// The keys of each table below `providers` and `models`.
const PROVIDER: &[&str] = &["api", "base_url", "api_key_env", "api_key_command", "headers"];
const MODEL: &[&str] = &["window", "max_output", "input", "cached", "cache_written", "output"];
const WORKSPACE: &[&str] = &["model", "max_output", "temperature", "effort"];

/// The names of all settings but those below `providers`, `models`, `profiles`, `hooks` and
/// `memory.providers`.
pub(super) fn names() -> Vec<String> {
    let groups = PARTS.iter().map(|(part, _)| *part).collect::<Vec<_>>();
    let named = PARTS.iter().flat_map(|(part, keys)| {
        keys.iter().map(move |key| match *part {
            "" => (*key).to_owned(),
            part => format!("{part}.{key}"),
        })
    });
    let tables = ["providers", "models", "profiles", "hooks", "memory.providers"];
    named
        .filter(|name| !groups.contains(&name.as_str()) && !tables.contains(&name.as_str()))
        .collect()
}

/// What a model is known by.
pub(super) const fn model_keys() -> &'static [&'static str] {
    MODEL
}

impl Known for File {
    fn strangers(table: &Table) -> Vec<String> {
        let mut found = Vec::new();
        for (name, profile) in table.get("profiles").and_then(Value::as_table).into_iter().flatten()
        {
            let Some(profile) = profile.as_table() else { continue };
            let within = |stranger: String| format!("profiles.{name}: {stranger}");
            found.extend(Self::strangers(profile).into_iter().map(within));
            for key in ["profile", "profiles"].iter().filter(|key| profile.contains_key(**key)) {
                found.push(within(format!("`{key}` has no place in a profile; it is ignored")));
            }
        }
        for (part, known) in PARTS {
            let table = match *part {
                "" => Some(table),
                part => table.get(part).and_then(Value::as_table),
            };
            found.extend(table.into_iter().flat_map(|table| unknown(table, part, known)));
        }
        for (part, known) in [("providers", PROVIDER), ("models", MODEL)] {
            for (name, value) in table.get(part).and_then(Value::as_table).into_iter().flatten() {
                let within = format!("{part}.{name}");
                let table = value.as_table();
                found.extend(table.into_iter().flat_map(|table| unknown(table, &within, known)));
            }
        }
        let memory = table.get("memory").and_then(|memory| memory.get("providers"));
        for provider in memory.and_then(Value::as_array).into_iter().flatten() {
            let table = provider.as_table().into_iter();
            found.extend(table.flat_map(|table| unknown(table, "memory.providers", KEYS)));
        }
        found
    }
}

impl Known for WorkspaceFile {
    fn strangers(table: &Table) -> Vec<String> {
        let (ours, others): (Vec<&String>, Vec<&String>) =
            table.keys().partition(|key| PARTS[0].1.contains(&key.as_str()));
        let forbidden = ours.into_iter().filter(|key| !WORKSPACE.contains(&key.as_str()));
        let mut found: Vec<String> = forbidden
            .map(|key| {
                format!("a workspace cannot set `{key}`; it belongs into config.toml in the home")
            })
            .collect();
        found.extend(others.into_iter().map(|key| stranger(key, "", WORKSPACE)));
        found
    }
}

fn unknown(table: &Table, part: &str, known: &'static [&'static str]) -> Vec<String> {
    let strangers = table.keys().filter(|key| !known.contains(&key.as_str()));
    strangers.map(|key| stranger(key, part, known)).collect()
}

fn stranger(key: &str, part: &str, known: &[&str]) -> String {
    let whole = if part.is_empty() { key.to_owned() } else { format!("{part}.{key}") };
    match nearest(key, known) {
        Some(name) => format!("there is no `{whole}`; did you mean `{name}`?"),
        None => format!("there is no `{whole}`; it is ignored"),
    }
}

/// The name that was meant, most likely.
pub(super) fn nearest<'n>(typed: &str, known: &[&'n str]) -> Option<&'n str> {
    let nearest = known.iter().map(|name| (distance(typed, name), *name)).min();
    nearest.filter(|(distance, _)| *distance <= typed.len() / 2).map(|(_, name)| name)
}

/// How many letters have to be changed to make one word of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (place, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
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
            File::strangers(&table),
            [
                "there is no `modle`; did you mean `model`?",
                "there is no `keeper.zzzzzzzz`; it is ignored",
                "there is no `providers.local.base_ulr`; did you mean `base_url`?",
            ]
        );
    }

    #[test]
    fn a_workspace_changes_the_model_and_neither_keys_nor_policy() {
        let text = "model = 'b/y'\nprofile = 'wild'\n[policy]\nexecute = 'allow'\n[providers.b]\n\
                    base_url = 'http://evil'";
        let table: Table = toml::from_str(text).unwrap();
        let allowed = WorkspaceFile::allowed(table.clone());
        assert_eq!(allowed.keys().collect::<Vec<_>>(), ["model"]);
        let told = WorkspaceFile::strangers(&table);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("a workspace cannot set `policy`"), "{told:?}");
    }
}
