//! A request as Ollama wants it, with the size of its context.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::wire::chat::Tool;
use crate::wire::conversation::{Part, Piece, WireMessage, wire_messages};
use crate::wire::ids::{object, tool_name};
use crate::wire::json::{Joined, images};
use crate::wire::quirks::Form;
use crate::wire::{Quirks, max_output};
use crate::{Candidate, Request};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    /// Never: what does not fit would be left out unseen, and the instruction with it. Servers before
    /// 0.12.6 do not know it.
    truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    options: Options,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    On(bool),
    Level(&'static str),
}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Joined<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Joined<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a RawValue,
}

impl<'a> Message<'a> {
    fn new(role: &'static str, content: Joined<'a>) -> Message<'a> {
        let thinking = None;
        let images = Vec::new();
        let tool_calls = Vec::new();
        Message { role, content, thinking, images, tool_calls, tool_name: None }
    }
}

/// Writes the body of a request.
pub(crate) fn encode(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Result<Vec<u8>, serde_json::Error> {
    let first = |form: Form| form == Form::First;
    // Only gpt-oss knows levels; the others think or do not.
    let think = request.effort.filter(|_| first(quirks.effort)).map(|effort| {
        if candidate.model.contains("gpt-oss") {
            Think::Level(effort.of_three())
        } else {
            Think::On(true)
        }
    });
    let most = max_output(candidate, request, quirks);
    let body = Body {
        model: &candidate.model,
        messages: messages(candidate, request),
        tools: Tool::all(request.tools),
        stream: true,
        truncate: false,
        think,
        options: Options {
            num_ctx: candidate.window,
            num_predict: most.filter(|_| first(quirks.max_output)),
            temperature: request.temperature.filter(|_| first(quirks.temperature)),
        },
    };
    serde_json::to_vec(&body)
}

fn messages<'a>(candidate: &Candidate, request: &Request<'a>) -> Vec<Message<'a>> {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(Message::new("system", Joined(vec![request.system])));
    }
    for step in wire_messages(request.messages, &candidate.to_string()) {
        match step {
            WireMessage::User(content) => messages.push(user(&content)),
            WireMessage::Assistant(parts) => messages.push(assistant(&parts)),
            WireMessage::Results(outcomes) => {
                let mut pictures = Vec::new();
                for outcome in outcomes {
                    let mut words = Joined::of_pieces(&outcome.content);
                    let shown = images(&outcome.content);
                    if words.0.is_empty() {
                        words.0.push("(a picture, which follows)");
                    }
                    pictures.extend(shown.into_iter().map(Piece::Image));
                    let mut message = Message::new("tool", words);
                    message.tool_name = Some(tool_name(outcome.name));
                    messages.push(message);
                }
                if !pictures.is_empty() {
                    pictures.insert(0, Piece::Text("Pictures from the results of calls:"));
                    messages.push(user(&pictures));
                }
            }
        }
    }
    messages
}

fn user<'a>(content: &[Piece<'a>]) -> Message<'a> {
    let mut words = Joined::of_pieces(content);
    if words.0.is_empty() {
        words.0.push("(a picture)");
    }
    let mut message = Message::new("user", words);
    message.images = images(content).into_iter().map(|image| image.base64.as_str()).collect();
    message
}

fn assistant<'a>(parts: &[Part<'a>]) -> Message<'a> {
    let mut message = Message::new("assistant", Joined::of_parts(parts));
    for part in parts {
        if let Part::Call(call) = *part {
            let (name, arguments) = (tool_name(&call.name), object(&call.arguments));
            message.tool_calls.push(ToolCall { function: Function { name, arguments } });
        }
    }
    if !message.tool_calls.is_empty() {
        message.thinking = Joined::of_thoughts(parts);
    }
    message
}
