//! Ollama. Its results of calls know ids only since lately; without them order and name must do.

use std::collections::HashSet;

use serde_json::Value;

use super::tools::{self, Keys};
use super::{Findings, is_base64, is_filled, list};

pub(super) fn check(body: &Value, findings: &mut Findings) {
    findings.say_unless(is_filled(&body["model"]), || "model is required".to_owned());
    findings.say_unless(body.get("stream").is_none_or(|stream| stream == true), || {
        "stream: this server only streams; it must be true or absent".to_owned()
    });
    let keys = Keys { function: Some("function"), schema: "parameters", kind: Some("function") };
    tools::check(body, &keys, findings);
    if let Some(options) = body.get("options") {
        findings.say_unless(options.is_object(), || {
            "json: cannot unmarshal options into Go struct field ChatRequest.options of type map[string]interface {}".to_owned()
        });
        for name in ["num_ctx", "num_predict"] {
            let fits = options.get(name).is_none_or(|value| value.as_i64().is_some_and(|n| n != 0));
            findings.say_unless(fits, || format!("option \"{name}\" must be of type integer"));
        }
    }
    if let Some(think) = body.get("think") {
        let fits = think.is_boolean()
            || think.as_str().is_some_and(|level| ["low", "medium", "high"].contains(&level));
        findings.say_unless(fits, || {
            format!("invalid think value: {think} (must be \"high\", \"medium\", \"low\", true, or false)")
        });
    }
    messages(list(&body["messages"]), findings);
}

/// A call that waits for its result.
struct Open<'m> {
    id: Option<&'m str>,
    name: &'m str,
}

fn messages(messages: &[Value], findings: &mut Findings) {
    findings.say_unless(!messages.is_empty(), || "messages: nothing was said".to_owned());
    let mut ids = HashSet::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            unanswered(&mut open, findings);
        }
        let content = &message["content"];
        findings.say_unless(content.is_string(), || {
            format!("messages.{index}: json: cannot unmarshal into Go struct field ChatRequest.messages.content of type string")
        });
        let calls = list(&message["tool_calls"]);
        findings.say_unless(content != "" || !calls.is_empty(), || {
            format!("messages.{index}: content must not be empty")
        });
        let pictures = list(&message["images"]);
        let sound = pictures.iter().all(|picture| picture.as_str().is_some_and(is_base64));
        findings.say_unless(sound, || format!("messages.{index}: illegal base64 data in images"));
        match role {
            "system" => findings.say_unless(matches!(before, "" | "system"), || {
                format!("messages.{index}: the system's message must be at the beginning")
            }),
            "user" => {}
            "assistant" => {
                findings.say_unless(!matches!(before, "" | "system"), || {
                    format!("messages.{index}: the first message must be from the user")
                });
                for (number, call) in calls.iter().enumerate() {
                    let at = format!("messages.{index}.tool_calls.{number}");
                    open.push(opened(call, &at, &mut ids, findings));
                }
            }
            "tool" => answered(message, index, &mut open, findings),
            _ => findings.say(format!("messages.{index}: invalid role: {role}")),
        }
        before = role;
    }
    unanswered(&mut open, findings);
    findings.say_unless(before != "assistant", || {
        "messages: the last message must be from the user or a tool".to_owned()
    });
}

fn opened<'m>(
    call: &'m Value,
    at: &str,
    ids: &mut HashSet<&'m str>,
    findings: &mut Findings,
) -> Open<'m> {
    let function = &call["function"];
    findings.say_unless(function["arguments"].is_object(), || {
        format!("{at}: json: cannot unmarshal {} into Go struct field ToolCallFunction.arguments of type api.ToolCallFunctionArguments", function["arguments"])
    });
    findings.say_unless(is_filled(&function["name"]), || format!("{at}: a call has a name"));
    let id = call["id"].as_str().filter(|id| !id.is_empty());
    if let Some(id) = id {
        findings.say_unless(ids.insert(id), || format!("{at}: the id '{id}' is there twice"));
    }
    Open { id, name: function["name"].as_str().unwrap_or_default() }
}

/// By id where both sides have one, otherwise the next in order.
fn answered(message: &Value, index: usize, open: &mut Vec<Open<'_>>, findings: &mut Findings) {
    let id = message["tool_call_id"].as_str().filter(|id| !id.is_empty());
    let position = match id {
        Some(id) => open.iter().position(|call| call.id == Some(id)),
        None if open.first().is_some_and(|call| call.id.is_some()) => None,
        None if open.is_empty() => None,
        None => Some(0),
    };
    let Some(position) = position else {
        findings
            .say(format!("messages.{index}: the result of no call: {}", message["tool_call_id"]));
        return;
    };
    let call = open.remove(position);
    let name = message["tool_name"].as_str().unwrap_or_default();
    findings.say_unless(name == call.name, || {
        format!("messages.{index}: tool_name is '{name}', but the call was of '{}'", call.name)
    });
}

fn unanswered(open: &mut Vec<Open<'_>>, findings: &mut Findings) {
    let names: Vec<_> = open.drain(..).map(|call| call.id.unwrap_or(call.name)).collect();
    findings.say_unless(names.is_empty(), || {
        format!("messages: calls without results at once after them: {}", names.join(", "))
    });
}
