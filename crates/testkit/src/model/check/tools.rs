//! Tools on offer: names and schemas.

use std::collections::HashSet;

use serde_json::Value;

use super::{Findings, is_name, list};

/// Where a shape keeps the parts of a tool.
pub(super) struct Keys {
    /// The object that the parts are in, or `None` if they are in the tool itself.
    pub(super) function: Option<&'static str>,
    /// The schema.
    pub(super) schema: &'static str,
    /// The `type` that a tool must bear, where it must.
    pub(super) kind: Option<&'static str>,
}

pub(super) fn check(body: &Value, keys: &Keys, findings: &mut Findings) {
    let Some(tools) = body.get("tools") else {
        findings.say_unless(body.get("tool_choice").is_none(), || {
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.".to_owned()
        });
        return;
    };
    if list(tools).is_empty() {
        findings.say("Invalid 'tools': empty array. Expected an array with minimum length 1.");
        return;
    }
    let mut names = HashSet::new();
    for (index, tool) in list(tools).iter().enumerate() {
        if let Some(kind) = keys.kind {
            findings.say_unless(tool["type"] == kind, || {
                format!("tools.{index}.type: Input should be '{kind}'")
            });
        }
        let function = keys.function.map_or(tool, |key| &tool[key]);
        let name = function["name"].as_str().unwrap_or_default();
        findings.say_unless(is_name(name, 64), || {
            format!("tools.{index}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$', but got '{name}'")
        });
        findings.say_unless(names.insert(name), || {
            format!("tools: Tool names must be unique, but '{name}' is there twice.")
        });
        let description = function.get("description");
        findings.say_unless(description.is_none_or(|text| text.is_string()), || {
            format!("tools.{index}.description: Input should be a valid string")
        });
        schema(&function[keys.schema], &format!("tools.{index}.{}", keys.schema), findings);
        if function["strict"] == true {
            strict(&function[keys.schema], name, findings);
        }
    }
}

fn schema(schema: &Value, at: &str, findings: &mut Findings) {
    if !schema.is_object() {
        findings.say(format!("{at}: Input should be a valid dictionary"));
        return;
    }
    findings.say_unless(schema["type"] == "object", || {
        format!(
            "{at}.type: schema must be a JSON Schema of 'type: \"object\"', got 'type: {}'.",
            schema["type"]
        )
    });
    let properties = schema.get("properties");
    findings.say_unless(properties.is_none_or(Value::is_object), || {
        format!("{at}.properties: Input should be a valid dictionary")
    });
    for name in ["oneOf", "allOf", "anyOf"] {
        findings.say_unless(schema.get(name).is_none(), || {
            format!("{at}: input_schema does not support oneOf, allOf, or anyOf at the top level")
        });
    }
    for required in list(&schema["required"]) {
        let known = required.as_str().is_some_and(|name| schema["properties"].get(name).is_some());
        findings.say_unless(known, || {
            format!("{at}.required: {required} is not a property of the schema")
        });
    }
}

/// What `strict` demands of a schema and of every object in it.
fn strict(schema: &Value, name: &str, findings: &mut Findings) {
    if let Some(properties) = schema["properties"].as_object() {
        let refuse = |what: &str| format!("Invalid schema for function '{name}': {what}");
        findings.say_unless(schema["additionalProperties"] == false, || {
            refuse("'additionalProperties' is required to be supplied and to be false.")
        });
        for property in properties.keys() {
            let required = list(&schema["required"]).iter().any(|one| one == property);
            findings.say_unless(required, || {
                refuse(&format!("'required' is required to be supplied and to be an array including every key in properties. Missing '{property}'."))
            });
        }
        for property in properties.values() {
            strict(property, name, findings);
        }
    }
    if let Some(items) = schema.get("items") {
        strict(items, name, findings);
    }
}
