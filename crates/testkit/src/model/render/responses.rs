//! OpenAI's responses.

use serde_json::{Value, json};

use super::{Occasion, call_name, named, pieces};
use crate::model::reply::{Message, Part, Stop};
use crate::model::seal::sealed;

pub(super) fn events(message: &Message, occasion: &Occasion) -> Vec<Vec<u8>> {
    let mut stream = Stream::default();
    let mut response = response(occasion);
    stream.say("response.created", json!({"response": response}));
    stream.say("response.in_progress", json!({"response": response}));
    let mut output = Vec::new();
    let mut calls = 0;
    for (index, part) in message.parts.iter().enumerate() {
        output.push(match part {
            Part::Reasoning(text) => stream.reasoning(index, text, Summary::Shown, occasion),
            Part::SealedReasoning(text) => stream.reasoning(index, text, Summary::None, occasion),
            Part::Text(text) => stream.message(index, text, message.stop, occasion),
            Part::Call { name, arguments } => {
                let id = call_name(message, occasion, calls);
                calls += 1;
                stream.call(index, &id, name, arguments)
            }
        });
    }
    let end = match message.stop {
        Stop::Natural | Stop::Refused => "completed",
        Stop::Length => {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            "incomplete"
        }
    };
    response["status"] = json!(end);
    response["output"] = Value::Array(output);
    response["usage"] = usage(message, occasion);
    stream.say(&format!("response.{end}"), json!({"response": response}));
    stream.events
}

/// An error in the stream, and the response that has failed by it.
pub(super) fn error_events(kind: &str, words: &str) -> Vec<Vec<u8>> {
    let mut stream = Stream { number: 1000, ..Stream::default() };
    stream.say("error", json!({"code": kind, "message": words, "param": null}));
    let mut response = response(&Occasion::typical());
    response["status"] = json!("failed");
    response["error"] = json!({"code": kind, "message": words});
    stream.say("response.failed", json!({"response": response}));
    stream.events
}

fn response(occasion: &Occasion) -> Value {
    json!({
        "id": format!("resp_{}", occasion.tag),
        "object": "response",
        "created_at": occasion.created(),
        "status": "in_progress",
        "error": null,
        "incomplete_details": null,
        "model": occasion.model,
        "output": [],
        "parallel_tool_calls": true,
        "usage": null,
    })
}

fn usage(message: &Message, occasion: &Occasion) -> Value {
    let tokens = occasion.tokens(message);
    let input = tokens.input + tokens.cached + tokens.cache_written;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": input + tokens.output,
    })
}

/// Whether a client may read what was thought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Summary {
    Shown,
    None,
}

/// Events with their running numbers.
#[derive(Default)]
struct Stream {
    number: u64,
    events: Vec<Vec<u8>>,
}

impl Stream {
    fn say(&mut self, kind: &str, mut fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.number});
        let event_fields = event.as_object_mut().expect("made as an object");
        event_fields.append(fields.as_object_mut().expect("fields are an object"));
        self.number += 1;
        self.events.push(named(&event));
    }

    fn added(&mut self, index: usize, item: &Value) {
        self.say("response.output_item.added", json!({"output_index": index, "item": item}));
    }

    fn done(&mut self, index: usize, item: Value) -> Value {
        self.say("response.output_item.done", json!({"output_index": index, "item": item}));
        item
    }

    fn reasoning(&mut self, index: usize, text: &str, summary: Summary, on: &Occasion) -> Value {
        let id = format!("rs_{}{index:02}", on.tag);
        let mut item = json!({"id": id, "type": "reasoning", "summary": []});
        self.added(index, &item);
        if summary == Summary::Shown {
            let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
            let part = |text: &str| json!({"part": {"type": "summary_text", "text": text}});
            self.say("response.reasoning_summary_part.added", merge(&at, part("")));
            for piece in pieces(text) {
                let delta = merge(&at, json!({"delta": piece}));
                self.say("response.reasoning_summary_text.delta", delta);
            }
            let whole = merge(&at, json!({"text": text}));
            self.say("response.reasoning_summary_text.done", whole);
            self.say("response.reasoning_summary_part.done", merge(&at, part(text)));
            item["summary"] = json!([{"type": "summary_text", "text": text}]);
        }
        if on.seals_wanted {
            item["encrypted_content"] = json!(sealed(&on.model, text));
        }
        self.done(index, item)
    }

    fn message(&mut self, index: usize, text: &str, stop: Stop, on: &Occasion) -> Value {
        let id = format!("msg_{}{index:02}", on.tag);
        let at = json!({"item_id": id, "output_index": index, "content_index": 0});
        let (kind, field) = match stop {
            Stop::Refused => ("refusal", "refusal"),
            Stop::Natural | Stop::Length => ("output_text", "text"),
        };
        let part = |text: &str| match stop {
            Stop::Refused => json!({"type": "refusal", "refusal": text}),
            _ => json!({"type": "output_text", "text": text, "annotations": []}),
        };
        let item = |status: &str, content: Value| {
            json!({
                "id": id, "type": "message", "status": status,
                "role": "assistant", "content": content,
            })
        };
        self.added(index, &item("in_progress", json!([])));
        self.say("response.content_part.added", merge(&at, json!({"part": part("")})));
        for piece in pieces(text) {
            self.say(&format!("response.{kind}.delta"), merge(&at, json!({"delta": piece})));
        }
        self.say(&format!("response.{kind}.done"), merge(&at, json!({field: text})));
        self.say("response.content_part.done", merge(&at, json!({"part": part(text)})));
        let status = if stop == Stop::Length { "incomplete" } else { "completed" };
        self.done(index, item(status, json!([part(text)])))
    }

    fn call(&mut self, index: usize, id: &str, name: &str, arguments: &str) -> Value {
        let item = |status: &str, arguments: &str| {
            json!({
                "id": format!("fc_{id}"), "type": "function_call", "status": status,
                "arguments": arguments, "call_id": format!("call_{id}"), "name": name,
            })
        };
        let at = json!({"item_id": format!("fc_{id}"), "output_index": index});
        self.added(index, &item("in_progress", ""));
        for piece in pieces(arguments) {
            let delta = merge(&at, json!({"delta": piece}));
            self.say("response.function_call_arguments.delta", delta);
        }
        let whole = merge(&at, json!({"arguments": arguments}));
        self.say("response.function_call_arguments.done", whole);
        self.done(index, item("completed", arguments))
    }
}

fn merge(at: &Value, mut fields: Value) -> Value {
    let mut merged = at.clone();
    let into = merged.as_object_mut().expect("a place is an object");
    into.append(fields.as_object_mut().expect("fields are an object"));
    merged
}
