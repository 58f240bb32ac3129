//! OpenAI's chat completions. The strictest of those who imitate them render the messages with a
//! template that wants the user first and the roles in turn.

use std::collections::HashSet;

use serde_json::Value;

use super::tools::{self, Keys};
use super::{
    Findings, cache_markers, holds_object, is_filled, is_image_url, is_name, list,
    model_and_stream, number_within, whole_number,
};
use crate::model::render::SIGNED;
use crate::model::seal::signature;

pub(super) fn check(body: &Value, findings: &mut Findings) {
    model_and_stream(body, findings);
    number_within(body, "temperature", (0.0, 2.0), findings);
    whole_number(body, "max_tokens", 1, findings);
    whole_number(body, "max_completion_tokens", 1, findings);
    let both = body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some();
    findings.say_unless(!both, || {
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
            .to_owned()
    });
    let keys = Keys { function: Some("function"), schema: "parameters", kind: Some("function") };
    tools::check(body, &keys, findings);
    cache_markers(body, findings);
    messages(list(&body["messages"]), findings);
    signatures(body, findings);
}

/// A call that was signed comes back with its signature, to the model that signed it.
fn signatures(body: &Value, findings: &mut Findings) {
    let model = body["model"].as_str().unwrap_or_default();
    let calls = list(&body["messages"]).iter().flat_map(|message| list(&message["tool_calls"]));
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        let signed = id.strip_prefix("call_").is_some_and(|rest| rest.starts_with(SIGNED));
        let proof = &call["extra_content"]["google"]["thought_signature"];
        findings.say_unless(!signed || *proof == signature(model, id), || {
            format!("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Function call `{id}`.")
        });
    }
}

fn messages(messages: &[Value], findings: &mut Findings) {
    if messages.is_empty() {
        findings.say("Invalid 'messages': empty array. Expected an array with minimum length 1.");
    }
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            unanswered(&mut open, findings);
        }
        match role {
            "system" | "developer" => {
                findings.say_unless(matches!(before, "" | "system" | "developer"), || {
                    format!("messages.{index}: System message must be at the beginning.")
                });
                content(message, index, Pictures::Refused, findings);
            }
            "user" => {
                in_turn(before, role, index, findings);
                content(message, index, Pictures::Allowed, findings);
            }
            "assistant" => {
                in_turn(before, role, index, findings);
                findings.say_unless(matches!(before, "user" | "tool" | "assistant"), || {
                    format!("messages.{index}: the first message after the system's must be from the user")
                });
                let calls = calls(message, index, &mut ids, findings);
                if message["content"].is_null() {
                    findings.say_unless(!calls.is_empty(), || {
                        format!("Invalid value for 'content' at messages.{index}: expected a string, got null.")
                    });
                } else {
                    content(message, index, Pictures::Refused, findings);
                }
                open = calls;
            }
            "tool" => {
                result(message, index, &mut open, findings);
                content(message, index, Pictures::Refused, findings);
            }
            _ => findings.say(format!(
                "Invalid value: '{role}'. Supported values for messages.{index}.role are: 'system', 'assistant', 'user', 'tool', and 'developer'."
            )),
        }
        before = role;
    }
    unanswered(&mut open, findings);
    findings.say_unless(matches!(before, "user" | "tool" | ""), || {
        format!("Expected last role User or Tool for serving but got {before}")
    });
}

fn in_turn(before: &str, role: &str, index: usize, findings: &mut Findings) {
    findings.say_unless(before != role, || {
        format!("messages.{index}: Conversation roles must alternate user/assistant/user/assistant/..., but there are two of '{role}' in a row")
    });
}

fn unanswered(open: &mut Vec<&str>, findings: &mut Findings) {
    findings.say_unless(open.is_empty(), || {
        format!("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}", open.join(", "))
    });
    open.clear();
}

fn result(message: &Value, index: usize, open: &mut Vec<&str>, findings: &mut Findings) {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    match open.iter().position(|call| *call == id) {
        Some(found) => {
            open.remove(found);
        }
        None => findings.say(format!(
            "messages.{index}: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'; no call '{id}' waits for one."
        )),
    }
}

/// The ids of the calls of a message.
fn calls<'m>(
    message: &'m Value,
    index: usize,
    ids: &mut HashSet<&'m str>,
    findings: &mut Findings,
) -> Vec<&'m str> {
    let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) else {
        return Vec::new();
    };
    findings.say_unless(!list(calls).is_empty(), || {
        format!("Invalid 'messages.{index}.tool_calls': empty array. Expected an array with minimum length 1.")
    });
    let mut open = Vec::new();
    for (number, call) in list(calls).iter().enumerate() {
        let at = format!("messages.{index}.tool_calls.{number}");
        let id = call["id"].as_str().unwrap_or_default();
        findings.say_unless((1..=40).contains(&id.len()), || {
            format!("Invalid '{at}.id': expected a string of 1 to 40 characters, but got '{id}'.")
        });
        findings.say_unless(ids.insert(id), || {
            format!("Duplicate value for 'tool_call_id' of '{id}' at {at}")
        });
        findings.say_unless(call["type"] == "function", || {
            format!("Invalid value for '{at}.type': expected 'function'.")
        });
        let function = &call["function"];
        let name = function["name"].as_str().unwrap_or_default();
        findings.say_unless(is_name(name, 64), || {
            format!("Invalid '{at}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', but got '{name}'.")
        });
        findings.say_unless(holds_object(&function["arguments"]), || {
            format!("Invalid '{at}.function.arguments': expected a string that holds a JSON object, but got {}.", function["arguments"])
        });
        open.push(id);
    }
    open
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pictures {
    Allowed,
    Refused,
}

fn content(message: &Value, index: usize, pictures: Pictures, findings: &mut Findings) {
    let at = format!("messages.{index}.content");
    match &message["content"] {
        Value::String(text) => {
            findings.say_unless(!text.is_empty(), || format!("{at}: content must not be empty"));
        }
        Value::Array(parts) => {
            findings.say_unless(!parts.is_empty(), || format!("Invalid '{at}': empty array."));
            for (number, part) in parts.iter().enumerate() {
                match part["type"].as_str() {
                    Some("text") => findings.say_unless(is_filled(&part["text"]), || {
                        format!("{at}.{number}: text content must not be empty")
                    }),
                    Some("image_url") if pictures == Pictures::Refused => findings.say(format!(
                        "Invalid '{at}.{number}': Image URLs are only allowed for messages with role 'user'."
                    )),
                    Some("image_url") => {
                        findings.say_unless(is_image_url(&part["image_url"]["url"]), || {
                            format!("Invalid '{at}.{number}.image_url': expected a base64-encoded data URL with an image MIME type.")
                        });
                    }
                    _ => findings.say(format!("Invalid value for '{at}.{number}.type': {}", part["type"])),
                }
            }
        }
        other => findings
            .say(format!("Invalid type for '{at}': expected a string or an array, got {other}.")),
    }
}
