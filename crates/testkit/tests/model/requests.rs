//! Requests of each shape that are as they should be.

use mainstay_testkit::model::{Shape, sealed, signature};
use serde_json::{Value, json};

/// A first request: one message of the user, one tool.
pub(crate) fn first(shape: Shape) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    });
    let function = json!({"name": "shell", "description": "Runs.", "parameters": schema});
    match shape {
        Shape::Chat => json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "count"},
            ],
            "tools": [{"type": "function", "function": function}],
        }),
        Shape::Responses => json!({
            "model": "m", "stream": true, "store": false, "instructions": "Be brief.",
            "include": ["reasoning.encrypted_content"],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "count"}]},
            ],
            "tools": [{"type": "function", "name": "shell", "parameters": schema}],
        }),
        Shape::Anthropic => json!({
            "model": "m", "stream": true, "max_tokens": 4096,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "count"}],
            "tools": [{"name": "shell", "input_schema": schema}],
        }),
        Shape::Ollama => json!({
            "model": "m", "stream": true, "options": {"num_ctx": 8192},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "count"},
            ],
            "tools": [{"type": "function", "function": function}],
        }),
    }
}

/// The same after a thought, two parallel calls and their results.
pub(crate) fn later(shape: Shape) -> Value {
    let mut body = first(shape);
    let arguments = json!({"command": "ls"});
    let more = match shape {
        Shape::Chat => vec![
            json!({"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "call_a", "type": "function",
                 "function": {"name": "shell", "arguments": arguments.to_string()}},
                {"id": "call_b", "type": "function",
                 "function": {"name": "shell", "arguments": "{}"}},
            ]}),
            json!({"role": "tool", "tool_call_id": "call_a", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "call_b", "content": "two"}),
        ],
        Shape::Responses => vec![
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": sealed("m", "hm"),
                   "summary": [{"type": "summary_text", "text": "hm"}]}),
            json!({"type": "message", "role": "assistant", "id": "msg_1",
                   "content": [{"type": "output_text", "text": "I look."}]}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "shell",
                   "arguments": arguments.to_string()}),
            json!({"type": "function_call", "id": "fc_2", "call_id": "call_b", "name": "shell",
                   "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "call_a", "output": "one"}),
            json!({"type": "function_call_output", "call_id": "call_b", "output": "two"}),
        ],
        Shape::Anthropic => vec![
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": signature("m", "hm")},
                {"type": "redacted_thinking", "data": sealed("m", "secret")},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_a", "name": "shell", "input": arguments},
                {"type": "tool_use", "id": "call_b", "name": "shell", "input": {}},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "call_b", "is_error": true,
                 "content": [{"type": "text", "text": "two"}]},
            ]}),
        ],
        Shape::Ollama => vec![
            json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_a", "function": {"name": "shell", "arguments": arguments}},
                {"id": "call_b", "function": {"name": "shell", "arguments": {}}},
            ]}),
            json!({"role": "tool", "tool_call_id": "call_a", "tool_name": "shell", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "call_b", "tool_name": "shell", "content": "two"}),
        ],
    };
    messages(&mut body, shape).extend(more);
    body
}

/// The list that the conversation is in.
pub(crate) fn messages(body: &mut Value, shape: Shape) -> &mut Vec<Value> {
    let name = if shape == Shape::Responses { "input" } else { "messages" };
    body[name].as_array_mut().unwrap()
}
