//! A request as Anthropic wants it, with the marks that let its cache hold.

use std::borrow::Cow;

use mainstay_message::{Image, Schema, ToolSpec};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::wire::Quirks;
use crate::wire::conversation::{Outcome, Part, Piece, WireMessage, wire_messages};
use crate::wire::ids::{IdRule, call_id, object, tool_name};
use crate::wire::quirks::Form;
use crate::{Candidate, Effort, Request};

/// What is asked for where nobody says how much may be written; the format demands a number.
const MOST: u32 = 8192;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u32 },
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// A block, with a mark up to which the provider may keep the request.
#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct Mark {}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> From<Kind<'a>> for Block<'a> {
    fn from(kind: Kind<'a>) -> Block<'a> {
        Block { kind, cache_control: None }
    }
}

/// Writes the body of a request.
pub(crate) fn encode(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Result<Vec<u8>, serde_json::Error> {
    let most = most(candidate, request, quirks);
    let steps = wire_messages(request.messages, &candidate.to_string());
    let adaptive = match quirks.effort {
        Form::First => thinks_adaptively(&candidate.model),
        Form::Second => !thinks_adaptively(&candidate.model),
        Form::Omitted => false,
    };
    let effort = request.effort.filter(|_| quirks.effort != Form::Omitted);
    let thinking = match effort {
        Some(_) if adaptive => Some(Thinking::Adaptive),
        // With a budget, a round of calls that began without thought cannot go on with it.
        Some(effort) if !in_thoughtless_round(&steps) => budget(effort, most),
        _ => None,
    };
    let mut system: Vec<Block<'_>> = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(Block {
            kind: Kind::Text { text: request.system },
            cache_control: Some(Mark {}),
        });
    }
    let sampled = quirks.temperature == Form::First && thinking.is_none();
    let body = Body {
        model: &candidate.model,
        max_tokens: most,
        system,
        tools: tools(request.tools),
        messages: messages(steps),
        stream: true,
        temperature: request.temperature.filter(|_| sampled),
        thinking,
        output_config: effort
            .filter(|_| adaptive)
            .map(|effort| OutputConfig { effort: effort.of_three() }),
    };
    serde_json::to_vec(&body)
}

/// The limit of output that a request names.
pub(crate) fn most(candidate: &Candidate, request: &Request<'_>, quirks: &Quirks) -> u32 {
    let most = request.max_output.or(candidate.max_output).unwrap_or(MOST);
    quirks.output_cap.map_or(most, |cap| most.min(cap)).max(1)
}

/// Models from 4.6 on decide themselves how much to think; those before are given a budget.
fn thinks_adaptively(model: &str) -> bool {
    let numbers = model.split(['-', '.']).filter_map(|word| word.parse::<u32>().ok());
    let mut version = numbers.filter(|number| *number < 100);
    let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
    version >= (4, 6)
}

/// Whether the conversation stands within a round of calls whose message has no thought of its own.
fn in_thoughtless_round(steps: &[WireMessage<'_>]) -> bool {
    let [.., WireMessage::Assistant(parts), WireMessage::Results(_)] = steps else { return false };
    !matches!(parts.first(), Some(Part::Reasoning(reasoning))
        if reasoning.signature.is_some() || reasoning.sealed.is_some())
}

/// A budget for thought that leaves room for the answer, where there is room for both.
fn budget(effort: Effort, most: u32) -> Option<Thinking> {
    let wanted = match effort {
        Effort::Minimal => 1024,
        Effort::Low => 4096,
        Effort::Medium => 12_288,
        Effort::High => 32_768,
    };
    let budget_tokens = wanted.min(most / 2);
    (budget_tokens >= 1024).then_some(Thinking::Enabled { budget_tokens })
}

fn tools(specs: &[ToolSpec]) -> Vec<Tool<'_>> {
    let mut tools: Vec<Tool<'_>> = specs
        .iter()
        .map(|ToolSpec { name, description, parameters }| Tool {
            name,
            description,
            input_schema: parameters,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(Mark {});
    }
    tools
}

fn messages(steps: Vec<WireMessage<'_>>) -> Vec<Message<'_>> {
    let mut messages: Vec<Message<'_>> = Vec::with_capacity(steps.len());
    for step in steps {
        let (role, content): (_, Vec<Block<'_>>) = match step {
            WireMessage::User(content) => ("user", content.into_iter().map(piece).collect()),
            WireMessage::Assistant(parts) => {
                ("assistant", parts.into_iter().filter_map(part).collect())
            }
            WireMessage::Results(outcomes) => ("user", outcomes.into_iter().map(result).collect()),
        };
        match messages.last_mut() {
            // Results and the user's words after them are one message, results first.
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(Message { role, content }),
        }
    }
    // Two marks: one finds what was kept in the round before, the other keeps this round's.
    let user = messages.iter_mut().rev().filter(|message| message.role == "user");
    for message in user.take(2) {
        if let Some(block) = message.content.last_mut() {
            block.cache_control = Some(Mark {});
        }
    }
    messages
}

fn piece(piece: Piece<'_>) -> Block<'_> {
    match piece {
        Piece::Text(text) => Kind::Text { text }.into(),
        Piece::Image(Image { media_type, base64 }) => {
            Kind::Image { source: Source { r#type: "base64", media_type, data: base64 } }.into()
        }
    }
}

fn part(part: Part<'_>) -> Option<Block<'_>> {
    let kind = match part {
        Part::Text(text) => Kind::Text { text },
        Part::Call(call) => Kind::ToolUse {
            id: call_id(&call.id, IdRule::Plain),
            name: tool_name(&call.name),
            input: object(&call.arguments),
        },
        Part::Reasoning(reasoning) => match (&reasoning.sealed, &reasoning.signature) {
            (Some(data), _) => Kind::RedactedThinking { data },
            (None, Some(signature)) => Kind::Thinking { thinking: &reasoning.text, signature },
            // A thought that cannot be proven is refused.
            (None, None) => return None,
        },
    };
    Some(kind.into())
}

fn result(outcome: Outcome<'_>) -> Block<'_> {
    let content = match outcome.content[..] {
        [Piece::Text(text)] => Content::Text(text),
        _ => Content::Blocks(outcome.content.into_iter().map(piece).collect()),
    };
    let tool_use_id = call_id(outcome.call, IdRule::Plain);
    Kind::ToolResult { tool_use_id, content, is_error: outcome.failed }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_think_follows_from_the_version() {
        for (model, expected) in [
            ("claude-opus-4-6", true),
            ("claude-sonnet-5", true),
            ("claude-opus-4-5-20251101", false),
            ("claude-sonnet-4-20250514", false),
            ("claude-3-7-sonnet-latest", false),
            ("scripted", false),
        ] {
            assert_eq!(thinks_adaptively(model), expected, "{model}");
        }
    }
}
