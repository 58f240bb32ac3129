//! Which models a provider offers, and how much they can read.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use mainstay_message::causes;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::provider::Dialect;
use crate::transport::headers;
use crate::{Api, Client, Fault, Prices, Provider};

/// A model that a provider offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name, as the provider knows it.
    pub name: String,
    /// How many tokens it can read and write together as it is served, where the provider says so.
    pub window: Option<u64>,
    /// How many it is served with unless a request asks for more: Ollama's `num_ctx`.
    pub served: Option<u64>,
    /// What it costs, where the provider says so.
    pub prices: Option<Prices>,
    /// Whether it can call tools, where the provider says so.
    pub tools: Option<bool>,
    /// Whether it is in memory, where the provider says so.
    pub loaded: Option<bool>,
}

/// The bytes of one answer; the largest aggregator's list has one or two million.
const MOST: usize = 16 << 20;
/// So many details are asked for at once.
const AT_ONCE: usize = 8;
/// So many pages of a list are read.
const PAGES: usize = 20;

impl Client {
    /// The models that a provider offers, in its order; those for other work than answering are left
    /// out. The error is a few words on why there is no list. Everything but the key is there within `limit`.
    pub async fn models(
        &self,
        provider: &Provider,
        limit: Duration,
    ) -> Result<Vec<Listed>, String> {
        let secret = provider.key.get().await?;
        let asker = Asker {
            pool: self.transport().pool(provider, limit)?,
            headers: headers(provider, secret.as_ref())?,
            provider,
        };
        let late = |_| format!("no answer within {} s", limit.as_secs_f64());
        let listed = tokio::time::timeout(limit, asker.list()).await.map_err(late)?;
        let mut models = listed.map_err(|failed| {
            if failed == NoList::Fault(Fault::Auth) {
                provider.key.refused();
            }
            failed.to_string()
        })?;
        let mut seen = HashSet::new();
        models.retain(|model| seen.insert(model.name.clone()));
        Ok(models)
    }
}

/// Why there is no list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NoList {
    #[error("{}", .0.description())]
    Fault(Fault),
    #[error("{} ({})", Fault::Network.description(), .0)]
    Unsent(String),
    #[error("{0}")]
    Broken(String),
    #[error("it answered with {0}")]
    Status(u16),
    #[error("its list is too long")]
    TooLong,
}

struct Asker<'a> {
    pool: reqwest::Client,
    headers: HeaderMap,
    provider: &'a Provider,
}

impl Asker<'_> {
    async fn list(&self) -> Result<Vec<Listed>, NoList> {
        match self.provider.api {
            Api::Ollama => self.ollama().await,
            Api::Anthropic => self.anthropic().await,
            Api::OpenAiChat | Api::OpenAiResponses => self.openai().await,
        }
    }

    async fn ollama(&self) -> Result<Vec<Listed>, NoList> {
        let tags = self.provider.beside(&["tags"]);
        let running = self.provider.beside(&["ps"]);
        let (tags, running) = join(self.get(tags), self.get(running)).await;
        let loaded: Vec<Value> =
            running.as_ref().map(|all| each(&all["models"])).unwrap_or_default();
        let names: Vec<String> =
            each(&tags?["models"]).iter().filter_map(|model| text(&model["name"])).collect();
        let mut models = Vec::new();
        for some in names.chunks(AT_ONCE) {
            let asked = some.iter().map(|name| self.shown(name, &loaded));
            models.extend(join_all(asked).await.into_iter().flatten());
        }
        Ok(models)
    }

    /// A model of Ollama's with its details. Returns `None` if it answers nobody.
    async fn shown(&self, name: &str, loaded: &[Value]) -> Option<Listed> {
        let request = self.pool.post(self.provider.beside(&["show"]));
        let request = request.body(json!({ "model": name }).to_string());
        // A model whose details cannot be had is still one.
        let shown = self.sent(request).await.unwrap_or_default();
        let running = loaded.iter().find(|model| model["name"] == name);
        let mut model = Listed { name: name.to_owned(), ..Listed::default() };
        model.loaded = Some(running.is_some());
        if let Some(abilities) = shown["capabilities"].as_array() {
            if !abilities.iter().any(|ability| ability == "completion") {
                return None;
            }
            model.tools = Some(abilities.iter().any(|ability| ability == "tools"));
        }
        let details = shown["model_info"].as_object();
        let length = details.and_then(|details| {
            details.iter().find(|(key, _)| key.ends_with(".context_length"))?.1.as_u64()
        });
        model.window = length;
        let parameters = shown["parameters"].as_str().unwrap_or_default();
        model.served = parameters.lines().find_map(|line| {
            let (name, value) = line.trim().split_once(char::is_whitespace)?;
            (name == "num_ctx").then(|| value.trim().parse().ok())?
        });
        Some(model)
    }

    async fn anthropic(&self) -> Result<Vec<Listed>, NoList> {
        let mut models = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..PAGES {
            let mut url = self.provider.beside(&["models"]);
            url.query_pairs_mut().append_pair("limit", "1000");
            if let Some(after) = &after {
                url.query_pairs_mut().append_pair("after_id", after);
            }
            let page = self.get(url).await?;
            models.extend(each(&page["data"]).iter().filter_map(listed));
            after = page["last_id"].as_str().map(str::to_owned);
            if page["has_more"] != true || after.is_none() {
                break;
            }
        }
        Ok(models)
    }

    async fn openai(&self) -> Result<Vec<Listed>, NoList> {
        let list = self.get(self.provider.beside(&["models"]));
        if !self.provider.is_loopback() {
            return Ok(self.of_list(&list.await?));
        }
        // Servers on this machine say more of themselves elsewhere, each in its own place.
        let (list, studio, properties) = join3(
            list,
            async {
                let newer = self.get(self.provider.at_root("/api/v1/models"));
                let (newer, older) =
                    join(newer, self.get(self.provider.at_root("/api/v0/models"))).await;
                // One or both: the older tells what the newer does, in other words.
                older.or(newer)
            },
            self.get(self.provider.at_root("/props")),
        )
        .await;
        let mut models = self.of_list(&list?);
        if let Ok(studio) = studio {
            of_studio(&mut models, &studio);
        }
        if let Ok(properties) = properties {
            let window = properties["default_generation_settings"]["n_ctx"].as_u64();
            for model in &mut models {
                model.window = window.or(model.window);
                model.loaded = model.loaded.or(window.map(|_| true));
            }
        }
        Ok(models)
    }

    fn of_list(&self, list: &Value) -> Vec<Listed> {
        // Some give the bare list.
        let entries = if list.is_array() { each(list) } else { each(&list["data"]) };
        let mut models: Vec<Listed> = entries.iter().filter_map(listed).collect();
        match self.provider.dialect() {
            Dialect::OpenAi => models.retain(|model| answers(&model.name)),
            Dialect::Gemini => {
                for model in &mut models {
                    if let Some(name) = model.name.strip_prefix("models/") {
                        model.name = name.to_owned();
                    }
                }
            }
            _ => {}
        }
        models
    }

    async fn get(&self, url: Url) -> Result<Value, NoList> {
        self.sent(self.pool.get(url)).await
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> Result<Value, NoList> {
        let sent = request.headers(self.headers.clone()).send().await;
        let mut response = sent.map_err(|error| unsent(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                401 | 403 => NoList::Fault(Fault::Auth),
                404 => NoList::Fault(Fault::NotFound),
                429 => NoList::Fault(Fault::RateLimited),
                code => NoList::Status(code),
            });
        }
        let mut body = Vec::new();
        let broken = |error: reqwest::Error| NoList::Broken(causes(&error));
        while let Some(bytes) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&bytes);
            if body.len() > MOST {
                return Err(NoList::TooLong);
            }
        }
        serde_json::from_slice(&body).map_err(|_| NoList::Fault(Fault::Garbage))
    }
}

/// Why nothing could be sent: the first cause says it in few words.
fn unsent(error: &reqwest::Error) -> NoList {
    let causes = causes(error);
    NoList::Unsent(causes.rsplit(": ").next().unwrap_or_default().to_owned())
}

/// A model of a list, in whichever words its server speaks of windows and prices.
fn listed(entry: &Value) -> Option<Listed> {
    let name = text(&entry["id"]).or_else(|| text(&entry["name"]))?;
    let windows = [
        &entry["context_length"],
        &entry["context_window"],
        &entry["max_context_length"],
        &entry["max_model_len"],
        &entry["max_input_tokens"],
        &entry["meta"]["n_ctx"],
        &entry["meta"]["n_ctx_train"],
    ];
    let window = windows.into_iter().find_map(Value::as_u64).filter(|window| *window > 0);
    let parameters = entry["supported_parameters"].as_array();
    let tools = parameters.map(|all| all.iter().any(|parameter| parameter == "tools"));
    Some(Listed { name, window, tools, prices: prices(&entry["pricing"]), ..Listed::default() })
}

/// Prices in dollars a token, as texts.
fn prices(said: &Value) -> Option<Prices> {
    let price = |name: &str| -> Option<u64> {
        let dollars: f64 = said[name].as_str()?.parse().ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the bounds are checked"
        )]
        (0.0..1.0).contains(&dollars).then(|| (dollars * 1e12).round() as u64)
    };
    let (input, output) = (price("prompt")?, price("completion")?);
    let cached = price("input_cache_read").unwrap_or(input);
    Some(Prices {
        input,
        cached,
        cache_written: price("input_cache_write").unwrap_or(input),
        output,
    })
}

/// What LM Studio says of its models: the older list has `data`, the newer `models`.
fn of_studio(models: &mut Vec<Listed>, said: &Value) {
    let entries = [each(&said["data"]), each(&said["models"])].concat();
    models.retain_mut(|model| {
        let named = |entry: &&Value| entry["id"] == *model.name || entry["key"] == *model.name;
        let Some(entry) = entries.iter().find(named) else { return true };
        if entry.get("state").is_none() && entry.get("loaded_instances").is_none() {
            // Somebody else's list.
            return true;
        }
        let instance = &entry["loaded_instances"][0]["config"]["context_length"];
        let loaded = entry["state"] == "loaded" || !instance.is_null();
        let now = entry["loaded_context_length"].as_u64().or(instance.as_u64());
        model.window =
            now.filter(|_| loaded).or(entry["max_context_length"].as_u64()).or(model.window);
        model.loaded = Some(loaded);
        let abilities = &entry["capabilities"];
        model.tools = match abilities.as_array() {
            Some(all) => Some(all.iter().any(|ability| ability == "tool_use")),
            None => abilities["trained_for_tool_use"].as_bool(),
        };
        let kind = entry["type"].as_str().unwrap_or_default();
        !kind.starts_with("embedding")
    });
}

/// Whether a model of OpenAI's own answers in words, by its name.
fn answers(name: &str) -> bool {
    const OTHERS: [&str; 11] = [
        "embedding",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "audio",
        "realtime",
        "image",
        "transcribe",
        "sora",
        "babbage",
    ];
    !OTHERS.iter().any(|other| name.contains(other))
}

fn each(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
