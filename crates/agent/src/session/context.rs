//! Where the tokens of a session go: what the next request is made of.

use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::{self, Counted};
use mainstay_journal::{RECORD, SessionId, entry, session, transcript};
use mainstay_message::{AssistantPart, Content, Message, ToolSpec};
use mainstay_tools::Fact;
use serde::Serialize;

use crate::agent::Agent;
use crate::turn::request_size::{RESULT_BYTES, USUAL_BYTES, content_bytes, part_bytes};
use crate::{Result, session::offered_tools, session::prompt};

/// What the next request of a session is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// Its parts, the fixed ones first.
    pub parts: Vec<ContextPart>,
    /// The largest results of tools.
    pub largest: Vec<LargeResult>,
    /// All tokens.
    pub tokens: u64,
    /// How many the model takes, if that is known.
    pub window: Option<u64>,
    /// What the provider counted last, by which the figures are set; without it they are estimates.
    pub counted: Option<Counted>,
}

/// A part of a request.
#[derive(Clone, Debug, Serialize)]
pub struct ContextPart {
    /// What it is.
    pub name: String,
    /// Its bytes; a picture counts as some.
    pub bytes: usize,
    /// Its tokens, estimated from its bytes.
    pub tokens: u64,
}

/// A large result.
#[derive(Clone, Debug, Serialize)]
pub struct LargeResult {
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
        let (prompt, entries, counted) = self.read(|tx| -> mainstay_journal::Result<_> {
            let row = session::get(tx, id)?;
            let prompt = match &row {
                Some(row) => session::prompt(tx, row)?,
                None => String::new(),
            };
            Ok((prompt, entry::all(tx, id)?, model_call::last_counted(tx, id)?))
        })?;
        let messages = transcript(&entries);
        let window = self.window();
        let specs = self.parts.offer.specs(&loaded(&entries));
        let fixed = prompt.len() + specs.iter().map(offered_tools::size).sum::<usize>();
        let tokens = counted.as_ref().map(|counted| counted.tokens);
        let bytes_a_token = scale(fixed, &entries, &messages, tokens).unwrap_or(USUAL_BYTES);
        Ok(made_of(&prompt, &specs, &messages, bytes_a_token, counted, window))
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
    let bytes =
        prompt.len() + specs.iter().map(offered_tools::size).sum::<usize>() + bytes(messages);
    let bytes_a_token = ratio(bytes, tokens.max(1));
    made_of(prompt, specs, messages, bytes_a_token, None, window)
}

/// The bytes of a token, by what was counted for the last answer, or by what was measured when the view
/// was changed since. Returns `None` if neither is known.
pub(crate) fn scale(
    fixed: usize,
    entries: &[Entry],
    messages: &[Message],
    counted: Option<u64>,
) -> Option<f64> {
    let last = entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Assistant { .. } => Some(None),
        Body::Compaction(made) => Some(Some(made.after)),
        Body::Restored { .. } => Some(Some(0)),
        _ => None,
    })?;
    let (shown, tokens) = match last {
        Some(after) => (messages, after),
        // What was asked last went up to the last answer.
        None => {
            let answers = |message: &Message| matches!(message, Message::Assistant(_));
            (messages.get(..messages.iter().rposition(answers)?)?, counted?)
        }
    };
    (tokens > 0).then(|| ratio(fixed + bytes(shown), tokens))
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
    sizes.push(("tools".to_owned(), specs.iter().map(offered_tools::size).sum()));
    sizes.extend(Kinds::of(messages).named().into_iter().filter(|(_, bytes)| *bytes > 0));
    let parts: Vec<ContextPart> = sizes
        .into_iter()
        .map(|(name, bytes)| ContextPart { name, bytes, tokens: tokens(bytes, bytes_a_token) })
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
                        let kind = match part {
                            Content::Text(text) if text.starts_with(RECORD) => &mut kinds.record,
                            Content::Text(text) if text.starts_with("[Mainstay: ") => {
                                &mut kinds.notices
                            }
                            Content::Text(_) => &mut kinds.user,
                            Content::Image(_) => &mut kinds.pictures,
                        };
                        *kind += content_bytes(part);
                    }
                }
                Message::Assistant(parts) => {
                    for part in parts {
                        let kind = match part {
                            AssistantPart::Text(_) => &mut kinds.said,
                            AssistantPart::Reasoning(_) => &mut kinds.thought,
                            AssistantPart::Call(_) => &mut kinds.calls,
                        };
                        *kind += part_bytes(part);
                    }
                }
                Message::Results(results) => {
                    for result in results {
                        kinds.results += RESULT_BYTES;
                        for part in &result.content {
                            let kind = match part {
                                Content::Text(_) => &mut kinds.results,
                                Content::Image(_) => &mut kinds.pictures,
                            };
                            *kind += content_bytes(part);
                        }
                    }
                }
            }
        }
        kinds
    }

    fn named(self) -> Vec<(String, usize)> {
        let named = [
            ("compaction record", self.record),
            ("your messages", self.user),
            ("answers", self.said),
            ("reasoning", self.thought),
            ("tool calls", self.calls),
            ("tool results", self.results),
            ("pictures", self.pictures),
            ("notices", self.notices),
        ];
        named.map(|(name, bytes)| (name.to_owned(), bytes)).to_vec()
    }

    fn all(self) -> usize {
        self.named().iter().map(|(_, bytes)| bytes).sum()
    }
}

fn largest(messages: &[Message], bytes_a_token: f64) -> Vec<LargeResult> {
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
                    found.push(LargeResult {
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
    use mainstay_journal::TurnId;
    use mainstay_journal::compaction::Compaction;

    use super::*;

    #[test]
    fn figures_follow_what_the_provider_counted() {
        let text = |bytes: usize| vec![Content::Text("x".repeat(bytes))];
        let messages = [
            Message::User(text(1_000)),
            Message::Assistant(vec![AssistantPart::Text("y".repeat(200))]),
        ];
        let answered = Body::Assistant { parts: Vec::new(), model: "m".to_owned() };
        let mut entries = vec![Entry { seq: 1, turn: TurnId::new(), at: 0, body: answered }];
        let prompt = "p".repeat(1_000);
        let bytes_a_token = scale(prompt.len(), &entries, &messages, Some(500)).unwrap();
        let context = made_of(&prompt, &[], &messages, bytes_a_token, None, Some(8_000));
        let tokens: Vec<(&str, u64)> =
            context.parts.iter().map(|part| (part.name.as_str(), part.tokens)).collect();
        let expected =
            [("system prompt", 250), ("tools", 0), ("your messages", 250), ("answers", 50)];
        assert_eq!(tokens, expected);
        assert_eq!(context.tokens, 550);
        // What was counted before a compaction says nothing of what is shown after it.
        let made = Compaction { number: 1, after: 275, ..Compaction::default() };
        let body = Body::Compaction(Box::new(made));
        entries.push(Entry { seq: 2, turn: TurnId::new(), at: 0, body });
        assert_eq!(scale(prompt.len(), &entries, &messages, Some(50_000)), Some(8.0));
        let body = Body::Restored { number: 1 };
        entries.push(Entry { seq: 3, turn: TurnId::new(), at: 0, body });
        assert_eq!(scale(prompt.len(), &entries, &messages, Some(50_000)), None);
    }
}
