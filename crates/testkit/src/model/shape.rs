//! The four ways in which model servers are spoken to.

use std::fmt;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// OpenAI's chat completions, and all that imitate them.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Ollama's own.
    Ollama,
}

impl Shape {
    /// All shapes, for tests that go through them.
    pub const ALL: [Shape; 4] = [Shape::Chat, Shape::Responses, Shape::Anthropic, Shape::Ollama];

    /// The shape that is spoken at a path.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        Self::ALL.into_iter().find(|shape| path.ends_with(shape.endpoint()))
    }

    /// How the path of a request ends.
    pub fn endpoint(self) -> &'static str {
        match self {
            Shape::Chat => "/chat/completions",
            Shape::Responses => "/responses",
            Shape::Anthropic => "/messages",
            Shape::Ollama => "/api/chat",
        }
    }

    /// What a client's base URL has after host and port.
    pub fn base_path(self) -> &'static str {
        match self {
            Shape::Chat | Shape::Responses | Shape::Anthropic => "/v1",
            Shape::Ollama => "",
        }
    }

    /// The name by which configurations of the product call it.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Chat => "openai-chat",
            Shape::Responses => "openai-responses",
            Shape::Anthropic => "anthropic",
            Shape::Ollama => "ollama",
        }
    }

    /// The header in which the server names the exchange; Ollama has none.
    pub fn request_id_header(self) -> Option<&'static str> {
        match self {
            Shape::Chat | Shape::Responses => Some("x-request-id"),
            Shape::Anthropic => Some("request-id"),
            Shape::Ollama => None,
        }
    }

    /// The type of a streamed answer.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Shape::Ollama => "application/x-ndjson",
            Shape::Chat | Shape::Responses | Shape::Anthropic => "text/event-stream; charset=utf-8",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
