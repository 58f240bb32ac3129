//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::{Occasion, SIGNED, call_name, data, pieces};
use crate::model::reply::{CallIds, CallProofs, Message, Part, Stop};
use crate::model::seal::signature;

pub(super) fn events(message: &Message, occasion: &Occasion) -> Vec<Vec<u8>> {
    let mut chunks = vec![delta(&json!({"role": "assistant", "content": "", "refusal": null}))];
    let mut calls = 0;
    for part in &message.parts {
        match part {
            Part::Reasoning(text) => {
                chunks.extend(
                    pieces(text).iter().map(|text| delta(&json!({"reasoning_content": text}))),
                );
            }
            Part::SealedReasoning(_) => {}
            Part::Text(text) => {
                chunks.extend(pieces(text).iter().map(|text| delta(&json!({"content": text}))));
            }
            Part::Call { name, arguments } => {
                let first = first_of_call(message, occasion, calls, name);
                chunks.push(delta(&json!({"tool_calls": [first]})));
                chunks.extend(pieces(arguments).iter().map(|text| {
                    delta(&json!({
                        "tool_calls": [{"index": calls, "function": {"arguments": text}}],
                    }))
                }));
                calls += 1;
            }
        }
    }
    let reason = match message.stop {
        Stop::Natural if calls > 0 => "tool_calls",
        Stop::Natural => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    };
    chunks.push(choices(&json!([
        {"index": 0, "delta": {}, "logprobs": null, "finish_reason": reason},
    ])));
    if occasion.usage_wanted {
        for chunk in &mut chunks {
            chunk["usage"] = Value::Null;
        }
        let mut last = choices(&json!([]));
        last["usage"] = usage(message, occasion);
        chunks.push(last);
    }
    let mut events: Vec<_> = chunks
        .into_iter()
        .map(|mut chunk| {
            chunk["id"] = json!(format!("chatcmpl-{}", occasion.tag));
            chunk["created"] = json!(occasion.created());
            chunk["model"] = json!(occasion.model);
            data(&chunk)
        })
        .collect();
    events.push(b"data: [DONE]\n\n".to_vec());
    events
}

/// The beginning of a call: all but its arguments.
fn first_of_call(message: &Message, occasion: &Occasion, index: usize, name: &str) -> Value {
    let signed = message.call_proofs == CallProofs::OnFirst && index == 0;
    let mark = if signed { SIGNED } else { "" };
    let id = format!("call_{mark}{}", call_name(message, occasion, index));
    let mut first = json!({
        "index": index,
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": ""},
    });
    if signed {
        let proof = signature(&occasion.model, &id);
        first["extra_content"] = json!({"google": {"thought_signature": proof}});
    }
    if message.call_ids == CallIds::Absent {
        first.as_object_mut().expect("made as an object").shift_remove("id");
    }
    first
}

fn delta(delta: &Value) -> Value {
    choices(&json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]))
}

fn choices(choices: &Value) -> Value {
    json!({
        "id": null,
        "object": "chat.completion.chunk",
        "created": null,
        "model": null,
        "system_fingerprint": "fp_scripted",
        "choices": choices,
    })
}

fn usage(message: &Message, occasion: &Occasion) -> Value {
    let tokens = occasion.tokens(message);
    let prompt = tokens.input + tokens.cached + tokens.cache_written;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning, "audio_tokens": 0},
    })
}
