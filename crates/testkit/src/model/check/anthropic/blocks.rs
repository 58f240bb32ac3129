//! Single blocks of content.

use serde_json::Value;

use super::{Findings, is_filled, list, unknown_names};
use crate::model::check::{is_base64, is_name};
use crate::model::seal::{is_sealed, signature};

/// The blocks of a message; a text alone has none, and is judged here.
pub(super) fn blocks<'m>(message: &'m Value, index: usize, findings: &mut Findings) -> &'m [Value] {
    match &message["content"] {
        Value::String(said) => {
            text(said, &format!("messages.{index}"), findings);
            &[]
        }
        Value::Array(blocks) => {
            findings.say_unless(!blocks.is_empty(), || {
                format!("messages.{index}: all messages must have non-empty content except for the optional final assistant message")
            });
            blocks
        }
        _ => {
            findings.say(format!("messages.{index}.content: Input should be a valid list"));
            &[]
        }
    }
}

/// A block in a message of a role.
pub(super) fn check(block: &Value, role: &str, model: &str, at: &str, findings: &mut Findings) {
    let kind = block["type"].as_str().unwrap_or_default();
    let known: &[&str] = match (role, kind) {
        (_, "text") => &["type", "text", "cache_control", "citations"],
        ("user", "image") => &["type", "source", "cache_control"],
        ("user", "tool_result") => &["type", "tool_use_id", "content", "is_error", "cache_control"],
        ("assistant", "tool_use") => &["type", "id", "name", "input", "cache_control"],
        ("assistant", "thinking") => &["type", "thinking", "signature"],
        ("assistant", "redacted_thinking") => &["type", "data"],
        _ => {
            findings.say(format!("{at}: `{kind}` blocks are not permitted in `{role}` messages"));
            return;
        }
    };
    for name in unknown_names(block, known) {
        findings.say(format!("{at}.{kind}.{name}: Extra inputs are not permitted"));
    }
    match kind {
        "text" => match block["text"].as_str() {
            Some(said) => text(said, at, findings),
            None => findings.say(format!("{at}.text.text: Field required")),
        },
        "image" => image(block, at, findings),
        "tool_result" => tool_result(block, at, findings),
        "tool_use" => tool_use(block, at, findings),
        "thinking" => {
            let thought = block["thinking"].as_str().unwrap_or_default();
            findings.say_unless(block["signature"] == signature(model, thought), || {
                format!("{at}: Invalid `signature` in `thinking` block")
            });
        }
        _ => {
            let sound = block["data"].as_str().is_some_and(|data| is_sealed(model, data));
            findings
                .say_unless(sound, || format!("{at}: Invalid `data` in `redacted_thinking` block"));
        }
    }
}

fn text(said: &str, at: &str, findings: &mut Findings) {
    if said.is_empty() {
        findings.say(format!("{at}: text content blocks must be non-empty"));
    } else if said.trim().is_empty() {
        findings.say(format!("{at}: text content blocks must contain non-whitespace text"));
    }
}

fn image(block: &Value, at: &str, findings: &mut Findings) {
    let source = &block["source"];
    let kinds = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let sound = source["type"] == "base64"
        && source["media_type"].as_str().is_some_and(|kind| kinds.contains(&kind))
        && source["data"].as_str().is_some_and(is_base64);
    findings.say_unless(sound, || {
        format!("{at}.image.source: expected base64 data of image/jpeg, image/png, image/gif or image/webp")
    });
}

fn tool_use(block: &Value, at: &str, findings: &mut Findings) {
    let id = block["id"].as_str().unwrap_or_default();
    findings.say_unless(is_name(id, 256), || {
        format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$', but got '{id}'")
    });
    let name = block["name"].as_str().unwrap_or_default();
    findings.say_unless(is_name(name, 200), || {
        format!("{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$', but got '{name}'")
    });
    findings.say_unless(block["input"].is_object(), || {
        format!("{at}.tool_use.input: Input should be a valid dictionary")
    });
}

fn tool_result(block: &Value, at: &str, findings: &mut Findings) {
    let failed = block.get("is_error");
    findings.say_unless(failed.is_none_or(Value::is_boolean), || {
        format!("{at}.tool_result.is_error: Input should be a valid boolean")
    });
    match &block["content"] {
        Value::String(said) => findings.say_unless(!said.is_empty(), || {
            format!("{at}.tool_result: content must not be empty")
        }),
        Value::Array(parts) => {
            findings.say_unless(!parts.is_empty(), || {
                format!("{at}.tool_result: content must not be empty")
            });
            for (number, part) in list(&block["content"]).iter().enumerate() {
                let at = format!("{at}.tool_result.content.{number}");
                match part["type"].as_str() {
                    Some("text") => findings.say_unless(is_filled(&part["text"]), || {
                        format!("{at}: text content blocks must be non-empty")
                    }),
                    Some("image") => image(part, &at, findings),
                    _ => findings.say(format!("{at}.type: Input should be 'text' or 'image'")),
                }
            }
        }
        _ => findings
            .say(format!("{at}.tool_result.content: Input should be a valid string or list")),
    }
}
