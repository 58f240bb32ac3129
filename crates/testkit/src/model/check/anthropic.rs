//! Anthropic's messages.

use std::collections::HashSet;

use serde_json::Value;

use super::tools::{self, Keys};
use super::{
    Findings, cache_markers, is_filled, list, model_and_stream, number_within, unknown_names,
    whole_number,
};
use crate::model::render::THOUGHT;

mod blocks;

const KNOWN: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "tools",
    "tool_choice",
    "thinking",
    "metadata",
    "service_tier",
    "cache_control",
    "output_config",
    "context_management",
];

pub(super) fn check(body: &Value, findings: &mut Findings) {
    model_and_stream(body, findings);
    for name in unknown_names(body, KNOWN) {
        findings.say(format!("{name}: Extra inputs are not permitted"));
    }
    if body.get("max_tokens").is_none() {
        findings.say("max_tokens: Field required");
    }
    whole_number(body, "max_tokens", 1, findings);
    number_within(body, "temperature", (0.0, 1.0), findings);
    thinking(body, findings);
    system(body, findings);
    tools::check(body, &Keys { function: None, schema: "input_schema", kind: None }, findings);
    cache_markers(body, findings);
    messages(body, findings);
}

fn thinks(body: &Value) -> bool {
    matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"))
}

fn thinking(body: &Value, findings: &mut Findings) {
    if !thinks(body) {
        return;
    }
    if body["thinking"]["type"] == "enabled" {
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
        findings.say_unless(budget >= 1024, || {
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
                .to_owned()
        });
        findings.say_unless(budget < body["max_tokens"].as_u64().unwrap_or(u64::MAX), || {
            "`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned()
        });
    }
    let temperature = body["temperature"].as_f64().unwrap_or(1.0);
    findings.say_unless((temperature - 1.0).abs() < f64::EPSILON, || {
        "`temperature` may only be set to 1 when thinking is enabled.".to_owned()
    });
}

fn system(body: &Value, findings: &mut Findings) {
    match body.get("system") {
        None => {}
        Some(Value::String(text)) => {
            findings.say_unless(!text.is_empty(), || {
                "system: text content blocks must be non-empty".to_owned()
            });
        }
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                findings.say_unless(part["type"] == "text" && is_filled(&part["text"]), || {
                    format!("system.{index}: text content blocks must be non-empty")
                });
            }
        }
        Some(_) => findings.say("system: Input should be a valid string or a list of text blocks"),
    }
}

fn messages(body: &Value, findings: &mut Findings) {
    let messages = list(&body["messages"]);
    if messages.is_empty() {
        findings.say("messages: at least one message is required");
    }
    let model = body["model"].as_str().unwrap_or_default();
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "user" | "assistant" => {}
            "system" => findings.say(format!("messages.{index}: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")),
            _ => findings.say(format!("messages.{index}.role: Input should be 'user' or 'assistant'")),
        }
        findings.say_unless(index > 0 || role == "user", || {
            "messages: first message must use the \"user\" role".to_owned()
        });
        findings.say_unless(before != role, || {
            format!("messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row")
        });
        for name in unknown_names(message, &["role", "content"]) {
            findings.say(format!("messages.{index}.{name}: Extra inputs are not permitted"));
        }
        let blocks = blocks::blocks(message, index, findings);
        for (number, block) in blocks.iter().enumerate() {
            let at = format!("messages.{index}.content.{number}");
            blocks::check(block, role, model, &at, findings);
        }
        if role == "assistant" {
            unanswered(&mut open, index.saturating_sub(1), findings);
            open = calls(blocks, index, &mut ids, findings);
        } else {
            results(blocks, index, &mut open, findings);
        }
        before = role;
    }
    unanswered(&mut open, messages.len().saturating_sub(1), findings);
    findings.say_unless(before != "assistant", || {
        "This model does not support assistant message prefill. The conversation must end with a user message.".to_owned()
    });
    if thinks(body) {
        thoughts_kept(messages, findings);
    }
}

/// Results answer the calls of the message before, all of them, and stand before all else.
fn results(blocks: &[Value], index: usize, open: &mut Vec<&str>, findings: &mut Findings) {
    let mut answered = HashSet::new();
    let mut other = false;
    for block in blocks {
        if block["type"] != "tool_result" {
            other = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        findings.say_unless(!other, || {
            format!("messages.{index}: `tool_result` blocks must come first in the content; text before them separates them from their `tool_use` blocks")
        });
        if !answered.insert(id) {
            findings.say(format!("messages.{index}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"));
        } else if let Some(found) = open.iter().position(|call| *call == id) {
            open.remove(found);
        } else {
            findings.say(format!("messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."));
        }
    }
    unanswered(open, index.saturating_sub(1), findings);
}

fn unanswered(open: &mut Vec<&str>, index: usize, findings: &mut Findings) {
    findings.say_unless(open.is_empty(), || {
        format!("messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", open.join(", "))
    });
    open.clear();
}

fn calls<'m>(
    blocks: &'m [Value],
    index: usize,
    ids: &mut HashSet<&'m str>,
    findings: &mut Findings,
) -> Vec<&'m str> {
    let mut open = Vec::new();
    for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
        let id = block["id"].as_str().unwrap_or_default();
        findings.say_unless(ids.insert(id), || {
            format!("messages.{index}: `tool_use` ids must be unique, but '{id}' is there twice")
        });
        open.push(id);
    }
    let last = blocks.last().map(|block| &block["type"]);
    let thought = last.is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking");
    findings.say_unless(!thought, || {
        format!("messages.{index}: The final block in an assistant message cannot be `thinking`.")
    });
    open
}

/// While a model works through its tools, the thoughts before its calls must come back with them.
fn thoughts_kept(messages: &[Value], findings: &mut Findings) {
    let at_work = |message: &&Value| {
        let blocks = list(&message["content"]);
        message["role"] == "assistant" || blocks.iter().any(|block| block["type"] == "tool_result")
    };
    for message in messages.iter().rev().take_while(at_work) {
        let blocks = list(&message["content"]);
        let thought_about = blocks.iter().any(|block| {
            let id = block["id"].as_str().and_then(|id| id.strip_prefix("toolu_"));
            block["type"] == "tool_use" && id.is_some_and(|id| id.starts_with(THOUGHT))
        });
        let first = blocks.first().map_or(&Value::Null, |block| &block["type"]);
        let thought = first == "thinking" || first == "redacted_thinking";
        findings.say_unless(!thought_about || thought, || {
            format!("Expected `thinking` or `redacted_thinking`, but found {first}. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).")
        });
    }
}
