//! What clients ask besides: which models there are, and how much they can read.

use serde_json::{Value, json};

use super::delivery::Rendered;
use super::http::{Framing, Request};

/// Which models a server offers, and in whose words it speaks of them.
#[derive(Clone, Debug)]
pub struct Catalogue {
    manner: Manner,
    models: Vec<Offered>,
}

/// A model on offer.
#[derive(Clone, Debug)]
pub struct Offered {
    name: String,
    window: u64,
    served: Option<u64>,
    tools: bool,
    loaded: bool,
    embeds: bool,
}

/// Whose words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Everybody's, so that any client is served.
    All,
    Ollama,
    LmStudio,
    LlamaCpp,
    Plain,
    Anthropic,
}

impl Offered {
    /// A model that can read so many tokens and call tools, and is not in memory.
    pub fn new(name: &str, window: u64) -> Self {
        let served = None;
        let tools = true;
        let loaded = false;
        let embeds = false;
        Self { name: name.to_owned(), window, served, tools, loaded, embeds }
    }

    /// It is served with so many tokens.
    pub fn served_with(mut self, tokens: u64) -> Self {
        self.served = Some(tokens);
        self
    }

    /// It is in memory.
    pub fn loaded(mut self) -> Self {
        self.loaded = true;
        self
    }

    /// It cannot call tools.
    pub fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// It answers nobody: it makes vectors.
    pub fn embedding(mut self) -> Self {
        self.embeds = true;
        self
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { manner: Manner::All, models: vec![Offered::new("scripted", 32_768)] }
    }
}

impl Catalogue {
    /// As Ollama does.
    pub fn ollama(models: impl IntoIterator<Item = Offered>) -> Self {
        Self { manner: Manner::Ollama, models: models.into_iter().collect() }
    }

    /// As LM Studio does.
    pub fn lm_studio(models: impl IntoIterator<Item = Offered>) -> Self {
        Self { manner: Manner::LmStudio, models: models.into_iter().collect() }
    }

    /// As llama.cpp's server does, which has one model.
    pub fn llama_cpp(model: Offered) -> Self {
        Self { manner: Manner::LlamaCpp, models: vec![model] }
    }

    /// As servers do that say nothing but names.
    pub fn plain(models: impl IntoIterator<Item = Offered>) -> Self {
        Self { manner: Manner::Plain, models: models.into_iter().collect() }
    }

    /// As Anthropic does.
    pub fn anthropic(models: impl IntoIterator<Item = Offered>) -> Self {
        Self { manner: Manner::Anthropic, models: models.into_iter().collect() }
    }

    /// The answer to a request that is not for a model's words.
    pub(super) fn answer(&self, request: &Request) -> Rendered {
        let path = request.path.split('?').next().unwrap_or_default();
        let speaks = |manner: Manner| self.manner == Manner::All || self.manner == manner;
        let said = match (request.method.as_str(), path) {
            ("GET", "/api/tags") if speaks(Manner::Ollama) => Some(self.tags(|_| true)),
            ("GET", "/api/ps") if speaks(Manner::Ollama) => Some(self.tags(|model| model.loaded)),
            ("GET", "/api/version") if speaks(Manner::Ollama) => Some(json!({"version": "0.13.0"})),
            ("POST", "/api/show") if speaks(Manner::Ollama) => self.shown(&request.body),
            ("GET", "/api/v0/models") if self.manner == Manner::LmStudio => Some(self.studio()),
            ("GET", "/props") if self.manner == Manner::LlamaCpp => {
                let window = self.models.first().map(|model| model.window);
                Some(json!({"default_generation_settings": {"n_ctx": window}, "total_slots": 1}))
            }
            ("GET", path) if path == "/v1/models" && self.manner != Manner::Ollama => {
                Some(self.list())
            }
            _ => None,
        };
        let (status, body) = match said {
            Some(body) => (200, body),
            None => {
                let words = format!("Invalid URL ({} {path})", request.method);
                let error = json!({"message": words, "type": "invalid_request_error",
                    "param": null, "code": null});
                (404, json!({ "error": error }))
            }
        };
        let body = body.to_string().into_bytes();
        Rendered {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            framing: Framing::Length(body.len()),
            events: vec![body],
        }
    }

    fn tags(&self, wanted: impl Fn(&Offered) -> bool) -> Value {
        let models: Vec<Value> = self
            .models
            .iter()
            .filter(|model| wanted(model))
            .map(|model| json!({"name": model.name, "model": model.name}))
            .collect();
        json!({ "models": models })
    }

    fn shown(&self, body: &[u8]) -> Option<Value> {
        let asked: Value = serde_json::from_slice(body).ok()?;
        // Who names none means the only one.
        let is_it = |model: &&Offered| asked["model"].is_null() || asked["model"] == *model.name;
        let model = self.models.iter().find(is_it)?;
        let mut abilities = vec![if model.embeds { "embedding" } else { "completion" }];
        if model.tools && !model.embeds {
            abilities.extend(["tools", "thinking"]);
        }
        let mut parameters = "temperature                    0.7".to_owned();
        if let Some(served) = model.served {
            parameters.push_str(&format!("\nnum_ctx                        {served}"));
        }
        Some(json!({
            "details": {"family": "scripted"},
            "parameters": parameters,
            "model_info": {
                "general.architecture": "scripted",
                "scripted.context_length": model.window,
            },
            "capabilities": abilities,
        }))
    }

    fn studio(&self) -> Value {
        let one = |model: &Offered| {
            let mut entry = json!({
                "id": model.name,
                "object": "model",
                "type": if model.embeds { "embeddings" } else { "llm" },
                "state": if model.loaded { "loaded" } else { "not-loaded" },
                "max_context_length": model.window,
                "capabilities": if model.tools { vec!["tool_use"] } else { vec![] },
            });
            if model.loaded {
                entry["loaded_context_length"] = json!(model.served.unwrap_or(model.window));
            }
            entry
        };
        json!({"object": "list", "data": self.models.iter().map(one).collect::<Vec<_>>()})
    }

    fn list(&self) -> Value {
        let one = |model: &Offered| match self.manner {
            Manner::Anthropic => {
                json!({"type": "model", "id": model.name, "display_name": model.name})
            }
            Manner::LlamaCpp => {
                let meta = json!({"n_ctx_train": model.window * 4});
                json!({"id": model.name, "object": "model", "owned_by": "llamacpp", "meta": meta})
            }
            _ => json!({"id": model.name, "object": "model"}),
        };
        let data: Vec<Value> = self.models.iter().map(one).collect();
        match (self.manner, self.models.last()) {
            (Manner::Anthropic, last) => {
                json!({"data": data, "has_more": false, "last_id": last.map(|model| &model.name)})
            }
            _ => json!({"object": "list", "data": data}),
        }
    }
}
