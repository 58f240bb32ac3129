//! Anthropic's messages.

use serde_json::{Value, json};

use super::{Occasion, call_name, named, pieces};
use crate::model::reply::{Message, Part, Stop};
use crate::model::seal::{sealed, signature};

pub(super) fn events(message: &Message, occasion: &Occasion) -> Vec<Vec<u8>> {
    let tokens = occasion.tokens(message);
    let mut events = vec![named(&json!({
        "type": "message_start",
        "message": {
            "id": format!("msg_{}", occasion.tag),
            "type": "message",
            "role": "assistant",
            "model": occasion.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {
                "input_tokens": tokens.input,
                "cache_creation_input_tokens": tokens.cache_written,
                "cache_read_input_tokens": tokens.cached,
                "output_tokens": 1,
                "service_tier": "standard",
            },
        },
    }))];
    let mut calls = 0;
    for (index, part) in message.parts.iter().enumerate() {
        let (start, deltas) = match part {
            Part::Reasoning(text) => thinking(text, occasion),
            Part::SealedReasoning(text) => {
                let data = sealed(&occasion.model, text);
                (json!({"type": "redacted_thinking", "data": data}), Vec::new())
            }
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                deltas(text, |text| json!({"type": "text_delta", "text": text})),
            ),
            Part::Call { name, arguments } => {
                let id = format!("toolu_{}", call_name(message, occasion, calls));
                calls += 1;
                let json = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
                let mut fragments = vec![json("")];
                fragments.extend(deltas(arguments, json));
                (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), fragments)
            }
        };
        events.push(named(&json!({
            "type": "content_block_start", "index": index, "content_block": start,
        })));
        if index == 0 {
            events.push(named(&json!({"type": "ping"})));
        }
        events.extend(deltas_at(index, &deltas));
        events.push(named(&json!({"type": "content_block_stop", "index": index})));
    }
    let reason = match message.stop {
        Stop::Natural if calls > 0 => "tool_use",
        Stop::Natural => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
    };
    events.push(named(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {
            "input_tokens": tokens.input,
            "cache_creation_input_tokens": tokens.cache_written,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": tokens.output,
        },
    })));
    events.push(named(&json!({"type": "message_stop"})));
    events
}

fn thinking(text: &str, occasion: &Occasion) -> (Value, Vec<Value>) {
    let mut deltas = deltas(text, |text| json!({"type": "thinking_delta", "thinking": text}));
    let signature = signature(&occasion.model, text);
    deltas.push(json!({"type": "signature_delta", "signature": signature}));
    (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
}

fn deltas(text: &str, delta: impl Fn(&str) -> Value) -> Vec<Value> {
    pieces(text).into_iter().map(delta).collect()
}

fn deltas_at(index: usize, deltas: &[Value]) -> impl Iterator<Item = Vec<u8>> {
    deltas.iter().map(move |delta| {
        named(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
    })
}
