//! Ollama's lines of JSON.

use serde_json::{Value, json};

use super::{Occasion, call_name, line, pieces};
use crate::model::reply::{CallIds, Message, Part, Stop};

pub(super) fn events(message: &Message, occasion: &Occasion) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut calls = 0;
    for part in &message.parts {
        match part {
            Part::Reasoning(text) => lines.extend(pieces(text).into_iter().map(|text| {
                line(&piece(
                    occasion,
                    &json!({"role": "assistant", "content": "", "thinking": text}),
                ))
            })),
            Part::SealedReasoning(_) => {}
            Part::Text(text) => lines.extend(pieces(text).into_iter().map(|text| {
                line(&piece(occasion, &json!({"role": "assistant", "content": text})))
            })),
            Part::Call { name, arguments } => {
                // The server reads the model's words itself and passes on an object; where it
                // cannot, it passes on the words.
                let arguments = serde_json::from_str(arguments)
                    .unwrap_or_else(|_| Value::String(arguments.clone()));
                let mut call = json!({
                    "id": format!("call_{}", call_name(message, occasion, calls)),
                    "function": {"index": calls, "name": name, "arguments": arguments},
                });
                if message.call_ids == CallIds::Absent {
                    call.as_object_mut().expect("made as an object").shift_remove("id");
                }
                calls += 1;
                let said = json!({"role": "assistant", "content": "", "tool_calls": [call]});
                lines.push(line(&piece(occasion, &said)));
            }
        }
    }
    let reason = match message.stop {
        Stop::Natural | Stop::Refused => "stop",
        Stop::Length => "length",
    };
    let tokens = occasion.tokens(message);
    let mut last = piece(occasion, &json!({"role": "assistant", "content": ""}));
    last["done"] = json!(true);
    last["done_reason"] = json!(reason);
    last["total_duration"] = json!(5_000_000);
    last["load_duration"] = json!(1_000_000);
    last["prompt_eval_count"] = json!(tokens.input + tokens.cached + tokens.cache_written);
    last["prompt_eval_duration"] = json!(2_000_000);
    last["eval_count"] = json!(tokens.output);
    last["eval_duration"] = json!(2_000_000);
    lines.push(line(&last));
    lines
}

fn piece(occasion: &Occasion, message: &Value) -> Value {
    json!({
        "model": occasion.model,
        "created_at": "2026-01-01T00:00:00.000000001Z",
        "message": message,
        "done": false,
    })
}
