//! The configuration: `config.toml` in the home, `.mainstay.toml` in the workspace, variables, flags.
//!
//! What a workspace brings may not say where keys come from, where requests go, or what may be done
//! without asking: it is written by whoever wrote the project.

mod budget;
mod build;
mod compaction;
pub(crate) mod edit;
mod hooks;
pub(crate) mod kept;
mod keys;
mod known_keys;
pub(crate) mod layers;
mod limits;
mod memory;
pub(crate) mod memory_providers;
pub(crate) mod mode;
pub(crate) mod name;
mod policy;
mod sandbox;
mod shape;
mod skills;
pub(crate) mod template;
#[cfg(test)]
mod tests;
mod web;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use build::{Overrides, ProfileChoice, agent_settings};
use futures_util::FutureExt;
use layers::{Layer, Origin};
use mainstay_agent::Hooks;
use mainstay_journal::turn::Mode;
use mainstay_llm::{Candidate, Provider, known};
pub(crate) use memory::memory_settings;
use memory_providers::MemoryProvider;
use shape::{File, WorkspaceFile};
use toml::{Table, Value};

use crate::error::Error;
use crate::output::Output;
use crate::paths::Paths;
use crate::{env, redaction};

/// What the files say.
#[derive(Debug, Default)]
pub(crate) struct Config {
    file: File,
    /// Where it was read from, for messages.
    path: PathBuf,
    home: PathBuf,
    /// Who said what; what comes later holds.
    layers: Vec<Layer>,
    /// The profile that holds, and by what it was chosen.
    profile: Option<(String, String)>,
    /// Commands of the user that are run at fixed points of a turn.
    hooks: Arc<Hooks>,
}

/// What is known of a provider's key without asking for it.
#[derive(Debug)]
pub(crate) enum KeyFound {
    /// It comes from there.
    At(String),
    /// The provider answers without one.
    NotNeeded,
    /// It should come from there, and does not.
    Missing(String),
}

/// The longest configuration that is read.
const LONGEST: u64 = 1 << 20;

impl Config {
    /// Reads the home's file, the profile that was chosen, and what the workspace wants. Keys that
    /// nobody knows are warnings.
    ///
    /// A profile that config.toml chooses is part of what the home says, and a workspace's model
    /// comes before it; one that is asked for here and now comes before the workspace's wishes.
    pub(crate) fn load(
        paths: &Paths,
        workspace: Option<&Path>,
        output: Output,
    ) -> Result<Self, Error> {
        Self::load_with(paths, &ProfileChoice::Configured, workspace, output)
    }

    /// The same with the profile of a turn that is taken up. Where config.toml chooses the same one,
    /// it counts as chosen there.
    pub(crate) fn load_with(
        paths: &Paths,
        choice: &ProfileChoice,
        workspace: Option<&Path>,
        output: Output,
    ) -> Result<Self, Error> {
        let path = paths.home.join("config.toml");
        let mut config = Self { path, home: paths.home.clone(), ..Self::default() };
        let mut base = read::<File>(&config.path, output)?.unwrap_or_default();
        let profiles = match base.remove("profiles") {
            Some(Value::Table(profiles)) => profiles,
            _ => Table::new(),
        };
        let by_file = || {
            let name = base.get("profile").and_then(Value::as_str)?;
            Some((name.to_owned(), "config.toml".to_owned()))
        };
        let here_and_now = || paths.profile.clone().map(|(name, by)| (name, by.to_owned()));
        let (asked_for, by_file) = match choice {
            ProfileChoice::Configured => (here_and_now(), by_file()),
            ProfileChoice::OfTurn(None) => (None, None),
            ProfileChoice::OfTurn(Some(name)) => match by_file() {
                Some(same) if same.0 == *name => (None, Some(same)),
                _ => (Some((name.clone(), "the turn".to_owned())), None),
            },
        };
        let is_asked_for = asked_for.is_some();
        config.profile = asked_for.or(by_file);
        let profile = match &config.profile {
            None => None,
            Some((name, by)) => Some(config.profile_layer(&profiles, name, by)?),
        };
        config.layers.push(Layer { origin: Origin::Home, table: base });
        config.layers.extend(profile.clone().filter(|_| !is_asked_for));
        if let Some(workspace) = workspace
            && let Some(wishes) = read::<WorkspaceFile>(&workspace.join(".mainstay.toml"), output)?
        {
            let table = WorkspaceFile::allowed(wishes);
            config.layers.push(Layer { origin: Origin::Workspace, table });
        }
        config.layers.extend(profile.filter(|_| is_asked_for));
        config.layers.extend(environment());
        config.file = typed(layers::merged(&config.layers)).map_err(|error| config.wrong(error))?;
        config.make_secrets_known();
        config.hooks = Arc::new(hooks::read(&config.home, &config.file.hooks, output)?);
        Ok(config)
    }

    /// What is done without asking where nobody says anything else, and why it is not `auto` if the
    /// kernel is the reason.
    pub(crate) fn usual_mode(&self) -> Result<(Mode, Option<String>), Error> {
        let wishes = sandbox::wishes(self)?;
        let mode = mode::mode(self, &Overrides::default(), &wishes)?;
        let because = match (mode, self.file.mode.as_deref()) {
            (Mode::Ask, None | Some("auto")) => mode::unheld(&wishes),
            _ => None,
        };
        Ok((mode, because))
    }

    /// Who said what; what comes later holds.
    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Where the home's file is, or would be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where everything is kept.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The profile that holds, and by what it was chosen.
    pub(crate) fn profile(&self) -> Option<(&str, &str)> {
        self.profile.as_ref().map(|(name, by)| (name.as_str(), by.as_str()))
    }

    /// The model that would be asked, and those after it.
    pub(crate) fn models(&self) -> Vec<&str> {
        let first = self.file.model.as_deref();
        let others = self.file.fallback.iter().map(String::as_str);
        first.into_iter().chain(others.filter(|name| Some(*name) != first)).collect()
    }

    /// A model with everything that is known of it.
    pub(crate) fn candidate(&self, name: &str) -> Result<Candidate, Error> {
        build::candidate(self, name)
    }

    /// A provider by its name.
    pub(crate) fn provider(&self, name: &str) -> Result<Provider, Error> {
        build::provider(self, name)
    }

    /// Whether there is a provider for a model of this name.
    pub(crate) fn knows_provider_of(&self, model: &str) -> bool {
        let provider = model.split_once('/').map_or(model, |(provider, _)| provider);
        known(provider).is_some() || self.file.providers.contains_key(provider)
    }

    /// Whether there is a key for a provider. Commands that print one are not run.
    pub(crate) fn key_of(&self, provider: &str) -> Result<KeyFound, Error> {
        let key = self.provider(provider)?.key;
        let said = self.file.providers.get(provider);
        if said.is_some_and(|said| said.api_key_command.is_some()) {
            return Ok(KeyFound::At(key.describe()));
        }
        // What is no command answers at once.
        Ok(match key.get().now_or_never() {
            Some(Ok(None)) => KeyFound::NotNeeded,
            Some(Err(_)) => KeyFound::Missing(key.describe()),
            Some(Ok(Some(_))) | None => KeyFound::At(key.describe()),
        })
    }

    /// The providers that a person chose: by a model, by a table of their own, or by giving a key
    /// for them. Nobody else is ever contacted.
    pub(crate) fn chosen_providers(&self) -> Result<Vec<String>, Error> {
        let by_model = self.models().into_iter().filter_map(|name| Some(name.split_once('/')?.0));
        let mut names: Vec<String> = by_model.map(str::to_owned).collect();
        names.extend(self.file.providers.keys().cloned());
        let kept = kept::read(&self.home)?;
        // A key for something else, such as a search service, makes no provider of it.
        names.extend(kept.into_keys().filter(|name| known(name).is_some()));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    /// Makes every secret value known that can be without running anything: kept keys, variables that
    /// providers and services use, headers, and passwords in addresses. What a command prints is made
    /// known when it does.
    fn make_secrets_known(&self) {
        for (name, key) in kept::read(&self.home).unwrap_or_default() {
            redaction::add(&format!("key of {name}"), key.expose());
        }
        let said = self.file.providers.values().filter_map(|provider| provider.api_key_env.clone());
        let usual = mainstay_llm::KNOWN.iter().filter_map(|name| known(name)?.key_variable);
        let search = self.file.search.api_key_env.clone().into_iter();
        let services = web::KEY_VARIABLES.iter().map(|name| (*name).to_owned());
        for variable in said.chain(usual.map(str::to_owned)).chain(search).chain(services) {
            if let Some(value) = env::named_by_configuration(&variable) {
                redaction::add(&variable, &value.to_string_lossy());
            }
        }
        for (name, provider) in &self.file.providers {
            for (header, value) in &provider.headers {
                redaction::add_header(name, header, value);
            }
            if let Some(password) = provider.base_url.as_deref().and_then(redaction::password_in) {
                redaction::add(&format!("password of {name}"), password);
            }
        }
        self.file.memory.providers.iter().for_each(MemoryProvider::make_secrets_known);
    }

    fn profile_layer(&self, profiles: &Table, name: &str, by: &str) -> Result<Layer, Error> {
        let Some(Value::Table(table)) = profiles.get(name) else {
            let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
            let said = format!("unknown profile {name:?}, chosen by {by}");
            let error = Error::configuration(said);
            return Err(match shape::nearest(name, &known) {
                Some(nearest) => error.hint(format!("Did you mean {nearest:?}?")),
                None if known.is_empty() => error.hint(format!(
                    "Create it: `mainstay config set profiles.{name}.model PROVIDER/MODEL`"
                )),
                None => error.hint("List the profiles: `mainstay profiles`"),
            });
        };
        let mut table = table.clone();
        table.remove("profile");
        table.remove("profiles");
        typed::<File>(table.clone())
            .map_err(|error| self.wrong(format!("profiles.{name}: {error}")))?;
        Ok(Layer { origin: Origin::Profile(name.to_owned()), table })
    }

    /// How long a keeper waits for a new agent after its own died.
    pub(crate) fn keeper_grace(&self) -> Result<Duration, Error> {
        if let Some(text) = env::MAINSTAY_KEEPER_GRACE.get() {
            let text = text.to_string_lossy().into_owned();
            return duration(&text).ok_or_else(|| {
                Error::configuration(format!(
                    "{} is {text:?}, which is not a valid time",
                    env::MAINSTAY_KEEPER_GRACE.name
                ))
                .hint("Write seconds, such as 30, or a time with its unit, such as 500ms or 2m.")
            });
        }
        match &self.file.keeper.grace {
            None => Ok(Duration::from_secs(30)),
            Some(grace) => grace.duration().ok_or_else(|| {
                self.wrong("keeper.grace is not a valid time")
                    .hint("Write seconds, such as 30, or a time with its unit, such as \"500ms\".")
            }),
        }
    }

    /// The models that the files name, the first one first.
    pub(crate) fn model_names(&self) -> Vec<String> {
        let File { model, fallback, models, .. } = &self.file;
        let mut names: Vec<String> = Vec::new();
        for name in model.iter().chain(fallback).chain(models.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// An error of the file.
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::configuration(format!("{}: {what}", self.path.display()))
    }
}

/// The profiles of a home, by their names, and the one that config.toml chooses.
pub(crate) fn profiles(home: &Path) -> Result<(Table, Option<String>), Error> {
    let path = home.join("config.toml");
    let text = text_of(&path)?.unwrap_or_default();
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| unusable(&path, error.message()))?;
    let chosen = table.get("profile").and_then(Value::as_str).map(str::to_owned);
    let profiles = table.get("profiles").and_then(Value::as_table).cloned();
    Ok((profiles.unwrap_or_default(), chosen))
}

/// The names of all settings but those of single providers and models.
pub(crate) fn setting_names() -> Vec<String> {
    shape::names()
}

/// What variables say.
fn environment() -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut say = |variable: &env::Variable, name: &[&str]| {
        if let Some(value) = variable.text() {
            let name = name::Name(name.iter().map(|part| (*part).to_owned()).collect());
            let origin = Origin::Environment(variable.name.to_owned());
            layers.push(Layer { origin, table: name.holding(Value::String(value)) });
        }
    };
    say(&env::MAINSTAY_MODEL, &["model"]);
    say(&env::MAINSTAY_KEEPER_GRACE, &["keeper", "grace"]);
    layers
}

/// Reads one file; a missing one says nothing.
fn read<T: serde::de::DeserializeOwned + shape::KnownKeys>(
    path: &Path,
    output: Output,
) -> Result<Option<Table>, Error> {
    let Some(text) = text_of(path)? else { return Ok(None) };
    let table: Table =
        toml::from_str(&text).map_err(|error| unusable(path, &parser_message(&error)))?;
    for key in T::unknown_keys(&table) {
        output.warning(format!("{}: {key}", path.display()));
    }
    // Read as what it means, so that a value of the wrong type is told with its line.
    toml::from_str::<T>(&text).map_err(|error| unusable(path, &parser_message(&error)))?;
    Ok(Some(table))
}

/// The text of a file of ours. Returns `None` if there is none.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, &error.to_string())),
        Ok(found) if !found.is_file() => return Err(unusable(path, "it is not a file")),
        Ok(found) if found.len() > LONGEST => {
            return Err(unusable(path, "it is larger than 1 MiB"));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, detail: &str) -> Error {
    Error::configuration(format!("could not use {}: {detail}", path.display()))
        .hint(format!("Fix or rename it: {}", crate::wording::path(path)))
}

/// A table as what it means; the error is what the parser says, on one line.
fn typed<T: serde::de::DeserializeOwned>(table: Table) -> Result<T, String> {
    table.try_into().map_err(|error| parser_message(&error))
}

/// What the parser says, on one line.
fn parser_message(error: &toml::de::Error) -> String {
    crate::wording::line(&error.to_string())
}

/// A time as people write it: `30`, `1.5`, `500ms`, `30s`, `2m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|character: char| !(character.is_ascii_digit() || character == '.'));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}
