//! A request as the responses API wants it: a flat list of items.

use std::borrow::Cow;

use mainstay_message::{Schema, ToolSpec};
use serde::Serialize;

use crate::provider::Dialect;
use crate::wire::conversation::{Outcome, Part, Piece, WireMessage, wire_messages};
use crate::wire::ids::{IdRule, call_id, object, tool_name};
use crate::wire::json::DataUrl;
use crate::wire::quirks::Form;
use crate::wire::{Quirks, max_output};
use crate::{Candidate, Effort, Request};

/// The API takes no smaller limit of output.
const LEAST: u32 = 16;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct Thinking {
    effort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Schema,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Vec<Content<'a>> },
    Reasoning { id: &'a str, summary: Vec<Content<'a>>, encrypted_content: &'a str },
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: &'a str },
    FunctionCallOutput { call_id: Cow<'a, str>, output: Output<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    InputImage { image_url: DataUrl<'a> },
    OutputText { text: &'a str },
    SummaryText { text: &'a str },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

/// Writes the body of a request.
pub(crate) fn encode(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Result<Vec<u8>, serde_json::Error> {
    let first = |form: Form| form == Form::First;
    let most = max_output(candidate, request, quirks);
    let openai = candidate.provider.dialect() == Dialect::OpenAi;
    let thinking = |effort: Effort| Thinking {
        effort: effort.as_str(),
        summary: first(quirks.summary).then_some("auto"),
    };
    let body = Body {
        model: &candidate.model,
        instructions: Some(request.system).filter(|system| !system.trim().is_empty()),
        input: input(candidate, request),
        tools: request.tools.iter().map(tool).collect(),
        stream: true,
        store: false,
        include: if first(quirks.include) { &["reasoning.encrypted_content"] } else { &[] },
        max_output_tokens: most.filter(|_| first(quirks.max_output)).map(|most| most.max(LEAST)),
        temperature: request.temperature.filter(|_| first(quirks.temperature)),
        reasoning: request.effort.filter(|_| first(quirks.effort)).map(thinking),
        prompt_cache_key: request.cache_key.filter(|_| openai && first(quirks.cache_key)),
    };
    serde_json::to_vec(&body)
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, parameters } = spec;
    // Strict schemas demand that every field is required, which ours do not promise.
    Tool { r#type: "function", name, description, parameters, strict: false }
}

fn input<'a>(candidate: &Candidate, request: &Request<'a>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for step in wire_messages(request.messages, &candidate.to_string()) {
        match step {
            WireMessage::User(content) => {
                let content = content.into_iter().map(piece).collect();
                items.push(Item::Message { role: "user", content });
            }
            WireMessage::Assistant(parts) => items.extend(parts.into_iter().filter_map(part)),
            WireMessage::Results(outcomes) => items.extend(outcomes.into_iter().map(output)),
        }
    }
    items
}

fn piece(piece: Piece<'_>) -> Content<'_> {
    match piece {
        Piece::Text(text) => Content::InputText { text },
        Piece::Image(image) => Content::InputImage { image_url: DataUrl(image) },
    }
}

fn part(part: Part<'_>) -> Option<Item<'_>> {
    Some(match part {
        Part::Text(text) => {
            Item::Message { role: "assistant", content: vec![Content::OutputText { text }] }
        }
        Part::Call(call) => Item::FunctionCall {
            call_id: call_id(&call.id, IdRule::Plain),
            name: tool_name(&call.name),
            arguments: object(&call.arguments).get(),
        },
        // Nothing is stored there, so an item without its id and its sealed content means nothing to it.
        Part::Reasoning(reasoning) => {
            let text = (!reasoning.text.is_empty()).then_some(reasoning.text.as_str());
            Item::Reasoning {
                id: reasoning.id.as_deref()?,
                summary: text.into_iter().map(|text| Content::SummaryText { text }).collect(),
                encrypted_content: reasoning.sealed.as_deref()?,
            }
        }
    })
}

fn output(outcome: Outcome<'_>) -> Item<'_> {
    let output = match outcome.content[..] {
        [Piece::Text(text)] => Output::Text(text),
        _ => Output::Parts(outcome.content.into_iter().map(piece).collect()),
    };
    Item::FunctionCallOutput { call_id: call_id(outcome.call, IdRule::Plain), output }
}
