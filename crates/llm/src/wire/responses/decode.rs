//! The events of the responses API. Deltas are only told; what is kept are the finished items.

use mainstay_message::{Reasoning, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::stream::{Collector, Draft};
use crate::wire::tokens::{Counted, Tokens};
use crate::wire::{Ending, Progress, Said, Wrong};
use crate::{Event, Stop};

#[derive(Deserialize)]
struct Envelope {
    r#type: Option<String>,
    delta: Option<Value>,
    item: Option<Item>,
    response: Option<Whole>,
}

#[derive(Deserialize)]
struct Whole {
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    output: Option<Vec<Item>>,
    #[serde(default)]
    usage: Counted<Counts>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    r#type: Option<String>,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    encrypted_content: Option<String>,
    #[serde(default)]
    content: Option<Vec<Words>>,
    #[serde(default)]
    summary: Option<Vec<Words>>,
}

#[derive(Deserialize)]
struct Words {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<Tokens>,
    output_tokens: Option<Tokens>,
    #[serde(default)]
    input_tokens_details: Counted<InputDetails>,
    #[serde(default)]
    output_tokens_details: Counted<OutputDetails>,
}

#[derive(Clone, Copy, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Counted<Tokens>,
}

#[derive(Clone, Copy, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Counted<Tokens>,
}

/// Reads events.
#[derive(Default)]
pub(crate) struct Decoder {
    /// Whether finished items came one by one; then the last event's list only repeats them.
    items: bool,
    refused: bool,
    calls: bool,
    stop: Option<Stop>,
    usage: Option<Usage>,
}

impl Decoder {
    pub(crate) fn event(
        &mut self,
        data: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        if matches!(data.trim_ascii(), b"" | b"[DONE]") {
            return Ok(self.progress());
        }
        let event: Envelope = serde_json::from_slice(data)?;
        match event.r#type.as_deref().unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(words) = event.delta.as_ref().and_then(Value::as_str) {
                    into.tell(Event::Text(words));
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(words) = event.delta.as_ref().and_then(Value::as_str) {
                    into.tell(Event::Reasoning(words));
                }
            }
            "response.output_item.added" => {
                if let Some(Item { r#type: Some(kind), name: Some(name), .. }) = &event.item
                    && kind == "function_call"
                {
                    into.tell(Event::Call { name });
                }
            }
            // Collected when the item is done.
            "response.function_call_arguments.delta" => into.grow(),
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.items = true;
                    self.item(item, into);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let whole = event.response;
                let whole = whole
                    .ok_or_else(|| Wrong::Garbage("an end without its response".to_owned()))?;
                self.end(whole, into)?;
            }
            "error" => return Err(Wrong::Said(Said::of(&serde_json::from_slice(data)?))),
            "" => {
                let value: Value = serde_json::from_slice(data)?;
                if value.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(Wrong::Said(Said::of(&value)));
                }
            }
            // Many events only mark beginnings and ends; new kinds may come.
            _ => {}
        }
        Ok(self.progress())
    }

    /// Reads an answer that was not streamed.
    pub(crate) fn whole(
        &mut self,
        body: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        let whole: Whole = serde_json::from_slice(body)?;
        if whole.output.is_none() && whole.error.as_ref().is_none_or(Value::is_null) {
            return Ok(Progress::Open);
        }
        self.end(whole, into)?;
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.stop.is_some() { Progress::Ended } else { Progress::Open }
    }

    fn end(&mut self, whole: Whole, into: &mut Collector<'_>) -> Result<(), Wrong> {
        if let Counted::Known(counts) = whole.usage {
            self.usage = Some(usage(&counts));
        }
        if let Some(error) = whole.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        if !self.items {
            for item in whole.output.into_iter().flatten() {
                self.item(item, into);
            }
        }
        let reason = whole.incomplete_details.and_then(|details| details.reason);
        self.stop = Some(match (whole.status.as_deref(), reason.as_deref()) {
            (Some("failed" | "cancelled"), _) => {
                let words = "the provider gave up the answer".to_owned();
                return Err(Wrong::Said(Said { words, ..Said::default() }));
            }
            (_, Some("content_filter")) => Stop::Refused,
            (Some("incomplete"), _) | (_, Some(_)) => Stop::Length,
            _ if self.calls => Stop::Calls,
            _ if self.refused => Stop::Refused,
            _ => Stop::End,
        });
        Ok(())
    }

    fn item(&mut self, item: Item, into: &mut Collector<'_>) {
        match item.r#type.as_deref().unwrap_or_default() {
            "message" => {
                for words in item.content.into_iter().flatten() {
                    self.refused |= words.refusal.is_some();
                    if let Some(text) = words.text.or(words.refusal) {
                        into.add(Draft::Text(text));
                    }
                }
            }
            "function_call" => {
                self.calls = true;
                let arguments = match item.arguments {
                    Some(Value::String(arguments)) => arguments,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                into.add(Draft::Call {
                    id: item.call_id.or(item.id).unwrap_or_default(),
                    name: item.name.unwrap_or_default(),
                    arguments,
                    extra: None,
                });
            }
            "reasoning" => {
                let texts = |words: Option<Vec<Words>>| -> String {
                    let texts = words.into_iter().flatten().filter_map(|words| words.text);
                    texts.collect::<Vec<String>>().join("\n\n")
                };
                let summary = texts(item.summary);
                let text = if summary.is_empty() { texts(item.content) } else { summary };
                into.add(Draft::Reasoning(Reasoning {
                    text,
                    id: item.id,
                    sealed: item.encrypted_content,
                    ..Reasoning::default()
                }));
            }
            _ => {}
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending { stop: self.stop, usage: self.usage }
    }
}

fn usage(counts: &Counts) -> Usage {
    // A detail that is wrong is left out; the sums it belongs to are known.
    let input = counts.input_tokens.unwrap_or_default().0;
    let cached = counts.input_tokens_details.known().and_then(|d| d.cached_tokens.known());
    let cached = cached.unwrap_or_default().0.min(input);
    let reasoning = counts.output_tokens_details.known().and_then(|d| d.reasoning_tokens.known());
    Usage {
        input: input - cached,
        cached,
        cache_written: 0,
        output: counts.output_tokens.unwrap_or_default().0,
        reasoning: reasoning.unwrap_or_default().0,
    }
}
