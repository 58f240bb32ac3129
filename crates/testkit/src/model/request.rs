//! What a client asked, the same questions for all shapes.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::Shape;
use super::http::header;

/// A request that reached the server.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Counts the requests of a server, from 1.
    pub number: u64,
    /// When its last byte had been read.
    pub at: Instant,
    /// The connection that it came on, counted from 1.
    pub connection: u64,
    /// How the client speaks.
    pub shape: Shape,
    /// The path, with the query.
    pub path: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The body; null where it was no JSON.
    pub body: Arc<Value>,
    /// The size of the body.
    pub bytes: usize,
}

/// A call in the conversation so far.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedCall {
    /// Its id; empty where the client sent none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; a text where the client sent one that is no JSON.
    pub arguments: Value,
}

impl ModelRequest {
    /// The value of a header; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The system prompt, its parts joined by empty lines.
    pub fn system(&self) -> String {
        let told = match self.shape {
            Shape::Anthropic => vec![text(&self.body["system"])],
            Shape::Responses => {
                let instructions = self.body["instructions"].as_str().map(str::to_owned);
                instructions.into_iter().chain(self.with_role(&["system", "developer"])).collect()
            }
            Shape::Chat | Shape::Ollama => self.with_role(&["system", "developer"]).collect(),
        };
        told.join("\n\n")
    }

    /// The last text of the user; results of tools are none.
    pub fn last_user_text(&self) -> String {
        if self.shape == Shape::Responses
            && let Some(text) = self.body["input"].as_str()
        {
            return text.to_owned();
        }
        self.with_role(&["user"]).filter(|text| !text.is_empty()).last().unwrap_or_default()
    }

    /// The names of the tools on offer.
    pub fn tool_names(&self) -> Vec<String> {
        let names = list(&self.body["tools"]).iter().filter_map(|tool| match self.shape {
            Shape::Chat | Shape::Ollama => tool["function"]["name"].as_str(),
            Shape::Responses | Shape::Anthropic => tool["name"].as_str(),
        });
        names.map(str::to_owned).collect()
    }

    /// The results of calls in the whole conversation, each with its call's id and its text. A client
    /// of Ollama may know no ids; then the tool's name stands there.
    pub fn results(&self) -> Vec<(String, String)> {
        let pair = |id: &Value, content: &Value| (text(id), text(content));
        match self.shape {
            Shape::Chat => messages(&self.body)
                .filter(|message| message["role"] == "tool")
                .map(|message| pair(&message["tool_call_id"], &message["content"]))
                .collect(),
            Shape::Ollama => messages(&self.body)
                .filter(|message| message["role"] == "tool")
                .map(|message| match message.get("tool_call_id") {
                    Some(id) => pair(id, &message["content"]),
                    None => pair(&message["tool_name"], &message["content"]),
                })
                .collect(),
            Shape::Anthropic => messages(&self.body)
                .flat_map(|message| list(&message["content"]))
                .filter(|block| block["type"] == "tool_result")
                .map(|block| pair(&block["tool_use_id"], &block["content"]))
                .collect(),
            Shape::Responses => list(&self.body["input"])
                .iter()
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| pair(&item["call_id"], &item["output"]))
                .collect(),
        }
    }

    /// The calls in the whole conversation.
    pub fn calls(&self) -> Vec<RequestedCall> {
        let call = |id: &Value, name: &Value, arguments: &Value| RequestedCall {
            id: text(id),
            name: text(name),
            arguments: match arguments.as_str() {
                Some(words) => serde_json::from_str(words).unwrap_or_else(|_| arguments.clone()),
                None => arguments.clone(),
            },
        };
        match self.shape {
            Shape::Chat | Shape::Ollama => messages(&self.body)
                .flat_map(|message| list(&message["tool_calls"]))
                .map(|one| {
                    call(&one["id"], &one["function"]["name"], &one["function"]["arguments"])
                })
                .collect(),
            Shape::Anthropic => messages(&self.body)
                .flat_map(|message| list(&message["content"]))
                .filter(|block| block["type"] == "tool_use")
                .map(|block| call(&block["id"], &block["name"], &block["input"]))
                .collect(),
            Shape::Responses => list(&self.body["input"])
                .iter()
                .filter(|item| item["type"] == "function_call")
                .map(|item| call(&item["call_id"], &item["name"], &item["arguments"]))
                .collect(),
        }
    }

    fn with_role(&self, roles: &'static [&str]) -> impl Iterator<Item = String> + '_ {
        let messages = match self.shape {
            Shape::Responses => list(&self.body["input"]),
            Shape::Chat | Shape::Anthropic | Shape::Ollama => list(&self.body["messages"]),
        };
        messages
            .iter()
            .filter(|message| message["role"].as_str().is_some_and(|role| roles.contains(&role)))
            .map(|message| text(&message["content"]))
    }
}

/// The elements of an array; nothing else has any.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    list(&body["messages"]).iter()
}

/// The words of a text or of a list of parts.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
