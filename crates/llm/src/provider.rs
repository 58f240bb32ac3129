//! Providers: who answers, in which format, and where.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Key, NoKey};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Api {
    /// OpenAI's chat completions, and all that are compatible with it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI's responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic's messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Ollama's own, which can set the size of the context.
    #[serde(rename = "ollama")]
    Ollama,
}

impl Api {
    /// All formats.
    pub const ALL: [Api; 4] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Ollama];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::OpenAiChat => "openai-chat",
            Api::OpenAiResponses => "openai-responses",
            Api::Anthropic => "anthropic",
            Api::Ollama => "ollama",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no wire format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid API; use openai-chat, openai-responses, anthropic or ollama")]
pub struct UnknownApi(String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Api, UnknownApi> {
        let found = Api::ALL.into_iter().find(|api| api.as_str() == name);
        found.ok_or_else(|| UnknownApi(name.to_owned()))
    }
}

/// An endpoint with its format and its key.
#[derive(Clone)]
pub struct Provider {
    /// The name by which the configuration and messages call it.
    pub name: String,
    /// Its wire format.
    pub api: Api,
    /// Where it is, up to and including the version: `https://api.openai.com/v1`.
    pub base_url: Url,
    /// Its key.
    pub key: Arc<dyn Key>,
    /// Headers to send besides; they win over those that the client would send.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base_url", &self.base_url.as_str())
            .field("key", &self.key.describe())
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// One that wants neither a key nor headers of its own.
    pub fn without_key(name: &str, api: Api, base_url: Url) -> Self {
        Self { name: name.to_owned(), api, base_url, key: Arc::new(NoKey), headers: Vec::new() }
    }

    /// The address that requests go to.
    ///
    /// A base without any path means the usual one, so that `http://host:8080` works too.
    pub(crate) fn endpoint(&self) -> Url {
        self.beside(match self.api {
            Api::OpenAiChat => &["chat", "completions"],
            Api::OpenAiResponses => &["responses"],
            Api::Anthropic => &["messages"],
            Api::Ollama => &["chat"],
        })
    }

    /// An address below the base.
    pub(crate) fn beside(&self, tail: &[&str]) -> Url {
        let version = match self.api {
            Api::OpenAiChat | Api::OpenAiResponses | Api::Anthropic => "v1",
            Api::Ollama => "api",
        };
        let mut url = self.base_url.clone();
        let bare = matches!(url.path(), "" | "/");
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if bare {
                segments.push(version);
            }
            segments.extend(tail);
        }
        url
    }

    /// An address of the same server, outside of the base.
    pub(crate) fn at_root(&self, path: &str) -> Url {
        let mut url = self.base_url.clone();
        url.set_path(path);
        url
    }

    /// What this endpoint is known to need beyond its format, by its name or its host.
    pub(crate) fn dialect(&self) -> Dialect {
        let host = self.base_url.host_str().unwrap_or_default();
        let is = |name: &str, domain: &str| self.name == name || host.ends_with(domain);
        if host == "api.openai.com" {
            Dialect::OpenAi
        } else if is("openrouter", "openrouter.ai") {
            Dialect::OpenRouter
        } else if is("gemini", "googleapis.com") {
            Dialect::Gemini
        } else if is("mistral", "mistral.ai") {
            Dialect::Mistral
        } else if is("groq", "groq.com") || is("together", "together.xyz") {
            Dialect::Strict
        } else {
            Dialect::Plain
        }
    }

    /// Whether the endpoint is on this machine, where a proxy makes no sense and answers cost nothing.
    pub fn is_loopback(&self) -> bool {
        match self.base_url.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }
}

/// Where servers of the chat format differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI itself: its own name for the limit of output, cache keys, no foreign fields.
    OpenAi,
    /// Reasoning goes back as `reasoning_details`.
    OpenRouter,
    /// Calls carry `extra_content`.
    Gemini,
    /// Call ids of nine characters; no user directly after a tool.
    Mistral,
    /// Refuses fields it does not know, so reasoning stays here.
    Strict,
    /// Everything else: DeepSeek and what people run themselves. Reasoning goes back as
    /// `reasoning_content`, which DeepSeek demands between calls.
    Plain,
}

/// What is known about a provider by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its wire format.
    pub api: Api,
    /// Where it is.
    pub base_url: &'static str,
    /// The variable that usually holds its key; `None` for servers that need none.
    pub key_variable: Option<&'static str>,
}

/// The names of all providers that are known.
pub const KNOWN: [&str; 12] = [
    "openai",
    "anthropic",
    "openrouter",
    "gemini",
    "deepseek",
    "groq",
    "mistral",
    "together",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
];

/// The defaults of a provider that is known by name.
pub fn known(name: &str) -> Option<Known> {
    use Api::{Anthropic, Ollama, OpenAiChat, OpenAiResponses};
    let (api, base_url, key_variable) = match name {
        "openai" => (OpenAiResponses, "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
        "anthropic" => (Anthropic, "https://api.anthropic.com/v1", Some("ANTHROPIC_API_KEY")),
        "openrouter" => (OpenAiChat, "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY")),
        "gemini" => (
            OpenAiChat,
            "https://generativelanguage.googleapis.com/v1beta/openai",
            Some("GEMINI_API_KEY"),
        ),
        "deepseek" => (OpenAiChat, "https://api.deepseek.com/v1", Some("DEEPSEEK_API_KEY")),
        "groq" => (OpenAiChat, "https://api.groq.com/openai/v1", Some("GROQ_API_KEY")),
        "mistral" => (OpenAiChat, "https://api.mistral.ai/v1", Some("MISTRAL_API_KEY")),
        "together" => (OpenAiChat, "https://api.together.xyz/v1", Some("TOGETHER_API_KEY")),
        "ollama" => (Ollama, "http://127.0.0.1:11434", None),
        "lmstudio" => (OpenAiChat, "http://127.0.0.1:1234/v1", None),
        "llamacpp" => (OpenAiChat, "http://127.0.0.1:8080/v1", None),
        "vllm" => (OpenAiChat, "http://127.0.0.1:8000/v1", None),
        _ => return None,
    };
    Some(Known { api, base_url, key_variable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, api: Api, base: &str) -> Provider {
        let base_url = Url::parse(base).unwrap();
        Provider::without_key(name, api, base_url)
    }

    #[test]
    fn the_endpoint_follows_from_the_base_with_or_without_a_slash() {
        for (api, base, expected) in [
            (Api::OpenAiChat, "http://h:1/v1", "http://h:1/v1/chat/completions"),
            (Api::OpenAiChat, "http://h:1/v1/", "http://h:1/v1/chat/completions"),
            (Api::OpenAiResponses, "http://h:1", "http://h:1/v1/responses"),
            (
                Api::Anthropic,
                "https://api.anthropic.com/v1",
                "https://api.anthropic.com/v1/messages",
            ),
            (Api::Ollama, "http://127.0.0.1:11434", "http://127.0.0.1:11434/api/chat"),
            (Api::Ollama, "http://127.0.0.1:11434/api", "http://127.0.0.1:11434/api/chat"),
        ] {
            assert_eq!(provider("x", api, base).endpoint().as_str(), expected);
        }
    }

    #[test]
    fn every_known_provider_has_an_address_that_parses() {
        for name in KNOWN {
            let known = known(name).unwrap();
            let provider = provider(name, known.api, known.base_url);
            assert_eq!(provider.is_loopback(), known.key_variable.is_none(), "{name}");
        }
        assert_eq!(known("nobody"), None);
    }

    #[test]
    fn the_names_of_formats_are_the_same_everywhere() {
        for api in Api::ALL {
            assert_eq!(api.as_str().parse(), Ok(api));
            assert_eq!(serde_json::to_string(&api).unwrap(), format!("\"{api}\""));
        }
        assert!("openai".parse::<Api>().is_err());
    }
}
