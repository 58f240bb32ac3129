//! The first run: no model is configured, so one is found, tried and written down.
//!
//! Only this machine is looked at. A key in the environment is an offer: its provider is contacted
//! once a person has chosen it, and where nobody can be asked it is not.

mod found;
mod question;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use found::FoundModel;
use mainstay_agent::{Budgets, Trial, trial};
use mainstay_llm::{Candidate, Client};
use mainstay_store::{OwnerId, Store};
use question::{Choice, Question};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::config::edit::{self, HomeLock};
use crate::config::name::Name;
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::humans_only;
use crate::paths::Paths;

/// How long a trial may take: a model may have to be loaded first.
const TRIAL: Duration = Duration::from_secs(180);
/// So many models are tried where nobody can be asked, while none took too long.
const TRIES: usize = 3;

/// Sees to it that a model is configured. Answers whether one was written down now.
pub(crate) fn ensure_model(
    context: &Context,
    paths: &Paths,
    store: &Store,
    owner: OwnerId,
    config: &Config,
) -> Result<bool, Error> {
    // An agent's commands have no business with the settings, and who is at work already is not
    // at the first run.
    let is_at_work = tokio::runtime::Handle::try_current().is_ok();
    if !config.models().is_empty() || humans_only::require("setting up").is_err() || is_at_work {
        return Ok(false);
    }
    let run = FirstRun { paths, store, owner, config, client: Client::new() };
    let asks = can_ask(context);
    let chosen = engine::block_on(async |cancel: CancellationToken| {
        tokio::select! {
            done = run.begin(asks) => done,
            () = cancel.cancelled() => Err(Error::interrupted("stopped; no model was chosen")),
        }
    })??;
    chosen.map(|_| true).ok_or_else(|| nothing_found(&[]))
}

/// Lets a person choose a model for a new file. Returns `None` if nobody can be asked, or if there is
/// nothing to choose from.
pub(crate) fn choose_for_init(context: &Context, paths: &Paths) -> Result<Option<String>, Error> {
    if !can_ask(context) {
        return Ok(None);
    }
    let (store, owner) = engine::open_store(paths)?;
    let config = Config::load(paths, None, context.output)?;
    let run = FirstRun { paths, store: &store, owner, config: &config, client: Client::new() };
    engine::block_on(async |cancel: CancellationToken| {
        tokio::select! {
            done = run.begin(true) => done,
            () = cancel.cancelled() => Err(Error::interrupted("stopped; no model was chosen")),
        }
    })?
}

fn can_ask(context: &Context) -> bool {
    !context.json() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The three ways to go on.
fn nothing_found(offers: &[found::Offer]) -> Error {
    let key = match offers {
        [] => "set a key (`mainstay config key set anthropic`)".to_owned(),
        [first, ..] => format!(
            "choose a model for your key (`mainstay config set model {}/MODEL`)",
            first.provider
        ),
    };
    let message = "no model is configured, and no model server on this machine answers";
    Error::configuration(message).hint(format!(
        "Start a local server (Ollama, LM Studio or llama.cpp), {key}, or watch the demo first \
         (`mainstay demo`)."
    ))
}

struct FirstRun<'a> {
    paths: &'a Paths,
    store: &'a Store,
    owner: OwnerId,
    config: &'a Config,
    client: Client,
}

impl FirstRun<'_> {
    /// Finds a model, tries it, writes it down, and answers its name. Returns `None` if there is
    /// nothing to choose from.
    async fn begin(&self, asks: bool) -> Result<Option<String>, Error> {
        if asks {
            say("No model is configured yet. Looking for model servers on this machine …");
        }
        let found = found::local(&self.client, self.config).await?;
        let offers = found::offers(self.config)?;
        match (asks, found.is_empty() && offers.is_empty()) {
            (true, true) => Ok(None),
            (true, false) => self.asking(found, offers).await.map(Some),
            (false, _) => self.alone(found, &offers).await.map(Some),
        }
    }

    /// Nobody can be asked: the best model of this machine that calls tools.
    async fn alone(
        &self,
        found: Vec<FoundModel>,
        offers: &[found::Offer],
    ) -> Result<String, Error> {
        let mut failed = Vec::new();
        let mut speaker = None;
        let began = Instant::now();
        for one in found.into_iter().take(TRIES) {
            if began.elapsed() >= TRIAL {
                break;
            }
            say(&format!("No model is configured. Trying {}, found on this machine …", one.name()));
            match self.tried(&one).await? {
                Trial::CallsTools => return self.settle(&one, "it calls tools").await,
                Trial::OnlySpeaks(said) => {
                    speaker.get_or_insert((one, said));
                }
                Trial::Failed(why) => failed.push(why),
            }
        }
        if let Some((one, said)) = speaker {
            return self.settle(&one, &only_speaks(&said)).await;
        }
        let error = nothing_found(offers);
        Err(match failed.first() {
            None => error,
            Some(why) => {
                let said = "no model is configured, and none on this machine answers";
                Error { message: format!("{said}: {}", crate::wording::line(why)), ..error }
            }
        })
    }

    async fn asking(
        &self,
        found: Vec<FoundModel>,
        offers: Vec<found::Offer>,
    ) -> Result<String, Error> {
        let question = Question { found, offers };
        loop {
            let one = match question.put().await? {
                Choice::Model(one) => one,
                Choice::Provider(offer) => match self.of_provider(&offer).await? {
                    Some(one) => one,
                    None => continue,
                },
            };
            say(&format!("Trying {} …", one.name()));
            let trial = self.tried(&one).await?;
            match trial {
                Trial::CallsTools => return self.settle(&one, "it calls tools").await,
                Trial::OnlySpeaks(said) => {
                    say(&crate::wording::capital(&only_speaks(&said)));
                    if question::yes("Use it anyway, just to talk? [y/N] ").await? {
                        return self.settle(&one, "it only talks").await;
                    }
                }
                Trial::Failed(why) => {
                    say(&format!("It does not work: {}", crate::wording::line(&why)));
                }
            }
        }
    }

    /// A model of a provider that was chosen just now.
    async fn of_provider(&self, offer: &found::Offer) -> Result<Option<FoundModel>, Error> {
        let provider = Arc::new(self.config.provider(&offer.provider)?);
        match self.client.models(&provider, found::PATIENCE).await {
            Ok(models) if !models.is_empty() => {
                let one =
                    |model| FoundModel { provider: Arc::clone(&provider), model, is_known: true };
                let found = models.into_iter().map(one).collect();
                match (Question { found, offers: Vec::new() }).put().await? {
                    Choice::Model(one) => Ok(Some(one)),
                    Choice::Provider(_) => Ok(None),
                }
            }
            Ok(_) => {
                say(&format!("{} has no models.", offer.provider));
                Ok(None)
            }
            Err(why) => {
                say(&format!("Could not list the models of {}: {why}", offer.provider));
                Ok(None)
            }
        }
    }

    async fn tried(&self, one: &FoundModel) -> Result<Trial, Error> {
        let candidate = Arc::new(Candidate {
            provider: Arc::clone(&one.provider),
            model: one.model.name.clone(),
            prices: one.model.prices,
            window: one.window(),
            max_output: None,
        });
        let limits = mainstay_llm::Limits {
            chain: TRIAL,
            first_byte: TRIAL,
            attempts: 2,
            ..mainstay_llm::Limits::default()
        };
        let day = Budgets::default().day;
        let redactor = crate::redaction::shared();
        let (store, owner, client) = (self.store, self.owner, &self.client);
        Ok(trial(store, owner, client, &candidate, day, &limits, redactor).await?)
    }

    /// Writes the choice down, and says it.
    async fn settle(&self, one: &FoundModel, how: &str) -> Result<String, Error> {
        let one = self.as_served_now(one).await;
        let name = one.name();
        let named = |parts: &[&str]| Name(parts.iter().map(|part| (*part).to_owned()).collect());
        let mut changes = vec![(named(&["model"]), vec![name.as_str().into()])];
        if !one.is_known {
            let provider = &one.provider;
            let at = |key| named(&["providers", &provider.name, key]);
            changes.push((at("base_url"), vec![provider.base_url.as_str().into()]));
            if mainstay_llm::known(&provider.name).is_none_or(|known| known.api != provider.api) {
                changes.push((at("api"), vec![provider.api.as_str().into()]));
            }
        }
        let window = one.window();
        if let Some(window) = window.and_then(|window| i64::try_from(window).ok()) {
            changes.push((named(&["models", &name, "window"]), vec![window.into()]));
        }
        let lock = HomeLock::take(&self.paths.home)?;
        edit::set(self.config.path(), &changes)?;
        drop(lock);
        let window = match window {
            Some(window) => format!("a window of {window} tokens"),
            None => "unknown window".to_owned(),
        };
        let path = self.config.path().display();
        say(&format!("Now using {name} ({how}; {window}), saved in {path}."));
        say(&format!(
            "List other models: `{}`. Change the model: `{}`.",
            self.paths.command("models"),
            self.paths.command("config set model PROVIDER/MODEL")
        ));
        Ok(name)
    }

    /// The same model with the window that it was loaded with for the trial.
    async fn as_served_now(&self, one: &FoundModel) -> FoundModel {
        let mut one = one.clone();
        if one.provider.is_loopback()
            && let Ok(models) = self.client.models(&one.provider, found::PATIENCE).await
            && let Some(now) = models.into_iter().find(|model| model.name == one.model.name)
        {
            one.model = now;
        }
        one
    }
}

fn only_speaks(said: &str) -> String {
    let said = crate::wording::line(said);
    if said.is_empty() {
        "it answers, but did not call the tool and said nothing".to_owned()
    } else {
        format!("it answers, but did not call the tool; it said: {said}")
    }
}

/// Says a line beside the answer. In JSON too: what is chosen here must be no surprise.
fn say(line: &str) {
    crate::printing::say(line);
}
