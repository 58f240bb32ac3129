//! `[fetch]` and `[search]`: the tools for the web. A workspace has no say in them.

use std::sync::Arc;

use mainstay_tools::web::{Engine, KeySource};
use mainstay_tools::{Tool, Web, WebSearch};
use serde::Deserialize;

use super::Config;
use super::build::{self, KeyWishes};
use crate::error::Error;

/// Its settings in a new file.
pub(super) const TEMPLATE: &str = r#"
# Hosts on this machine or its network that may be fetched from, as host:port.
[fetch]
#allow_private = []

# Web search: a SearXNG instance, or a service (brave, tavily) with a key, set like that of a
# provider: `mainstay config key set brave`.
[search]
# for example: searxng = "http://127.0.0.1:8888"
# for example: service = "brave"
# for example: base_url = "https://api.search.brave.com"
# for example: api_key_env = "BRAVE_API_KEY"
# for example: api_key_command = "pass show brave"
"#;

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

/// The variables that usually hold the keys of services.
pub(super) const KEY_VARIABLES: [&str; 2] = ["BRAVE_API_KEY", "TAVILY_API_KEY"];

/// `fetch`, and `web_search` where it is configured.
pub(super) fn tools(config: &Config) -> Result<Vec<Arc<dyn Tool>>, Error> {
    let web = Web::new(&config.file.fetch.allow_private).map_err(|error| {
        config
            .wrong(format!("fetch.allow_private: {error}"))
            .hint("Write each as host:port, such as \"localhost:8080\".")
    })?;
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(mainstay_tools::Fetch::new(web.clone()))];
    if let Some(engine) = engine(config)? {
        tools.push(Arc::new(WebSearch::new(web, engine)));
    }
    Ok(tools)
}

/// Who searches, where somebody does.
fn engine(config: &Config) -> Result<Option<Engine>, Error> {
    let said = &config.file.search;
    let address = |name: &str, text: &str| {
        let wrong = || {
            config
                .wrong(format!("search.{name} is {text:?}, which is not a valid address"))
                .hint("Write a whole address, such as http://127.0.0.1:8888.")
        };
        let url: url::Url = text.parse().map_err(|_| wrong())?;
        if matches!(url.scheme(), "http" | "https") { Ok(url) } else { Err(wrong()) }
    };
    match (&said.searxng, said.service.as_deref()) {
        (None, None) => Ok(None),
        (Some(base), None) => Ok(Some(Engine::Searxng(address("searxng", base)?))),
        (Some(_), Some(_)) => {
            Err(config.wrong("search has both searxng and a service").hint("Keep the one to use."))
        }
        (None, Some("brave")) => {
            let base = said.base_url.as_deref().unwrap_or("https://api.search.brave.com");
            Ok(Some(Engine::Brave(
                address("base_url", base)?,
                key(config, "brave", KEY_VARIABLES[0])?,
            )))
        }
        (None, Some("tavily")) => {
            let base = said.base_url.as_deref().unwrap_or("https://api.tavily.com");
            Ok(Some(Engine::Tavily(
                address("base_url", base)?,
                key(config, "tavily", KEY_VARIABLES[1])?,
            )))
        }
        (None, Some(other)) => Err(config.wrong(format!("search.service is {other:?}")).hint(
            "Write brave or tavily, or name an instance of SearXNG: searxng = \"http://…\".",
        )),
    }
}

/// The key of a service, from where a provider's would come.
fn key(config: &Config, service: &str, usual: &str) -> Result<KeySource, Error> {
    let said = &config.file.search;
    let wishes = KeyWishes {
        command: said.api_key_command.as_deref(),
        variable: said.api_key_env.as_deref(),
        usual: Some(usual),
        optional: false,
    };
    let key = build::key(config, service, &wishes)?;
    Ok(Arc::new(move || {
        let key = key.clone();
        Box::pin(async move {
            let secret = key.get().await?;
            secret.map(|secret| secret.expose().to_owned()).ok_or_else(|| "no key".to_owned())
        })
    }))
}
