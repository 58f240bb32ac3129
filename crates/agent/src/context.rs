//! Where the tokens of a session go: what the next request is made of.

use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::{self, Counted};
use mainstay_journal::{RECORD, SessionId, entry, session, transcript};
use mainstay_message::{AssistantPart, Content, Message, ToolSpec};
use mainstay_tools::Fact;
use serde::Serialize;

use crate::agent::{Agent, Parts, blocking};
use crate::asking::{IMAGE_BYTES, USUAL_BYTES};
use crate::{Result, prompt};

/// What the next request of a session is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// Its parts, the fixed ones first.
    pub parts: Vec<Part>,
    /// The largest results of tools.
    pub largest: Vec<Large>,
    /// All tokens.
    pub tokens: u64,
    /// How many the model takes, where that is known.
    pub window: Option<u64>,
    /// What the provider counted last, by which the figures are set; without it they are estimates.
    pub counted: Option<Counted>,
}

/// A part of a request.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// Its bytes; a picture counts as some.
    pub bytes: usize,
    /// Its tokens, estimated from its bytes.
    pub tokens: u64,
}

/// A large result.
#[derive(Clone, Debug, Serialize)]
pub struct Large {
    /// The tool.
    pub tool: String,
    /// What it was asked for, shortened.
    pub asked: String,
    /// Its tokens.
    pub tokens: u64,
}

/// So many of the largest results are named.
const LARGEST: usize = 5;

impl Agent {
    /// Where the tokens of a session go.
    pub fn context(&self, id: SessionId) -> Result<Context> {
        let Parts { store, offer, settings, .. } = &*self.parts;
        let (prompt, entries, counted) = blocking(|| {
            store.read(|tx| -> mainstay_journal::Result<_> {
                let row = session::get(tx, id)?;
                let prompt = match &row {
                    Some(row) => session::prompt(tx, row)?,
                    None => String::new(),
                };
                Ok((prompt, entry::all(tx, id)?, model_call::last_counted(tx, id)?))
            })
        })?;
        let messages = transcript(&entries);
        let window = settings.chain.first().and_then(|candidate| candidate.window);
        let specs = offer.specs(&loaded(&entries));
        Ok(measured(&prompt, &specs, &messages, counted, window))
    }
}

/// The tools that the model asked for.
fn loaded(entries: &[Entry]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for entry in entries {
        let Body::Result { facts, .. } = &entry.body else { continue };
        for fact in facts {
            if let Ok(Fact::Loaded { tool }) = serde_json::from_value(fact.clone())
                && !tools.contains(&tool)
            {
                tools.push(tool);
            }
        }
    }
    tools
}

/// The bytes of a conversation; a picture counts as some.
pub(crate) fn bytes(messages: &[Message]) -> usize {
    Kinds::of(messages).all()
}

/// What a request is made of that has so many tokens in all.
pub(crate) fn measured_as(
    prompt: &str,
    specs: &[ToolSpec],
    messages: &[Message],
    tokens: u64,
    window: Option<u64>,
) -> Context {
    let bytes = prompt.len() + specs.iter().map(spec_bytes).sum::<usize>() + bytes(messages);
    let bytes_a_token = ratio(bytes, tokens.max(1));
    made_of(prompt, specs, messages, bytes_a_token, None, window)
}

fn measured(
    prompt: &str,
    specs: &[ToolSpec],
    messages: &[Message],
    counted: Option<Counted>,
    window: Option<u64>,
) -> Context {
    let fixed = prompt.len() + specs.iter().map(spec_bytes).sum::<usize>();
    // What was asked last went up to the last answer.
    let last_answer = messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let asked = last_answer.map(|end| fixed + Kinds::of(&messages[..end]).all());
    let bytes_a_token = match (&counted, asked) {
        (Some(counted), Some(asked)) if counted.tokens > 0 => ratio(asked, counted.tokens),
        _ => USUAL_BYTES,
    };
    made_of(prompt, specs, messages, bytes_a_token, counted, window)
}

fn made_of(
    prompt: &str,
    specs: &[ToolSpec],
    messages: &[Message],
    bytes_a_token: f64,
    counted: Option<Counted>,
    window: Option<u64>,
) -> Context {
    let mut sizes = Vec::new();
    let (own, instructions) = prompt::parts(prompt);
    sizes.push(("system prompt".to_owned(), own.len()));
    for (name, text) in instructions {
        sizes.push((name, text.len()));
    }
    sizes.push(("tools".to_owned(), specs.iter().map(spec_bytes).sum()));
    sizes.extend(Kinds::of(messages).named().into_iter().filter(|(_, bytes)| *bytes > 0));
    let parts: Vec<Part> = sizes
        .into_iter()
        .map(|(name, bytes)| Part { name, bytes, tokens: tokens(bytes, bytes_a_token) })
        .collect();
    Context {
        tokens: parts.iter().map(|part| part.tokens).sum(),
        parts,
        largest: largest(messages, bytes_a_token),
        window,
        counted,
    }
}

/// Bytes of messages by their kind.
#[derive(Clone, Copy, Default)]
struct Kinds {
    user: usize,
    notices: usize,
    record: usize,
    pictures: usize,
    said: usize,
    thought: usize,
    calls: usize,
    results: usize,
}

impl Kinds {
    fn of(messages: &[Message]) -> Self {
        let mut kinds = Self::default();
        for message in messages {
            match message {
                Message::User(content) => {
                    for part in content {
                        match part {
                            Content::Text(text) if text.starts_with(RECORD) => {
                                kinds.record += text.len();
                            }
                            Content::Text(text) if text.starts_with("[Mainstay: ") => {
                                kinds.notices += text.len();
                            }
                            Content::Text(text) => kinds.user += text.len(),
                            Content::Image(_) => kinds.pictures += IMAGE_BYTES,
                        }
                    }
                }
                Message::Assistant(parts) => {
                    for part in parts {
                        match part {
                            AssistantPart::Text(text) => kinds.said += text.len(),
                            AssistantPart::Reasoning(thought) => {
                                kinds.thought += thought.text.len();
                            }
                            AssistantPart::Call(call) => {
                                kinds.calls += call.name.len() + call.arguments.len() + 60;
                            }
                        }
                    }
                }
                Message::Results(results) => {
                    for result in results {
                        kinds.results += 40;
                        for part in &result.content {
                            match part {
                                Content::Text(text) => kinds.results += text.len(),
                                Content::Image(_) => kinds.pictures += IMAGE_BYTES,
                            }
                        }
                    }
                }
            }
        }
        kinds
    }

    fn named(self) -> Vec<(String, usize)> {
        let named = [
            ("record of what was compacted", self.record),
            ("your messages", self.user),
            ("answers", self.said),
            ("thoughts", self.thought),
            ("calls of tools", self.calls),
            ("results of tools", self.results),
            ("pictures", self.pictures),
            ("notices", self.notices),
        ];
        named.map(|(name, bytes)| (name.to_owned(), bytes)).to_vec()
    }

    fn all(self) -> usize {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }
}

fn largest(messages: &[Message], bytes_a_token: f64) -> Vec<Large> {
    let mut calls = Vec::new();
    let mut found = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(parts) => calls.extend(parts.iter().filter_map(|part| match part {
                AssistantPart::Call(call) => Some(call),
                _ => None,
            })),
            Message::Results(results) => {
                for result in results {
                    let bytes: usize =
                        result.content.iter().filter_map(Content::text).map(str::len).sum();
                    let asked = calls.iter().rev().find(|call| call.id == result.call);
                    let asked = asked.map_or("", |call| call.arguments.as_str());
                    found.push(Large {
                        tool: result.name.clone(),
                        asked: asked.chars().take(60).collect(),
                        tokens: tokens(bytes, bytes_a_token),
                    });
                }
            }
            Message::User(_) => {}
        }
    }
    found.sort_by_key(|large| std::cmp::Reverse(large.tokens));
    found.truncate(LARGEST);
    found
}

fn spec_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn ratio(bytes: usize, tokens: u64) -> f64 {
    (bytes as f64 / tokens as f64).clamp(0.5, 20.0)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn tokens(bytes: usize, bytes_a_token: f64) -> u64 {
    (bytes as f64 / bytes_a_token).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_what_the_provider_counted() {
        let text = |bytes: usize| vec![Content::Text("x".repeat(bytes))];
        let messages = [
            Message::User(text(1_000)),
            Message::Assistant(vec![AssistantPart::Text("y".repeat(200))]),
        ];
        let counted = Counted { model: "m".to_owned(), tokens: 500 };
        let context = measured(&"p".repeat(1_000), &[], &messages, Some(counted), Some(8_000));
        let tokens: Vec<(&str, u64)> =
            context.parts.iter().map(|part| (part.name.as_str(), part.tokens)).collect();
        let expected =
            [("system prompt", 250), ("tools", 0), ("your messages", 250), ("answers", 50)];
        assert_eq!(tokens, expected);
        assert_eq!(context.tokens, 550);
    }
}
