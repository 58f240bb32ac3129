//! A reply as the bytes that a real server of a shape would send.

use serde_json::{Value, json};

use super::Shape;
use super::delivery::Rendered;
use super::http::Framing;
use super::reply::{Body, Fault, Message, Part, Reply, Tokens};

mod anthropic;
mod chat;
mod ollama;
mod responses;

/// What of a request shapes the answer to it.
pub(super) struct Occasion {
    /// The model that was asked for.
    pub(super) model: String,
    /// Unique among all answers; ids are made from it.
    pub(super) tag: String,
    /// Counts the answers of a server.
    pub(super) number: u64,
    /// Whether a chat's client asked for the chunk of usage.
    pub(super) usage_wanted: bool,
    /// Whether a client of responses asked for sealed reasoning.
    pub(super) seals_wanted: bool,
    /// The size of the request.
    pub(super) bytes: usize,
}

impl Occasion {
    /// One that asks for everything, to count events.
    pub(super) fn typical() -> Self {
        Self {
            model: "scripted".to_owned(),
            tag: "00000000".to_owned(),
            number: 1,
            usage_wanted: true,
            seals_wanted: true,
            bytes: 0,
        }
    }

    /// Reads it from a request.
    pub(super) fn of(body: &Value, tag: String, number: u64, bytes: usize) -> Self {
        let include = body["include"].as_array();
        Self {
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            tag,
            number,
            usage_wanted: body["stream_options"]["include_usage"] == true,
            seals_wanted: include.is_some_and(|wanted| {
                wanted.iter().any(|one| one == "reasoning.encrypted_content")
            }),
            bytes,
        }
    }

    /// Seconds since 1970 that the answer bears; they mean nothing.
    fn created(&self) -> u64 {
        1_760_000_000 + self.number
    }

    /// The tokens that the reply names, or a guess.
    fn tokens(&self, message: &Message) -> Tokens {
        let length = |part: &Part| match part {
            Part::Reasoning(text) | Part::SealedReasoning(text) | Part::Text(text) => text.len(),
            Part::Call { name, arguments } => name.len() + arguments.len(),
        };
        message.usage.unwrap_or_else(|| Tokens {
            input: self.bytes as u64 / 4 + 1,
            output: message.parts.iter().map(length).sum::<usize>() as u64 / 4 + 1,
            ..Tokens::default()
        })
    }
}

/// Marks the ids of calls that were thought about: their thoughts must come back with them.
pub(super) const THOUGHT: &str = "thought_";

/// Marks the ids of calls that bear a signature: it must come back with them.
pub(super) const SIGNED: &str = "signed_";

/// The part of a call's id that follows the shape's prefix.
fn call_name(message: &Message, occasion: &Occasion, index: usize) -> String {
    let thought = |part: &Part| matches!(part, Part::Reasoning(_) | Part::SealedReasoning(_));
    let mark = if message.parts.iter().any(thought) { THOUGHT } else { "" };
    format!("{mark}{}{index:02}", occasion.tag)
}

/// The answer to a request of a shape.
pub(super) fn render(reply: &Reply, shape: Shape, occasion: &Occasion) -> Rendered {
    let events = events(reply, shape, occasion);
    let length = events.iter().map(Vec::len).sum();
    let (status, framing, content_type) = match &reply.body {
        Body::Message(_) => (200, Framing::Chunked, Some(shape.content_type())),
        Body::Fault(fault) => (fault.status, Framing::Length(length), Some("application/json")),
        Body::Raw { status, .. } => (*status, Framing::Length(length), None),
    };
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| {
        // A header of the script replaces the usual one.
        if !reply.headers.iter().any(|(given, _)| given == name) {
            headers.push((name.to_owned(), value));
        }
    };
    if let Some(content_type) = content_type {
        add("content-type", content_type.to_owned());
    }
    if let Some(name) = shape.request_id_header() {
        add(name, request_id(occasion));
    }
    headers.extend(reply.headers.iter().cloned());
    Rendered { status, headers, framing, events }
}

/// The events of a reply, each as it goes over the wire.
pub(super) fn events(reply: &Reply, shape: Shape, occasion: &Occasion) -> Vec<Vec<u8>> {
    match &reply.body {
        Body::Message(message) => match shape {
            Shape::Chat => chat::events(message, occasion),
            Shape::Responses => responses::events(message, occasion),
            Shape::Anthropic => anthropic::events(message, occasion),
            Shape::Ollama => ollama::events(message, occasion),
        },
        Body::Fault(fault) => vec![error_body(fault, shape, occasion).to_string().into_bytes()],
        Body::Raw { bytes, .. } => vec![bytes.clone()],
    }
}

/// The name of an exchange, as its header tells it.
pub(super) fn request_id(occasion: &Occasion) -> String {
    format!("req_{}", occasion.tag)
}

/// The events of an error in the middle of a stream.
pub(super) fn error_events(shape: Shape, kind: &str, words: &str) -> Vec<Vec<u8>> {
    match shape {
        Shape::Chat => vec![data(&json!({
            "error": {"message": words, "type": kind, "param": null, "code": kind},
        }))],
        Shape::Anthropic => vec![named(&json!({
            "type": "error",
            "error": {"type": kind, "message": words},
        }))],
        Shape::Responses => responses::error_events(kind, words),
        Shape::Ollama => vec![line(&json!({"error": words}))],
    }
}

/// An event that is no JSON.
pub(super) fn garbage(shape: Shape) -> Vec<u8> {
    match shape {
        Shape::Ollama => b"<html>{\"oops\": \n".to_vec(),
        Shape::Chat | Shape::Responses | Shape::Anthropic => {
            b"data: <html>{\"oops\": \n\n".to_vec()
        }
    }
}

/// The body of an error, as the shape's own servers word it.
fn error_body(fault: &Fault, shape: Shape, occasion: &Occasion) -> Value {
    let words = &fault.words;
    match shape {
        Shape::Chat | Shape::Responses => {
            let (kind, code) = openai_kind(fault.status);
            json!({"error": {
                "message": words,
                "type": fault.kind.as_deref().unwrap_or(kind),
                "param": fault.param,
                "code": fault.code.as_deref().or(fault.kind.as_deref()).or(code),
            }})
        }
        Shape::Anthropic => json!({
            "type": "error",
            "error": {
                "type": fault.kind.as_deref().unwrap_or(anthropic_kind(fault.status)),
                "message": words,
            },
            "request_id": request_id(occasion),
        }),
        Shape::Ollama => json!({"error": words}),
    }
}

fn openai_kind(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        403 => ("invalid_request_error", Some("unsupported_country_region_territory")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        503 => ("server_error", Some("service_unavailable")),
        _ => ("server_error", None),
    }
}

fn anthropic_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}

/// A server-sent event without a name.
fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

/// A server-sent event with the name that is its type.
fn named(value: &Value) -> Vec<u8> {
    let name = value["type"].as_str().expect("an event with a name has a type");
    format!("event: {name}\ndata: {value}\n\n").into_bytes()
}

/// A line of JSON.
fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// A text in up to three pieces, cut between characters.
fn pieces(text: &str) -> Vec<&str> {
    let size = text.len().div_ceil(3).max(1);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
