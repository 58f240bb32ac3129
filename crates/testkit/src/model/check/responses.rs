//! OpenAI's responses.

use std::collections::HashSet;

use serde_json::Value;

use super::tools::{self, Keys};
use super::{
    Findings, cache_markers, holds_object, is_filled, is_image_url, is_name, list,
    model_and_stream, number_within, unknown_names, whole_number,
};
use crate::model::render::THOUGHT;
use crate::model::seal::is_sealed;

const KNOWN: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "stream_options",
    "store",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "temperature",
    "top_p",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "text",
    "truncation",
    "user",
    "background",
    "top_logprobs",
];

pub(super) fn check(body: &Value, findings: &mut Findings) {
    model_and_stream(body, findings);
    for name in unknown_names(body, KNOWN) {
        findings.say(format!("Unknown parameter: '{name}'."));
    }
    number_within(body, "temperature", (0.0, 2.0), findings);
    whole_number(body, "max_output_tokens", 16, findings);
    if let Some(instructions) = body.get("instructions") {
        findings.say_unless(is_filled(instructions), || {
            "Invalid 'instructions': expected a string that is not empty.".to_owned()
        });
    }
    if let Some(id) = body.get("previous_response_id").filter(|id| !id.is_null()) {
        findings.say(format!("Previous response with id {id} not found."));
    }
    let keys = Keys { function: None, schema: "parameters", kind: Some("function") };
    tools::check(body, &keys, findings);
    cache_markers(body, findings);
    match &body["input"] {
        Value::String(text) if !text.is_empty() => {}
        Value::Array(items) if !items.is_empty() => Items::new(body).check(items, findings),
        _ => findings.say("Missing required parameter: 'input'."),
    }
}

/// Who made an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    System,
    User,
    Model,
    Tool,
}

/// What is known after some items.
struct Items<'b> {
    model: &'b str,
    stored: bool,
    ids: HashSet<&'b str>,
    calls: HashSet<&'b str>,
    open: Vec<&'b str>,
    before: Option<Maker>,
    /// A block of reasoning that nothing has followed yet.
    thought: Option<&'b str>,
    /// Whether the model's items since the last result hold reasoning.
    has_thought: bool,
}

impl<'b> Items<'b> {
    fn new(body: &'b Value) -> Self {
        Self {
            model: body["model"].as_str().unwrap_or_default(),
            stored: body["store"] != false,
            ids: HashSet::new(),
            calls: HashSet::new(),
            open: Vec::new(),
            before: None,
            thought: None,
            has_thought: false,
        }
    }

    fn check(mut self, items: &'b [Value], findings: &mut Findings) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("input[{index}]");
            let kind = item["type"].as_str().unwrap_or("message");
            let maker = match kind {
                "function_call_output" => Maker::Tool,
                "function_call" | "reasoning" => Maker::Model,
                _ => match item["role"].as_str() {
                    Some("assistant") => Maker::Model,
                    Some("system" | "developer") => Maker::System,
                    _ => Maker::User,
                },
            };
            self.follows(maker, &at, findings);
            self.id(item, kind, &at, findings);
            match kind {
                "message" => self.message(item, maker, &at, findings),
                "function_call" => self.call(item, &at, findings),
                "function_call_output" => self.output(item, &at, findings),
                "reasoning" => self.reasoning(item, &at, findings),
                _ => findings.say(format!("Invalid value: '{kind}' for '{at}.type'.")),
            }
            self.before = Some(maker);
        }
        self.unanswered(findings);
        self.lonely_thought(findings);
        findings.say_unless(self.before != Some(Maker::Model), || {
            "The input must end with a message of the user or an output of a function.".to_owned()
        });
    }

    fn follows(&mut self, maker: Maker, at: &str, findings: &mut Findings) {
        // Outputs follow the model's items at once, all of them.
        let answered = self.before == Some(Maker::Tool) && maker != Maker::Tool;
        if answered || matches!(maker, Maker::User | Maker::System) {
            self.unanswered(findings);
        }
        if maker != Maker::Model {
            self.lonely_thought(findings);
            self.has_thought = false;
        }
        let first = matches!(self.before, None | Some(Maker::System));
        findings.say_unless(!first || matches!(maker, Maker::User | Maker::System), || {
            format!("{at}: the first item must be a message of the user")
        });
    }

    fn id(&mut self, item: &'b Value, kind: &str, at: &str, findings: &mut Findings) {
        let Some(id) = item.get("id").filter(|id| !id.is_null()) else {
            findings.say_unless(kind != "reasoning", || {
                format!("Missing required parameter: '{at}.id'.")
            });
            return;
        };
        let id = id.as_str().unwrap_or_default();
        let start = match kind {
            "reasoning" => "rs",
            "function_call" => "fc",
            "message" => "msg",
            _ => "",
        };
        findings.say_unless(!id.is_empty() && id.starts_with(start), || {
            format!("Invalid '{at}.id': '{id}'. Expected an ID that begins with '{start}'.")
        });
        findings.say_unless(self.ids.insert(id), || {
            format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.")
        });
    }

    fn message(&mut self, item: &Value, maker: Maker, at: &str, findings: &mut Findings) {
        if maker == Maker::Model {
            self.thought = None;
        }
        let role = item["role"].as_str().unwrap_or_default();
        findings.say_unless(["user", "assistant", "system", "developer"].contains(&role), || {
            format!("Invalid value: '{role}' for '{at}.role'. Supported values are: 'assistant', 'system', 'developer', and 'user'.")
        });
        match &item["content"] {
            Value::String(text) => findings.say_unless(!text.is_empty(), || {
                format!("Invalid '{at}.content': the text must not be empty.")
            }),
            Value::Array(parts) => {
                findings.say_unless(!parts.is_empty(), || {
                    format!("Invalid '{at}.content': empty array.")
                });
                for (number, part) in parts.iter().enumerate() {
                    self::part(part, maker, &format!("{at}.content[{number}]"), findings);
                }
            }
            _ => findings.say(format!("Missing required parameter: '{at}.content'.")),
        }
    }

    fn call(&mut self, item: &'b Value, at: &str, findings: &mut Findings) {
        self.thought = None;
        let id = item["call_id"].as_str().unwrap_or_default();
        findings.say_unless((1..=64).contains(&id.len()), || {
            format!(
                "Invalid '{at}.call_id': expected a string of 1 to 64 characters, but got '{id}'."
            )
        });
        findings.say_unless(self.calls.insert(id), || {
            format!("Invalid '{at}.call_id': there is a function call with call_id {id} already.")
        });
        let name = item["name"].as_str().unwrap_or_default();
        findings.say_unless(is_name(name, 64), || {
            format!("Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', but got '{name}'.")
        });
        findings.say_unless(holds_object(&item["arguments"]), || {
            format!(
                "Invalid '{at}.arguments': expected a string that holds a JSON object, but got {}.",
                item["arguments"]
            )
        });
        let id_of_item = item["id"].as_str().and_then(|id| id.strip_prefix("fc_"));
        let thought_about = id_of_item.is_some_and(|id| id.starts_with(THOUGHT));
        findings.say_unless(!thought_about || self.has_thought, || {
            format!("Item {} of type 'function_call' was provided without its required 'reasoning' item.", item["id"])
        });
        self.open.push(id);
    }

    fn output(&mut self, item: &Value, at: &str, findings: &mut Findings) {
        let id = item["call_id"].as_str().unwrap_or_default();
        match self.open.iter().position(|call| *call == id) {
            Some(found) => {
                self.open.remove(found);
            }
            None => findings
                .say(format!("No tool call found for function call output with call_id {id}.")),
        }
        match &item["output"] {
            Value::Array(parts) if !parts.is_empty() => {
                for (number, part) in parts.iter().enumerate() {
                    self::part(part, Maker::Tool, &format!("{at}.output[{number}]"), findings);
                }
            }
            output => findings.say_unless(is_filled(output), || {
                format!("Invalid '{at}.output': expected a text that is not empty.")
            }),
        }
    }

    fn reasoning(&mut self, item: &'b Value, at: &str, findings: &mut Findings) {
        self.has_thought = true;
        self.thought = Some(item["id"].as_str().unwrap_or_default());
        findings.say_unless(item["summary"].is_array(), || {
            format!("Missing required parameter: '{at}.summary'.")
        });
        for (number, part) in list(&item["summary"]).iter().enumerate() {
            let sound = part["type"] == "summary_text" && is_filled(&part["text"]);
            findings.say_unless(sound, || {
                format!("Invalid '{at}.summary[{number}]': expected a summary_text with a text.")
            });
        }
        match item.get("encrypted_content").filter(|seal| !seal.is_null()) {
            Some(seal) => {
                let sound = seal.as_str().is_some_and(|seal| is_sealed(self.model, seal));
                findings.say_unless(sound, || {
                    format!("The encrypted content of {at} could not be verified.")
                });
            }
            None => findings.say_unless(self.stored, || {
                format!("Item with id {} not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item["id"])
            }),
        }
    }

    fn unanswered(&mut self, findings: &mut Findings) {
        for id in self.open.drain(..) {
            findings.say(format!("No tool output found for function call {id}."));
        }
    }

    fn lonely_thought(&mut self, findings: &mut Findings) {
        if let Some(id) = self.thought.take() {
            findings.say(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ));
        }
    }
}

/// A part of a message, or of what a function gave out.
fn part(part: &Value, maker: Maker, at: &str, findings: &mut Findings) {
    let kind = part["type"].as_str().unwrap_or_default();
    let sound = match (maker, kind) {
        (Maker::Model, "output_text")
        | (Maker::User | Maker::System | Maker::Tool, "input_text") => is_filled(&part["text"]),
        (Maker::Model, "refusal") => is_filled(&part["refusal"]),
        (Maker::User | Maker::Tool, "input_image") => is_image_url(&part["image_url"]),
        _ => {
            let supported = match maker {
                Maker::Model => "'output_text' and 'refusal'",
                Maker::System => "'input_text'",
                Maker::User | Maker::Tool => "'input_text' and 'input_image'",
            };
            findings.say(format!(
                "Invalid value: '{kind}' for '{at}.type'. Supported values are: {supported}."
            ));
            return;
        }
    };
    findings.say_unless(sound, || format!("Invalid '{at}': what it holds is empty or malformed."));
}
