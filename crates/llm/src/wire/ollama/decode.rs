//! The lines of Ollama's answer.

use mainstay_message::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::Stop;
use crate::stream::{Collector, Draft};
use crate::wire::tokens::{Counted, Tokens};
use crate::wire::{Ending, Progress, Said, Wrong};

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Counted<Tokens>,
    #[serde(default)]
    eval_count: Counted<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: String,
    arguments: Option<Value>,
}

/// Reads lines.
#[derive(Default)]
pub(crate) struct Decoder {
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
        if data.trim_ascii().is_empty() {
            return Ok(self.progress());
        }
        let line: Line = serde_json::from_slice(data)?;
        if let Some(error) = line.error.filter(|error| !error.is_null()) {
            return Err(Wrong::Said(Said::of(&error)));
        }
        if let Some(message) = line.message {
            into.thought(message.thinking.as_deref().unwrap_or_default());
            into.text(message.content.as_deref().unwrap_or_default());
            for ToolCall { id, function } in message.tool_calls.into_iter().flatten() {
                self.calls = true;
                let arguments = match function.arguments {
                    Some(Value::String(arguments)) => arguments,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                let id = id.unwrap_or_default();
                into.push(Draft::Call { id, name: function.name, arguments, extra: None });
            }
        }
        if line.done {
            self.stop = Some(match line.done_reason.as_deref() {
                Some("length") => Stop::Length,
                _ if self.calls => Stop::Calls,
                _ => Stop::End,
            });
            self.usage = match (line.prompt_eval_count, line.eval_count) {
                (Counted::Nonsense, _) => None,
                // A prompt that it has at hand it does not count.
                (input, output) => output.known().map(|Tokens(output)| Usage {
                    input: input.known().unwrap_or_default().0,
                    output,
                    ..Usage::default()
                }),
            };
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.stop.is_some() { Progress::Ended } else { Progress::Open }
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending { stop: self.stop, usage: self.usage }
    }
}
