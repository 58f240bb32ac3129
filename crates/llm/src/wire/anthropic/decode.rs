//! The events of Anthropic's messages: numbered blocks that open, grow and close.

use mainstay_message::{Reasoning, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::Stop;
use crate::stream::{Collector, Draft};
use crate::wire::tokens::{Counted, Tokens};
use crate::wire::{Ending, Progress, Said, Wrong};

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    r#type: String,
    message: Option<Started>,
    index: Option<u64>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    #[serde(default)]
    usage: Counted<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    usage: Counted<Counts>,
}

#[derive(Deserialize)]
struct Whole {
    r#type: Option<String>,
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Counted<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: Option<String>,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
struct Counts {
    input_tokens: Option<Tokens>,
    cache_read_input_tokens: Option<Tokens>,
    cache_creation_input_tokens: Option<Tokens>,
    output_tokens: Option<Tokens>,
}

/// Reads events.
#[derive(Default)]
pub(crate) struct Decoder {
    /// The number of each block and where it stands among the parts.
    blocks: Vec<(u64, usize)>,
    reason: Option<Stop>,
    ended: bool,
    usage: Counted<Usage>,
}

impl Decoder {
    pub(crate) fn event(
        &mut self,
        data: &[u8],
        into: &mut Collector<'_>,
    ) -> Result<Progress, Wrong> {
        if data.trim_ascii().is_empty() {
            return Ok(self.progress());
        }
        let event: Envelope = serde_json::from_slice(data)?;
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        match event.r#type.as_str() {
            "message_start" => {
                self.count(event.message.map(|message| message.usage).unwrap_or_default());
            }
            "content_block_start" => {
                if let Some(block) = event.content_block
                    && let Some(at) = open(block, into)
                {
                    self.blocks.push((event.index.unwrap_or(0), at));
                }
            }
            "content_block_delta" => {
                let index = event.index.unwrap_or(0);
                let block = self.blocks.iter().rev().find(|(number, _)| *number == index);
                if let (Some(&(_, at)), Some(delta)) = (block, event.delta) {
                    grow(at, delta, into);
                }
            }
            "message_delta" => {
                self.count(event.usage);
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.reason = reason.as_deref().map(stop).or(self.reason);
            }
            "message_stop" => self.ended = true,
            // Pings, the ends of blocks, and kinds to come.
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
        if let Some(error) = whole.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        if whole.r#type.as_deref() != Some("message") {
            return Ok(Progress::Open);
        }
        for block in whole.content.into_iter().flatten() {
            let _ = open(block, into);
        }
        self.count(whole.usage);
        self.reason = whole.stop_reason.as_deref().map(stop);
        self.ended = self.reason.is_some();
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }

    /// Takes counts; later ones replace those they name. Where one of them is nonsense the sum is too.
    fn count(&mut self, counts: Counted<Counts>) {
        let (so_far, counts) = match (self.usage, counts) {
            (Counted::Nonsense, _) | (_, Counted::Absent) => return,
            (_, Counted::Nonsense) => return self.usage = Counted::Nonsense,
            (so_far, Counted::Known(counts)) => (so_far.known().unwrap_or_default(), counts),
        };
        let or = |count: Option<Tokens>, before: u64| count.map_or(before, |count| count.0);
        self.usage = Counted::Known(Usage {
            input: or(counts.input_tokens, so_far.input),
            cached: or(counts.cache_read_input_tokens, so_far.cached),
            cache_written: or(counts.cache_creation_input_tokens, so_far.cache_written),
            output: or(counts.output_tokens, so_far.output),
            reasoning: 0,
        });
    }

    pub(crate) fn ending(&self) -> Ending {
        let stop = self.ended.then(|| self.reason.unwrap_or(Stop::End));
        Ending { stop, usage: self.usage.known() }
    }
}

fn open(block: Block, into: &mut Collector<'_>) -> Option<usize> {
    Some(into.push(match block {
        Block::Text { text } => Draft::Text(text),
        Block::Thinking { thinking, signature } => {
            let signature = signature.filter(|signature| !signature.is_empty());
            Draft::Reasoning(Reasoning { text: thinking, signature, ..Reasoning::default() })
        }
        Block::RedactedThinking { data } => {
            Draft::Reasoning(Reasoning { sealed: Some(data), ..Reasoning::default() })
        }
        Block::ToolUse { id, name, input } => {
            // A stream opens with an empty object and sends the real one in fragments.
            let whole = input.as_object().is_some_and(|input| !input.is_empty());
            let arguments = if whole { input.to_string() } else { String::new() };
            Draft::Call { id, name, arguments, extra: None }
        }
        Block::Other => return None,
    }))
}

fn grow(at: usize, delta: Delta, into: &mut Collector<'_>) {
    let words = delta.text.or(delta.thinking).or(delta.partial_json);
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        into.append(at, &words);
    }
    if let Some(more) = delta.signature
        && let Some(Draft::Reasoning(reasoning)) = into.draft(at)
    {
        reasoning.signature.get_or_insert_default().push_str(&more);
        into.grow();
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "pause_turn" => Stop::Paused,
        _ => Stop::End,
    }
}
