//! What there is to choose from.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mainstay_llm::{Api, Client, KNOWN, Listed, NoKey, Provider, known};

use crate::config::{Config, kept};
use crate::env;
use crate::error::Error;

/// How long a server of this machine may take to say what it has.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// The most tokens that Ollama is asked to hold, where nobody said: memory is paid for all of them.
const ENOUGH: u64 = 32_768;

/// Servers that people run on their own machines, at their usual ports.
const LOCAL: [&str; 3] = ["ollama", "lmstudio", "llamacpp"];

/// A model that can be had.
#[derive(Clone, Debug)]
pub(super) struct FoundModel {
    pub(super) provider: Arc<Provider>,
    pub(super) model: Listed,
    /// Whether the provider needs no table in the configuration.
    pub(super) is_known: bool,
}

/// A provider that a person has a key for, and that was not contacted.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) provider: String,
    /// Where the key is.
    pub(super) key: String,
}

impl FoundModel {
    /// `provider/model`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model.name)
    }

    /// The window that will be used.
    pub(super) fn window(&self) -> Option<u64> {
        let Listed { window, served, .. } = &self.model;
        match self.provider.api {
            // It holds what a request asks for, up to what the model can.
            Api::Ollama => served.or(window.map(|window| window.min(ENOUGH))),
            _ => *window,
        }
    }

    /// The better one comes first: it calls tools, is in memory already, reads more.
    fn rank(&self) -> impl Ord + use<> {
        let Listed { tools, loaded, window, name, .. } = &self.model;
        let speechless = *tools == Some(false);
        let cold = *loaded != Some(true);
        (speechless, cold, Reverse(window.unwrap_or(0).min(ENOUGH)), name.clone())
    }
}

/// The models of the servers on this machine, the best first. They are asked side by side.
pub(super) async fn local(client: &Client, config: &Config) -> Result<Vec<FoundModel>, Error> {
    let servers = servers(config)?;
    let asked = servers.into_iter().map(|(provider, is_known)| async move {
        // One that does not answer is not there.
        let models = client.models(&provider, PATIENCE).await.unwrap_or_default();
        let one = |model| FoundModel { provider: Arc::clone(&provider), model, is_known };
        models.into_iter().map(one).collect::<Vec<_>>()
    });
    let mut found: Vec<FoundModel> = join_all(asked).await.into_iter().flatten().collect();
    found.sort_by_key(FoundModel::rank);
    Ok(found)
}

/// Where servers are looked for, and whether the configuration needs to say where they are.
fn servers(config: &Config) -> Result<Vec<(Arc<Provider>, bool)>, Error> {
    let Some(said) = env::MAINSTAY_LOCAL_SERVERS.text() else {
        let usual = LOCAL.iter().map(|name| Ok((Arc::new(config.provider(name)?), true)));
        return usual.collect();
    };
    if said.trim() == "none" {
        return Ok(Vec::new());
    }
    said.split(',').map(str::trim).filter(|part| !part.is_empty()).map(server).collect()
}

/// `ollama=http://127.0.0.1:11434`
fn server(said: &str) -> Result<(Arc<Provider>, bool), Error> {
    let wrong = || {
        Error::configuration(format!(
            "{} has {said:?}, which is not a valid NAME=URL",
            env::MAINSTAY_LOCAL_SERVERS.name
        ))
        .hint("Write it like ollama=http://127.0.0.1:11434, or none.")
    };
    let (name, url) = said.split_once('=').ok_or_else(wrong)?;
    let base_url: url::Url = url.parse().map_err(|_| wrong())?;
    if name.is_empty() || !matches!(base_url.scheme(), "http" | "https") {
        return Err(wrong());
    }
    let known = known(name);
    let api = known.map_or(Api::OpenAiChat, |known| known.api);
    let is_known = known.is_some_and(|known| known.base_url.parse() == Ok(base_url.clone()));
    let (name, key, headers) = (name.to_owned(), Arc::new(NoKey), Vec::new());
    Ok((Arc::new(Provider { name, api, base_url, key, headers }), is_known))
}

/// Providers that a person has a key for or has set up, none of them contacted.
pub(super) fn offers(config: &Config) -> Result<Vec<Offer>, Error> {
    let mut offers = Vec::new();
    for provider in config.chosen_providers()? {
        let key = config.provider(&provider)?.key.describe();
        offers.push(Offer { provider, key });
    }
    let kept = kept::read(config.home())?;
    for name in KNOWN {
        let variable = known(name).and_then(|known| known.key_variable);
        let Some(variable) = variable else { continue };
        let is_told = kept.contains_key(name) || offers.iter().any(|offer| offer.provider == name);
        if !is_told && env::named_by_configuration(variable).is_some() {
            let key = format!("the variable {variable}");
            offers.push(Offer { provider: name.to_owned(), key });
        }
    }
    Ok(offers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, tools: Option<bool>, loaded: bool, window: u64) -> FoundModel {
        let (provider, is_known) = server("ollama=http://127.0.0.1:1").unwrap();
        let model = Listed {
            name: name.to_owned(),
            window: Some(window),
            tools,
            loaded: Some(loaded),
            ..Listed::default()
        };
        FoundModel { provider, model, is_known }
    }

    #[test]
    fn what_calls_tools_and_is_in_memory_comes_first() {
        let mut all = [
            found("mute", Some(false), true, 128_000),
            found("small", Some(true), false, 4_096),
            found("big", Some(true), false, 128_000),
            found("warm", Some(true), true, 8_192),
            found("also-big", None, false, 32_768),
        ];
        all.sort_by_key(FoundModel::rank);
        let names: Vec<&str> = all.iter().map(|one| one.model.name.as_str()).collect();
        assert_eq!(names, ["warm", "also-big", "big", "small", "mute"]);
    }

    #[test]
    fn ollama_is_asked_for_a_window_that_fits_into_memory() {
        assert_eq!(found("a", None, false, 131_072).window(), Some(32_768));
        assert_eq!(found("a", None, false, 8_192).window(), Some(8_192));
        let mut set = found("a", None, false, 131_072);
        set.model.served = Some(65_536);
        assert_eq!(set.window(), Some(65_536));
    }

    #[test]
    fn places_of_servers_are_read_or_refused() {
        let (provider, is_known) = server("ollama=http://127.0.0.1:11434").unwrap();
        assert!(is_known && provider.api == Api::Ollama);
        let (provider, is_known) = server("lmstudio=http://127.0.0.1:5/v1").unwrap();
        assert!(!is_known && provider.api == Api::OpenAiChat);
        for wrong in ["ollama", "=http://h", "x=ftp://h", "x=nowhere"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
