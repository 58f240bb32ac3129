//! The settings of the engine, from what the files and the command line say.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mainstay_agent::Settings;
use mainstay_journal::turn::{Mode, TurnChoices};
use mainstay_llm::{Api, Candidate, FixedKey, Key, NoKey, Prices, Provider, known};
use mainstay_tools::Reader;

use super::keys::{FromCommand, FromVariable};
use super::shape::Time;
use super::{Config, kept, shape, web};
use crate::engine::READER;
use crate::error::Error;
use crate::{env, redaction};

/// What the command line says over the files.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// `--model`
    pub(crate) model: Option<String>,
    /// The models of a turn that is taken up, the first one first; empty for those of the files.
    pub(crate) models: Vec<String>,
    /// Which profile the files are read with.
    pub(crate) profile: ProfileChoice,
    /// The model that writes summaries, whatever the files say.
    pub(crate) summaries: Option<String>,
    /// `--budget`, in dollars for the turn.
    pub(crate) budget: Option<f64>,
    /// `--mode` or `--yes`, or the mode of a turn that is taken up.
    pub(crate) mode: Option<Mode>,
    /// Files and directories that no tool opens.
    pub(crate) forbidden: Vec<PathBuf>,
}

/// Which profile the files are read with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProfileChoice {
    /// The one that is asked for here and now, or that config.toml chooses.
    #[default]
    Configured,
    /// That of a turn that is taken up; `None` if the turn was begun without one.
    OfTurn(Option<String>),
}

/// What the engine is told.
pub(crate) fn agent_settings(config: &Config, over: &Overrides) -> Result<Settings, Error> {
    let file = &config.file;
    let sandbox = super::sandbox::wishes(config)?;
    let mode = super::mode::mode(config, over, &sandbox)?;
    let policy = super::policy::policy(config, mode, &sandbox)?;
    let (chain, budgets) = (chain(config, over)?, super::budget::budgets(config, over)?);
    let mut settings = Settings {
        choices: TurnChoices {
            models: chain.iter().map(ToString::to_string).collect(),
            profile: config.profile().map(|(name, _)| name.to_owned()),
            budget: over.budget.and(budgets.turn.money),
            mode,
        },
        chain,
        max_output: file.max_output,
        temperature: file.temperature,
        policy,
        budgets,
        compaction: super::compaction::compacting(config, over)?,
        environment: env::all(),
        pass_environment: file.shell.pass_environment.clone(),
        forbidden: over.forbidden.clone(),
        sandbox,
        skills: config.skills()?,
        tools: web::tools(config)?,
        reader: Some(Reader {
            program: PathBuf::from("/proc/self/exe"),
            arguments: vec![READER.into()],
        }),
        hooks: config.hooks.clone(),
        memory: super::memory::memory_settings(config)?,
        yes: mode == Mode::Yes,
        redactor: redaction::shared().clone(),
        ..Settings::default()
    };
    match file.delegate.at_once {
        None => {}
        Some(0) => {
            return Err(config
                .wrong("delegate.at_once is 0")
                .hint("Set how many helpers may work side by side, 1 or more."));
        }
        Some(most) => settings.children = most,
    }
    if let Some(time) = super::policy::request_time(config)? {
        settings.approval = time;
    }
    if let Some(effort) = &file.effort {
        let effort = effort.parse().map_err(|error| {
            config
                .wrong(format!("effort: {error}"))
                .hint("Write one of them, or leave it out: effort = \"medium\"")
        })?;
        settings.effort = Some(effort);
    }
    super::limits::set_limits(config, &mut settings)?;
    Ok(settings)
}

/// Whether everything that the file says can be used, whether a model is named or not.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let model = config.file.model.clone().unwrap_or_else(|| "ollama/any".to_owned());
    agent_settings(config, &Overrides { model: Some(model), ..Overrides::default() })?;
    config.keeper_grace()?;
    super::memory_providers::descriptions(config)?;
    for name in config.file.providers.keys() {
        provider(config, name)?;
    }
    Ok(())
}

/// The models, the first one first.
fn chain(config: &Config, over: &Overrides) -> Result<Vec<Arc<Candidate>>, Error> {
    let mut names: Vec<&String> = over.models.iter().collect();
    if names.is_empty() {
        let first = over.model.as_ref().or(config.file.model.as_ref());
        let first = first.ok_or_else(|| no_model(config))?;
        names.push(first);
        names.extend(config.file.fallback.iter().filter(|name| *name != first));
    }
    names.into_iter().map(|name| candidate(config, name).map(Arc::new)).collect()
}

fn no_model(config: &Config) -> Error {
    Error::configuration("no model is configured")
        .hint("Try `mainstay demo` first; it needs no model.")
        .hint(format!(
            "Pass --model PROVIDER/MODEL, or set `model = \"ollama/qwen3\"` in {}.",
            config.path.display()
        ))
}

pub(super) fn candidate(config: &Config, name: &str) -> Result<Candidate, Error> {
    let (provider, model) = match name.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => (provider, model),
        _ => {
            return Err(Error::configuration(format!("{name:?} is not a valid model")).hint(
                "Write PROVIDER/MODEL, such as anthropic/claude-sonnet-4-5 or ollama/qwen3.",
            ));
        }
    };
    let said = config.file.models.get(name).cloned().unwrap_or_default();
    Ok(Candidate {
        provider: Arc::new(self::provider(config, provider)?),
        model: model.to_owned(),
        prices: prices(&said).or_else(|| Prices::of(model)),
        window: said.window,
        max_output: said.max_output,
    })
}

pub(super) fn provider(config: &Config, name: &str) -> Result<Provider, Error> {
    let known = known(name);
    let said = config.file.providers.get(name);
    if known.is_none() && said.is_none() {
        return Err(Error::configuration(format!("unknown provider {name:?}")).hint(format!(
            "Add [providers.{name}] with `api` and `base_url` to {}.",
            config.path.display()
        )));
    }
    let said = said.cloned().unwrap_or_default();
    let api = match (&said.api, &known) {
        (Some(api), _) => api.parse::<Api>().map_err(|error| {
            config
                .wrong(format!("providers.{name}.api: {error}"))
                .hint("Write openai-chat, openai-responses, anthropic or ollama.")
        })?,
        (None, Some(known)) => known.api,
        (None, None) => Api::OpenAiChat,
    };
    let base_url = said.base_url.as_deref().or(known.as_ref().map(|known| known.base_url));
    let base_url = base_url.ok_or_else(|| {
        config
            .wrong(format!("providers.{name} has no base_url"))
            .hint("Add one, such as base_url = \"http://127.0.0.1:8080/v1\".")
    })?;
    let wrong = |detail: &str| {
        config
            .wrong(format!("providers.{name}.base_url {base_url:?}: {detail}"))
            .hint("Write a whole address, such as http://127.0.0.1:8080/v1.")
    };
    let base_url = base_url.parse().map_err(|error| wrong(&format!("{error}")))?;
    let wishes = KeyWishes {
        command: said.api_key_command.as_deref(),
        variable: said.api_key_env.as_deref(),
        usual: known.and_then(|known| known.key_variable),
        // A known provider at an address of one's own may want no key.
        optional: said.base_url.is_some(),
    };
    let key = key(config, name, &wishes)?;
    let headers = said.headers.clone().into_iter().collect();
    let provider = Provider { name: name.to_owned(), api, base_url, key, headers };
    match provider.base_url.scheme() {
        "http" | "https" => Ok(provider),
        other => Err(wrong(&format!("{other} is not supported"))),
    }
}

/// Where a key comes from: what the settings say, the key that was kept under this name, or the
/// variable that usually holds it.
pub(super) fn key(
    config: &Config,
    name: &str,
    said: &KeyWishes<'_>,
) -> Result<Arc<dyn Key>, Error> {
    if let Some(command) = said.command {
        let (command, fetched) = (command.to_owned(), Arc::new(Mutex::new(None)));
        return Ok(Arc::new(FromCommand { command, fetched }));
    }
    if let Some(variable) = said.variable {
        return Ok(Arc::new(variable_key(variable, false, None)));
    }
    if let Some(secret) = kept::read(&config.home)?.remove(name) {
        let source = format!("the stored key of {name}");
        return Ok(Arc::new(FixedKey::new(secret, source)));
    }
    Ok(match said.usual {
        Some(variable) => {
            let instead = format!("mainstay config key set {name}");
            Arc::new(variable_key(variable, said.optional, Some(instead)))
        }
        None => Arc::new(NoKey),
    })
}

/// What the settings say of a key.
pub(super) struct KeyWishes<'a> {
    /// `api_key_command`
    pub(super) command: Option<&'a str>,
    /// `api_key_env`
    pub(super) variable: Option<&'a str>,
    /// The variable that usually holds it.
    pub(super) usual: Option<&'a str>,
    /// Whether there is an answer without one.
    pub(super) optional: bool,
}

fn variable_key(name: &str, optional: bool, instead: Option<String>) -> FromVariable {
    let value = env::named_by_configuration(name);
    FromVariable { name: name.to_owned(), value, optional, instead }
}

fn prices(said: &shape::Model) -> Option<Prices> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices are small and not negative"
    )]
    let micros = |dollars: f64| (dollars.max(0.0) * 1e6).round() as u64;
    let (input, output) = (said.input?, said.output?);
    Some(Prices {
        input: micros(input),
        cached: micros(said.cached.unwrap_or(input)),
        cache_written: micros(said.cache_written.unwrap_or(input)),
        output: micros(output),
    })
}

pub(super) fn time(config: &Config, name: &str, said: &Time) -> Result<std::time::Duration, Error> {
    said.duration().ok_or_else(|| {
        config
            .wrong(format!("{name} is not a valid time"))
            .hint("Write seconds, such as 30, or a time with its unit, such as \"500ms\".")
    })
}
