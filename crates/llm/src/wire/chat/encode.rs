//! A request as chat completions want it.

use std::borrow::Cow;

use mainstay_message::{Call, Image, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::memo::Whole;
use crate::provider::Dialect;
use crate::wire::conversation::{Outcome, Part, Piece, WireMessage, wire_messages_of};
use crate::wire::ids::{IdRule, call_id, object, tool_name};
use crate::wire::json::{DataUrl, Joined, images};
use crate::wire::quirks::Form;
use crate::wire::{Quirks, max_output};
use crate::{Candidate, Memo, Request};

#[derive(Serialize)]
struct Rest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// `null` beside calls where nothing was said.
        content: Option<Joined<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Joined<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Joined<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Joined<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(&'a str),
    Parts(Vec<UserPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UserPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// A tool on offer, as chat completions and Ollama write it.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    r#type: &'static str,
    function: &'a ToolSpec,
}

impl<'a> Tool<'a> {
    pub(crate) fn all(tools: &'a [ToolSpec]) -> Vec<Tool<'a>> {
        tools.iter().map(|function| Tool { r#type: "function", function }).collect()
    }
}

/// How much longer than the one before a request usually is at most.
const MORE: usize = 8 << 10;

/// Writes the body of a request.
pub(crate) fn encode(
    candidate: &Candidate,
    request: &Request<'_>,
    quirks: &Quirks,
) -> Result<Vec<u8>, serde_json::Error> {
    let dialect = candidate.provider.dialect();
    let most = max_output(candidate, request, quirks);
    let newer = match quirks.max_output {
        Form::First => dialect == Dialect::OpenAi,
        Form::Second => dialect != Dialect::OpenAi,
        Form::Omitted => false,
    };
    let older = !newer && quirks.max_output != Form::Omitted;
    let first = |form: Form| form == Form::First;
    let rest = Rest {
        model: &candidate.model,
        tools: Tool::all(request.tools),
        stream: true,
        stream_options: first(quirks.stream_options)
            .then_some(StreamOptions { include_usage: true }),
        max_tokens: most.filter(|_| older),
        max_completion_tokens: most.filter(|_| newer),
        temperature: request.temperature.filter(|_| first(quirks.temperature)),
        reasoning_effort: request
            .effort
            .filter(|_| first(quirks.effort))
            .map(crate::Effort::as_str),
        prompt_cache_key: request
            .cache_key
            .filter(|_| dialect == Dialect::OpenAi && first(quirks.cache_key)),
    };
    let none = Memo::default();
    let memo = request.memo.unwrap_or(&none);
    let mut body = Vec::with_capacity(memo.last_size() + MORE);
    body.extend_from_slice(br#"{"messages":["#);
    if !request.system.trim().is_empty() {
        serde_json::to_writer(&mut body, &Message::System { content: request.system })?;
        body.push(b',');
    }
    memo.write(&candidate.to_string(), request.messages, &mut body, |piece, part, out| {
        for (index, message) in messages(candidate, piece, part, dialect).iter().enumerate() {
            if index > 0 || !part.begins() {
                out.push(b',');
            }
            serde_json::to_writer(&mut *out, message)?;
        }
        Ok(())
    })?;
    body.push(b']');
    // The rest is an object too, and never an empty one: it goes on where the messages end.
    let start = body.len();
    serde_json::to_writer(&mut body, &rest)?;
    body[start] = b',';
    memo.was_sized(body.len());
    Ok(body)
}

fn messages<'a>(
    candidate: &Candidate,
    piece: &'a [mainstay_message::Message],
    whole: Whole,
    dialect: Dialect,
) -> Vec<Message<'a>> {
    let model = candidate.to_string();
    let steps = wire_messages_of(piece, whole, &model);
    let mut messages = Vec::with_capacity(steps.len() + 1);
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        match step {
            WireMessage::User(content) => {
                messages.push(user(content.into_iter().map(part).collect()));
            }
            WireMessage::Assistant(parts) => messages.push(assistant(&parts, candidate, dialect)),
            WireMessage::Results(outcomes) => {
                let mut after = Vec::new();
                for outcome in outcomes {
                    after.extend(pictures(&outcome));
                    messages.push(tool(&outcome, dialect));
                }
                if let Some(WireMessage::User(content)) = steps.peek() {
                    after.extend(content.iter().copied().map(part));
                    steps.next();
                }
                if after.is_empty() {
                    continue;
                }
                // Mistral takes a user's message only after the model's.
                if dialect == Dialect::Mistral {
                    let content = Some(Joined(vec!["Understood."]));
                    messages.push(Message::Assistant {
                        content,
                        reasoning_content: None,
                        reasoning: None,
                        reasoning_details: None,
                        tool_calls: Vec::new(),
                    });
                }
                messages.push(user(after));
            }
        }
    }
    messages
}

fn user(mut parts: Vec<UserPart<'_>>) -> Message<'_> {
    let content = match parts[..] {
        [UserPart::Text { text }] => UserContent::Text(text),
        _ => UserContent::Parts(std::mem::take(&mut parts)),
    };
    Message::User { content }
}

fn part(piece: Piece<'_>) -> UserPart<'_> {
    match piece {
        Piece::Text(text) => UserPart::Text { text },
        Piece::Image(image) => UserPart::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } },
    }
}

/// A tool's message holds words only; its pictures follow in the user's.
fn pictures<'a>(outcome: &Outcome<'a>) -> Vec<UserPart<'a>> {
    let images: Vec<&Image> = images(&outcome.content);
    if images.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![UserPart::Text { text: "Pictures from the result of a call:" }];
    parts.extend(images.into_iter().map(|image| part(Piece::Image(image))));
    parts
}

fn tool<'a>(outcome: &Outcome<'a>, dialect: Dialect) -> Message<'a> {
    let mut content = Joined::of_pieces(&outcome.content);
    if content.0.is_empty() {
        content.0.push("(a picture, which follows)");
    }
    Message::Tool { tool_call_id: call_id(outcome.call, id_rule(dialect)), content }
}

fn id_rule(dialect: Dialect) -> IdRule {
    if dialect == Dialect::Mistral { IdRule::Nine } else { IdRule::Plain }
}

fn assistant<'a>(parts: &[Part<'a>], candidate: &Candidate, dialect: Dialect) -> Message<'a> {
    let said = Joined::of_parts(parts);
    let mut calls: Vec<ToolCall<'a>> = Vec::new();
    for part in parts {
        if let Part::Call(call) = *part {
            let first = calls.is_empty();
            calls.push(ToolCall {
                id: call_id(&call.id, id_rule(dialect)),
                r#type: "function",
                function: Function {
                    name: tool_name(&call.name),
                    arguments: object(&call.arguments).get(),
                },
                extra_content: extra(call, candidate, dialect, first),
            });
        }
    }
    // Reasoning matters between calls; after the last word of a turn it is only weight.
    let between = !calls.is_empty();
    let thoughts = || Joined::of_thoughts(parts).filter(|_| between);
    let details = parts.iter().find_map(|part| match part {
        Part::Reasoning(reasoning) => reasoning.sealed.as_deref(),
        Part::Text(_) | Part::Call(_) => None,
    });
    let reasoning_details = details
        .filter(|_| dialect == Dialect::OpenRouter)
        .and_then(|details| serde_json::from_str(details).ok());
    Message::Assistant {
        content: (!said.0.is_empty()).then_some(said),
        reasoning_content: if dialect == Dialect::Plain { thoughts() } else { None },
        reasoning: match dialect {
            Dialect::OpenRouter if reasoning_details.is_none() => thoughts(),
            _ => None,
        },
        reasoning_details,
        tool_calls: calls,
    }
}

/// What the provider wants back with a call, if it was this candidate's own.
fn extra<'a>(
    call: &'a Call,
    candidate: &Candidate,
    dialect: Dialect,
    first: bool,
) -> Option<Cow<'a, Value>> {
    let own = call.extra.as_ref().filter(|extra| {
        extra.get("origin").and_then(Value::as_str) == Some(candidate.to_string().as_str())
    });
    if let Some(content) = own.and_then(|extra| extra.get("extra_content")) {
        return Some(Cow::Borrowed(content));
    }
    // Gemini 3 refuses a first call without a signature, and accepts this in place of one for calls
    // that another model made.
    let unsigned = dialect == Dialect::Gemini && candidate.model.contains("gemini-3") && first;
    unsigned.then(|| {
        let signature =
            serde_json::json!({"thought_signature": "skip_thought_signature_validator"});
        Cow::Owned(serde_json::json!({"google": signature}))
    })
}
