//! Older entries in few words: the cheap steps before a model is asked for a summary.
//!
//! A long result becomes a line, one that a later result repeats says so, long arguments of calls are
//! cut inside their JSON, pictures become words, thoughts go as a whole. What a provider wants to see
//! again with a call stays, and then the call does too.

use std::borrow::Cow;
use std::collections::HashMap;

use mainstay_message::{AssistantPart, Call, CallResult, Content, Image};
use serde_json::{Map, Value};

use crate::compaction::Standing;
use crate::entry::{Body, Entry};
use crate::ledger::clip;

/// Results and arguments up to this size stay.
const SMALL: usize = 200;
const SMALL_ARGUMENTS: usize = 500;
/// The most that is left of arguments, of a text in them, and of a list in them.
const ARGUMENTS: usize = 2000;
const TEXT: usize = 120;
const LIST: usize = 8;
/// What is told of what was asked, which stands in the call before it, and of what came.
const ASKED: usize = 60;
const CAME: usize = 100;

/// Shows entries as they are to be shown.
pub(crate) struct Shortener<'a> {
    trimmed: i64,
    keeps: &'a [i64],
    calls: HashMap<&'a str, &'a Call>,
    /// The last result with each fingerprint, of those that were there when entries were last
    /// compacted: what comes later changes nothing before it.
    newest: HashMap<(&'a str, &'a str), i64>,
}

impl<'a> Shortener<'a> {
    pub(crate) fn new(entries: &'a [Entry], standing: &Standing<'a>) -> Self {
        let trimmed = standing.trimmed;
        let (mut calls, mut newest) = (HashMap::new(), HashMap::new());
        if trimmed > standing.through {
            for entry in entries.iter().take_while(|entry| entry.seq < standing.since()) {
                match &entry.body {
                    Body::Assistant { parts, .. } if entry.seq <= trimmed => {
                        calls.extend(parts.iter().filter_map(|part| match part {
                            AssistantPart::Call(call) => Some((call.id.as_str(), call)),
                            AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
                        }));
                    }
                    Body::Result { result, fingerprint, .. } if !fingerprint.is_empty() => {
                        newest.insert((result.name.as_str(), fingerprint.as_str()), entry.seq);
                    }
                    _ => {}
                }
            }
        }
        Self { trimmed, keeps: standing.keeps, calls, newest }
    }

    /// The body as it is shown.
    pub(crate) fn shown<'b>(&self, entry: &'b Entry) -> Cow<'b, Body> {
        if entry.seq > self.trimmed || self.keeps.contains(&entry.seq) {
            return Cow::Borrowed(&entry.body);
        }
        match &entry.body {
            Body::User { content } if content.iter().any(is_picture) => {
                Cow::Owned(Body::User { content: content.iter().map(in_words).collect() })
            }
            Body::Assistant { parts, model } => {
                let parts = parts.iter().filter_map(part).collect();
                Cow::Owned(Body::Assistant { parts, model: model.clone() })
            }
            Body::Result { result, fingerprint, .. } => match self.line(entry, fingerprint, result)
            {
                None => Cow::Borrowed(&entry.body),
                Some(content) => Cow::Owned(Body::Result {
                    result: CallResult { content, ..result.clone() },
                    facts: Vec::new(),
                    fingerprint: String::new(),
                    whole: None,
                }),
            },
            _ => Cow::Borrowed(&entry.body),
        }
    }

    /// What stands for a result; `None` where it is short.
    fn line(&self, entry: &Entry, fingerprint: &str, result: &CallResult) -> Option<Vec<Content>> {
        let bytes: usize = result.content.iter().map(size).sum();
        if bytes <= SMALL && !result.content.iter().any(is_picture) {
            return None;
        }
        let tool = clip(&result.name, 60);
        let asked = self.calls.get(result.call.as_str()).map_or("", |call| call.arguments.as_str());
        let asked = clip(asked, ASKED);
        let newest = self.newest.get(&(result.name.as_str(), fingerprint));
        let line = if newest.is_some_and(|newest| *newest > entry.seq) {
            format!(
                "[Mainstay: shortened. {tool} {asked} gave what a later call of it gave again.]"
            )
        } else {
            let ended = if result.failed { "failed" } else { "went well" };
            let came = came(&result.content);
            format!("[Mainstay: shortened. {tool} {asked} {ended} and gave {bytes} bytes{came}.]")
        };
        Some(vec![Content::Text(line)])
    }
}

/// The first line of what came, where it is the harness's own: words from outside stand in a frame.
fn came(content: &[Content]) -> String {
    let first = content.first().and_then(Content::text).unwrap_or_default();
    match first.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) if !line.starts_with('<') => format!(", beginning: {}", clip(line, CAME)),
        _ => String::new(),
    }
}

fn part(part: &AssistantPart) -> Option<AssistantPart> {
    match part {
        // Providers want thoughts back unchanged, or not at all.
        AssistantPart::Reasoning(_) => None,
        AssistantPart::Text(_) => Some(part.clone()),
        AssistantPart::Call(call) => Some(AssistantPart::Call(shortened(call))),
    }
}

/// The call, with its arguments shortened. One that its provider signed stays as it is.
fn shortened(call: &Call) -> Call {
    match arguments(&call.arguments) {
        Some(arguments) if call.extra.is_none() => Call { arguments, ..call.clone() },
        _ => call.clone(),
    }
}

/// Shorter arguments, which are JSON whatever they were; `None` where they are short.
fn arguments(text: &str) -> Option<String> {
    if text.len() <= SMALL_ARGUMENTS {
        return None;
    }
    let within = serde_json::from_str::<Value>(text).ok().filter(Value::is_object).map(|value| {
        let mut value = value;
        cut(&mut value);
        value.to_string()
    });
    let shorter = within.filter(|text| text.len() <= ARGUMENTS).unwrap_or_else(|| {
        let head = Value::from(clip(text, TEXT));
        Value::Object(Map::from_iter([("shortened".to_owned(), head)])).to_string()
    });
    (shorter.len() < text.len()).then_some(shorter)
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) => {
            let letters = text.chars().count();
            if letters > TEXT {
                let head: String = text.chars().take(TEXT).collect();
                *text = format!("{head}… ({} more letters)", letters - TEXT);
            }
        }
        Value::Array(items) => {
            items.truncate(LIST);
            items.iter_mut().for_each(cut);
        }
        Value::Object(fields) => fields.values_mut().for_each(cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_picture(part: &Content) -> bool {
    matches!(part, Content::Image(_))
}

fn in_words(part: &Content) -> Content {
    match part {
        Content::Text(_) => part.clone(),
        Content::Image(image) => Content::Text(format!(
            "[Mainstay: a picture was here, {} of {} bytes.]",
            clip(&image.media_type, 40),
            bytes(image)
        )),
    }
}

fn size(part: &Content) -> usize {
    match part {
        Content::Text(text) => text.len(),
        Content::Image(image) => bytes(image),
    }
}

fn bytes(image: &Image) -> usize {
    image.base64.len() / 4 * 3
}
