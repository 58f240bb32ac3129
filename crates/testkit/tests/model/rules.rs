//! What each shape refuses. Every case starts from a request that is accepted and breaks one rule.

use mainstay_testkit::model::{Shape, check, sealed, signature};
use serde_json::{Value, json};

use crate::requests::{first, later, messages};

/// Breaks a good request and expects exactly one complaint, with these words.
#[track_caller]
fn refused(shape: Shape, words: &str, spoil: impl FnOnce(&mut Value)) {
    let said = judged(shape, spoil);
    assert_eq!(said.len(), 1, "{shape} should complain once, with {words:?}: {said:#?}");
    assert!(said[0].contains(words), "{shape} should say {words:?}: {said:#?}");
}

/// Changes a good request in a way that must be accepted.
#[track_caller]
fn accepted(shape: Shape, change: impl FnOnce(&mut Value)) {
    assert_eq!(judged(shape, change), Vec::<String>::new(), "{shape}");
}

#[track_caller]
fn judged(shape: Shape, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut body = later(shape);
    assert_eq!(check(shape, &body), Ok(()), "the control is accepted");
    change(&mut body);
    check(shape, &body).err().unwrap_or_default()
}

fn remove(value: &mut Value, name: &str) {
    assert!(value.as_object_mut().unwrap().remove(name).is_some(), "{name} was there");
}

/// Where the messages of `later` begin, after the user's.
fn answer_of(shape: Shape) -> usize {
    match shape {
        Shape::Chat | Shape::Ollama => 2,
        Shape::Anthropic | Shape::Responses => 1,
    }
}

const CHAT: Shape = Shape::Chat;
const RESPONSES: Shape = Shape::Responses;
const ANTHROPIC: Shape = Shape::Anthropic;
const OLLAMA: Shape = Shape::Ollama;

#[test]
fn a_request_names_its_model_and_streams() {
    for shape in [CHAT, RESPONSES, ANTHROPIC] {
        refused(shape, "you must provide a model", |body| {
            // Nothing is in it that is signed for a model.
            *body = first(shape);
            remove(body, "model");
        });
        refused(shape, "only streams", |body| remove(body, "stream"));
    }
    refused(OLLAMA, "model is required", |body| remove(body, "model"));
    refused(OLLAMA, "only streams", |body| body["stream"] = json!(false));
    accepted(OLLAMA, |body| remove(body, "stream"));
    assert!(check(CHAT, &json!([])).is_err());
}

#[test]
fn something_was_said() {
    refused(CHAT, "Invalid 'messages': empty array", |body| body["messages"] = json!([]));
    refused(RESPONSES, "'input'", |body| body["input"] = json!([]));
    refused(RESPONSES, "'input'", |body| body["input"] = json!(""));
    accepted(RESPONSES, |body| body["input"] = json!("count"));
    refused(ANTHROPIC, "at least one message", |body| body["messages"] = json!([]));
    refused(OLLAMA, "nothing was said", |body| body["messages"] = json!([]));
}

#[test]
fn every_call_has_its_result_at_once() {
    // The last result is missing.
    refused(CHAT, "did not have response messages: call_b", |body| {
        messages(body, CHAT).pop();
    });
    refused(RESPONSES, "No tool output found for function call call_b", |body| {
        messages(body, RESPONSES).pop();
    });
    refused(ANTHROPIC, "without `tool_result` blocks immediately after: call_b", |body| {
        body["messages"][2]["content"].as_array_mut().unwrap().pop();
    });
    refused(OLLAMA, "calls without results at once after them: call_b", |body| {
        messages(body, OLLAMA).pop();
    });
    // The user speaks before the last result, which then belongs to nothing.
    for (shape, missing, orphan) in [
        (CHAT, "did not have response messages: call_b", "'call_b' waits"),
        (OLLAMA, "at once after them: call_b", "the result of no call"),
    ] {
        let said = judged(shape, |body| {
            messages(body, shape).insert(4, json!({"role": "user", "content": "and?"}));
        });
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains(missing) && said[1].contains(orphan), "{said:?}");
    }
    let said = judged(RESPONSES, |body| {
        messages(body, RESPONSES).insert(6, json!({"role": "user", "content": "and?"}));
    });
    assert_eq!(said.len(), 2, "{said:?}");
    // Results come in any order.
    for shape in [CHAT, RESPONSES, OLLAMA] {
        accepted(shape, |body| {
            let list = messages(body, shape);
            let last = list.pop().unwrap();
            list.insert(list.len() - 1, last);
        });
    }
}

#[test]
fn no_result_is_without_its_call_and_none_is_there_twice() {
    for (shape, words) in [
        (CHAT, "must be a response to a preceeding message with 'tool_calls'"),
        (RESPONSES, "No tool call found for function call output with call_id call_b"),
        (OLLAMA, "the result of no call"),
    ] {
        refused(shape, words, |body| {
            let twice = messages(body, shape).last().unwrap().clone();
            messages(body, shape).push(twice);
        });
    }
    refused(ANTHROPIC, "Found multiple `tool_result` blocks with id: call_b", |body| {
        let blocks = body["messages"][2]["content"].as_array_mut().unwrap();
        blocks.push(blocks[1].clone());
    });
    refused(ANTHROPIC, "unexpected `tool_use_id` found in `tool_result` blocks: ghost", |body| {
        let ghost = json!({"type": "tool_result", "tool_use_id": "ghost", "content": "x"});
        body["messages"][2]["content"].as_array_mut().unwrap().push(ghost);
    });
}

#[test]
fn ids_of_calls_are_unique_in_the_whole_conversation() {
    for (shape, words) in [
        (CHAT, "Duplicate value for 'tool_call_id' of 'call_a'"),
        (RESPONSES, "a function call with call_id call_a already"),
        (ANTHROPIC, "`tool_use` ids must be unique"),
        (OLLAMA, "'call_a' is there twice"),
    ] {
        let again = |body: &mut Value, id: &str| {
            let at = answer_of(shape);
            let list = messages(body, shape);
            let round: Vec<_> = list[at..].to_vec();
            let renamed = Value::Array(round).to_string().replace("call_a", id);
            let renamed = renamed.replace("call_b", "call_d").replace("_1\"", "_3\"");
            let renamed = renamed.replace("_2\"", "_4\"");
            list.extend(serde_json::from_str::<Vec<Value>>(&renamed).unwrap());
        };
        refused(shape, words, |body| again(body, "call_a"));
        accepted(shape, |body| again(body, "call_c"));
    }
}

#[test]
fn ids_of_calls_are_there_and_not_too_long() {
    let both = |body: &mut Value, id: &str| {
        *body = serde_json::from_str(&body.to_string().replace("call_b", id)).unwrap();
    };
    refused(CHAT, "1 to 40 characters", |body| both(body, &"x".repeat(41)));
    accepted(CHAT, |body| both(body, &"x".repeat(40)));
    refused(CHAT, "1 to 40 characters", |body| both(body, ""));
    refused(RESPONSES, "1 to 64 characters", |body| both(body, &"x".repeat(65)));
    accepted(RESPONSES, |body| both(body, &"x".repeat(64)));
    refused(ANTHROPIC, "tool_use.id: String should match", |body| both(body, "call:b"));
}

#[test]
fn no_text_is_empty() {
    for (shape, words) in [
        (CHAT, "content must not be empty"),
        (RESPONSES, "must not be empty"),
        (ANTHROPIC, "must be non-empty"),
        (OLLAMA, "content must not be empty"),
    ] {
        let at = answer_of(shape) - 1;
        refused(shape, words, |body| messages(body, shape)[at]["content"] = json!(""));
    }
    refused(ANTHROPIC, "non-whitespace text", |body| body["messages"][0]["content"] = json!(" \n"));
    refused(ANTHROPIC, "all messages must have non-empty content", |body| {
        body["messages"][0]["content"] = json!([]);
    });
    refused(ANTHROPIC, "content.2: text content blocks must be non-empty", |body| {
        body["messages"][1]["content"][2]["text"] = json!("");
    });
    refused(ANTHROPIC, "tool_result: content must not be empty", |body| {
        body["messages"][2]["content"][0]["content"] = json!("");
    });
    refused(ANTHROPIC, "tool_result.content.0: text content blocks", |body| {
        body["messages"][2]["content"][1]["content"][0]["text"] = json!("");
    });
    refused(ANTHROPIC, "system.0", |body| body["system"][0]["text"] = json!(""));
    refused(CHAT, "messages.2.content", |body| body["messages"][2]["content"] = json!(""));
    accepted(CHAT, |body| body["messages"][2]["content"] = Value::Null);
    refused(CHAT, "messages.3.content", |body| body["messages"][3]["content"] = json!(""));
    refused(CHAT, "text content must not be empty", |body| {
        body["messages"][1]["content"] = json!([{"type": "text", "text": ""}]);
    });
    refused(RESPONSES, "input[5].output", |body| body["input"][5]["output"] = json!(""));
    refused(RESPONSES, "input[2].content[0]", |body| {
        body["input"][2]["content"][0]["text"] = json!("");
    });
    refused(RESPONSES, "'instructions'", |body| body["instructions"] = json!(""));
    refused(OLLAMA, "messages.3: content", |body| body["messages"][3]["content"] = json!(""));
    // An answer of nothing but null says nothing.
    refused(CHAT, "expected a string, got null", |body| {
        messages(body, CHAT).truncate(2);
        messages(body, CHAT).push(json!({"role": "assistant", "content": null}));
        messages(body, CHAT).push(json!({"role": "user", "content": "and?"}));
    });
}

#[test]
fn the_user_speaks_first_and_the_model_not_last() {
    refused(CHAT, "must be from the user", |body| {
        messages(body, CHAT).remove(1);
    });
    refused(RESPONSES, "the first item must be a message of the user", |body| {
        let list = messages(body, RESPONSES);
        list.drain(0..2);
        list.drain(1..);
        list.push(json!({"role": "user", "content": "and?"}));
    });
    refused(ANTHROPIC, "first message must use the \"user\" role", |body| {
        messages(body, ANTHROPIC).remove(0);
    });
    refused(OLLAMA, "the first message must be from the user", |body| {
        messages(body, OLLAMA).remove(1);
    });
    for (shape, words) in [
        (CHAT, "Expected last role User or Tool"),
        (RESPONSES, "must end with"),
        (ANTHROPIC, "must end with a user message"),
        (OLLAMA, "the last message must be from the user or a tool"),
    ] {
        refused(shape, words, |body| {
            messages(body, shape).push(json!({"role": "assistant", "content": "so"}));
        });
        accepted(shape, |body| {
            messages(body, shape).push(json!({"role": "assistant", "content": "so"}));
            messages(body, shape).push(json!({"role": "user", "content": "and?"}));
        });
    }
}

#[test]
fn roles_take_turns_where_they_must() {
    for (shape, words) in
        [(CHAT, "Conversation roles must alternate"), (ANTHROPIC, "roles must alternate")]
    {
        let at = answer_of(shape);
        refused(shape, words, |body| {
            messages(body, shape).insert(at, json!({"role": "user", "content": "and?"}));
        });
    }
    // The user may speak after results.
    for shape in [CHAT, RESPONSES, OLLAMA] {
        accepted(shape, |body| {
            messages(body, shape).push(json!({"role": "user", "content": "and?"}));
        });
    }
    accepted(ANTHROPIC, |body| {
        let text = json!({"type": "text", "text": "and?"});
        body["messages"][2]["content"].as_array_mut().unwrap().push(text);
    });
    refused(ANTHROPIC, "`tool_result` blocks must come first", |body| {
        let text = json!({"type": "text", "text": "and?"});
        body["messages"][2]["content"].as_array_mut().unwrap().insert(1, text);
    });
}

#[test]
fn the_system_speaks_where_it_may() {
    let told = json!({"role": "system", "content": "Be kind."});
    refused(CHAT, "System message must be at the beginning", |body| {
        messages(body, CHAT).push(told.clone());
        messages(body, CHAT).push(json!({"role": "user", "content": "and?"}));
    });
    refused(OLLAMA, "must be at the beginning", |body| messages(body, OLLAMA).push(told.clone()));
    let said = judged(ANTHROPIC, |body| messages(body, ANTHROPIC).insert(0, told.clone()));
    assert!(said.iter().any(|words| words.contains("Unexpected role \"system\"")), "{said:?}");
    accepted(CHAT, |body| messages(body, CHAT).insert(0, told.clone()));
    refused(CHAT, "Invalid value: 'bot'", |body| {
        messages(body, CHAT).push(json!({"role": "bot", "content": "x"}));
        messages(body, CHAT).push(json!({"role": "user", "content": "and?"}));
    });
    refused(ANTHROPIC, "Input should be a valid string or a list", |body| {
        body["system"] = json!(7);
    });
}

#[test]
fn arguments_are_what_the_shape_wants() {
    for bad in [json!("{"), json!("[]"), json!(""), json!({}), Value::Null] {
        refused(CHAT, "a string that holds a JSON object", |body| {
            body["messages"][2]["tool_calls"][0]["function"]["arguments"] = bad.clone();
        });
        refused(RESPONSES, "a string that holds a JSON object", |body| {
            body["input"][3]["arguments"] = bad.clone();
        });
    }
    for bad in [json!("{}"), json!([]), Value::Null] {
        refused(ANTHROPIC, "input: Input should be a valid dictionary", |body| {
            body["messages"][1]["content"][3]["input"] = bad.clone();
        });
        refused(OLLAMA, "ToolCallFunctionArguments", |body| {
            body["messages"][2]["tool_calls"][0]["function"]["arguments"] = bad.clone();
        });
    }
}

#[test]
fn calls_have_names_and_kinds() {
    for bad in ["", "sh ell", "schön", &"x".repeat(65)] {
        refused(CHAT, "function.name", |body| {
            body["messages"][2]["tool_calls"][0]["function"]["name"] = json!(bad);
        });
        refused(RESPONSES, "input[3].name", |body| body["input"][3]["name"] = json!(bad));
    }
    refused(ANTHROPIC, "tool_use.name", |body| {
        body["messages"][1]["content"][3]["name"] = json!("sh ell");
    });
    refused(CHAT, "type': expected 'function'", |body| {
        remove(&mut body["messages"][2]["tool_calls"][0], "type");
    });
    refused(CHAT, "tool_calls': empty array", |body| {
        messages(body, CHAT).truncate(3);
        body["messages"][2]["tool_calls"] = json!([]);
        messages(body, CHAT).push(json!({"role": "user", "content": "and?"}));
    });
    refused(OLLAMA, "tool_name is 'other'", |body| {
        body["messages"][3]["tool_name"] = json!("other");
    });
    // Without ids, the order tells.
    accepted(OLLAMA, |body| {
        for call in body["messages"][2]["tool_calls"].as_array_mut().unwrap() {
            remove(call, "id");
        }
        for result in &mut messages(body, OLLAMA)[3..] {
            remove(result, "tool_call_id");
        }
    });
    refused(OLLAMA, "type string", |body| body["messages"][1]["content"] = json!([]));
    refused(OLLAMA, "invalid role", |body| {
        messages(body, OLLAMA).push(json!({"role": "bot", "content": "x"}));
    });
}

/// The object that a tool's name and schema are in.
fn tool(body: &mut Value, shape: Shape) -> &mut Value {
    let tool = &mut body["tools"][0];
    match shape {
        Shape::Chat | Shape::Ollama => &mut tool["function"],
        Shape::Responses | Shape::Anthropic => tool,
    }
}

#[test]
fn tools_have_names_and_objects_for_schemas() {
    for shape in Shape::ALL {
        let schema = if shape == ANTHROPIC { "input_schema" } else { "parameters" };
        let spoiled = |words: &str, spoil: &dyn Fn(&mut Value)| {
            refused(shape, words, |body| spoil(tool(body, shape)));
        };
        spoiled("should match pattern", &|tool| tool["name"] = json!("sh ell"));
        spoiled("should match pattern", &|tool| remove(tool, "name"));
        spoiled("should be a valid dictionary", &|tool| tool[schema] = json!("object"));
        spoiled("should be a valid dictionary", &|tool| remove(tool, schema));
        spoiled("type: \"object\"", &|tool| remove(&mut tool[schema], "type"));
        spoiled("type: \"object\"", &|tool| tool[schema]["type"] = json!("array"));
        spoiled("at the top level", &|tool| tool[schema]["anyOf"] = json!([]));
        spoiled("is not a property", &|tool| tool[schema]["required"] = json!(["ghost"]));
        spoiled("description", &|tool| tool["description"] = json!(7));
        refused(shape, "must be unique", |body| {
            let twice = body["tools"][0].clone();
            body["tools"].as_array_mut().unwrap().push(twice);
        });
        refused(shape, "'tools': empty array", |body| body["tools"] = json!([]));
        accepted(shape, |body| remove(body, "tools"));
        refused(shape, "only allowed when 'tools'", |body| {
            remove(body, "tools");
            body["tool_choice"] = json!("auto");
        });
        if shape != ANTHROPIC {
            refused(shape, "type: Input should be 'function'", |body| {
                remove(&mut body["tools"][0], "type");
            });
        }
    }
}

#[test]
fn a_strict_schema_is_closed_and_requires_all() {
    for shape in [CHAT, RESPONSES] {
        let strictly = |body: &mut Value| {
            let tool = tool(body, shape);
            tool["strict"] = json!(true);
            tool["parameters"]["additionalProperties"] = json!(false);
        };
        accepted(shape, strictly);
        refused(shape, "'additionalProperties'", |body| {
            strictly(body);
            remove(&mut tool(body, shape)["parameters"], "additionalProperties");
        });
        refused(shape, "Missing 'command'", |body| {
            strictly(body);
            tool(body, shape)["parameters"]["required"] = json!([]);
        });
    }
}

#[test]
fn limits_are_numbers_in_their_ranges() {
    refused(ANTHROPIC, "max_tokens: Field required", |body| remove(body, "max_tokens"));
    refused(ANTHROPIC, "'max_tokens'", |body| body["max_tokens"] = json!(0));
    refused(CHAT, "'max_tokens'", |body| body["max_tokens"] = json!("many"));
    refused(CHAT, "at the same time is not supported", |body| {
        body["max_tokens"] = json!(9);
        body["max_completion_tokens"] = json!(9);
    });
    accepted(CHAT, |body| body["max_completion_tokens"] = json!(9));
    refused(RESPONSES, "Expected a value >= 16", |body| body["max_output_tokens"] = json!(15));
    refused(CHAT, "'temperature'", |body| body["temperature"] = json!(2.5));
    refused(ANTHROPIC, "'temperature'", |body| body["temperature"] = json!(1.5));
    accepted(RESPONSES, |body| body["temperature"] = json!(1.5));
    refused(OLLAMA, "num_ctx", |body| body["options"]["num_ctx"] = json!("8k"));
    refused(OLLAMA, "options", |body| body["options"] = json!([]));
    refused(OLLAMA, "invalid think value", |body| body["think"] = json!("very"));
    accepted(OLLAMA, |body| body["think"] = json!("high"));
}

#[test]
fn what_a_shape_does_not_know_is_refused_where_the_real_one_refuses() {
    refused(ANTHROPIC, "stream_options: Extra inputs are not permitted", |body| {
        body["stream_options"] = json!({});
    });
    refused(ANTHROPIC, "messages.0.name: Extra inputs", |body| {
        body["messages"][0]["name"] = json!("x");
    });
    refused(ANTHROPIC, "text.extra: Extra inputs", |body| {
        body["messages"][1]["content"][2]["extra"] = json!("x");
    });
    refused(ANTHROPIC, "thinking.cache_control: Extra inputs", |body| {
        body["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    });
    refused(ANTHROPIC, "`tool_use` blocks are not permitted in `user` messages", |body| {
        let call = body["messages"][1]["content"][3].clone();
        body["messages"][0]["content"] = json!([call]);
    });
    refused(ANTHROPIC, "`tool_result` blocks are not permitted in `assistant` messages", |body| {
        let result = body["messages"][2]["content"][0].clone();
        body["messages"][1]["content"].as_array_mut().unwrap().insert(3, result);
    });
    refused(RESPONSES, "Unknown parameter: 'messages'", |body| body["messages"] = json!([]));
    refused(RESPONSES, "Previous response", |body| body["previous_response_id"] = json!("r"));
    refused(RESPONSES, "Invalid value: 'web' for", |body| {
        messages(body, RESPONSES).push(json!({"type": "web"}));
    });
    refused(RESPONSES, "Supported values are: 'output_text' and 'refusal'", |body| {
        body["input"][2]["content"][0]["type"] = json!("input_text");
    });
}

#[test]
fn at_most_four_places_are_marked_for_the_cache() {
    let mark = json!({"type": "ephemeral"});
    let marked = |body: &mut Value, more: usize| {
        // One is in the system prompt already; a schema with such a property is no mark.
        body["tools"][0]["cache_control"] = mark.clone();
        body["tools"][0]["input_schema"]["properties"]["cache_control"] = json!({"type": "string"});
        for block in &mut body["messages"][2]["content"].as_array_mut().unwrap()[..more] {
            block["cache_control"] = mark.clone();
        }
    };
    accepted(ANTHROPIC, |body| marked(body, 2));
    refused(
        ANTHROPIC,
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        |body| {
            marked(body, 2);
            body["messages"][1]["content"][3]["cache_control"] = mark.clone();
        },
    );
}

#[test]
fn thoughts_come_back_unchanged_and_to_the_model_that_had_them() {
    refused(ANTHROPIC, "Invalid `signature` in `thinking` block", |body| {
        body["messages"][1]["content"][0]["thinking"] = json!("hm!");
    });
    refused(ANTHROPIC, "Invalid `signature` in `thinking` block", |body| {
        body["messages"][1]["content"][0]["signature"] = json!(signature("other", "hm"));
    });
    refused(ANTHROPIC, "Invalid `signature` in `thinking` block", |body| {
        remove(&mut body["messages"][1]["content"][0], "signature");
    });
    refused(ANTHROPIC, "Invalid `data` in `redacted_thinking`", |body| {
        body["messages"][1]["content"][1]["data"] = json!("sealed00z0");
    });
    refused(RESPONSES, "could not be verified", |body| {
        body["input"][1]["encrypted_content"] = json!(sealed("other", "hm"));
    });
    refused(RESPONSES, "not persisted when `store` is set to false", |body| {
        remove(&mut body["input"][1], "encrypted_content");
    });
    accepted(RESPONSES, |body| {
        remove(&mut body["input"][1], "encrypted_content");
        body["store"] = json!(true);
    });
    refused(RESPONSES, "input[1].summary", |body| remove(&mut body["input"][1], "summary"));
    refused(RESPONSES, "input[1].summary[0]", |body| body["input"][1]["summary"] = json!(["hm"]));
}

#[test]
fn thoughts_stay_with_what_they_led_to() {
    let called = |body: &mut Value, id: &str| {
        *body = serde_json::from_str(&body.to_string().replace("call_a", id)).unwrap();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    };
    let forget =
        |body: &mut Value| drop(body["messages"][1]["content"].as_array_mut().unwrap().drain(..2));
    accepted(ANTHROPIC, |body| called(body, "toolu_thought_1"));
    refused(ANTHROPIC, "must start with a thinking block", |body| {
        called(body, "toolu_thought_1");
        forget(body);
    });
    // Not thought about, or long ago.
    accepted(ANTHROPIC, |body| {
        called(body, "toolu_1");
        forget(body);
    });
    accepted(ANTHROPIC, |body| {
        called(body, "toolu_thought_1");
        forget(body);
        messages(body, ANTHROPIC).push(json!({"role": "assistant", "content": "so"}));
        messages(body, ANTHROPIC).push(json!({"role": "user", "content": "and?"}));
    });
    refused(ANTHROPIC, "cannot be `thinking`", |body| {
        *body = first(ANTHROPIC);
        let thought =
            json!({"type": "thinking", "thinking": "hm", "signature": signature("m", "hm")});
        messages(body, ANTHROPIC).push(json!({"role": "assistant", "content": [thought]}));
        messages(body, ANTHROPIC).push(json!({"role": "user", "content": "and?"}));
    });
    refused(RESPONSES, "without its required following item", |body| {
        let thought = body["input"][1].clone();
        *body = first(RESPONSES);
        messages(body, RESPONSES).push(thought);
        messages(body, RESPONSES).push(json!({"role": "user", "content": "and?"}));
    });
    refused(RESPONSES, "without its required 'reasoning' item", |body| {
        body["input"][3]["id"] = json!("fc_thought_1");
        messages(body, RESPONSES).remove(1);
    });
    accepted(RESPONSES, |body| body["input"][3]["id"] = json!("fc_thought_1"));
}

#[test]
fn a_signed_call_comes_back_with_its_signature() {
    let called = |body: &mut Value, proof: &str| {
        let text = body.to_string().replace("call_a", "call_signed_1");
        *body = serde_json::from_str(&text).unwrap();
        body["messages"][2]["tool_calls"][0]["extra_content"] =
            json!({"google": {"thought_signature": proof}});
    };
    accepted(CHAT, |body| called(body, &signature("m", "call_signed_1")));
    refused(CHAT, "missing a thought_signature", |body| {
        called(body, &signature("other", "call_signed_1"));
    });
    refused(CHAT, "missing a thought_signature", |body| {
        called(body, "");
        remove(&mut body["messages"][2]["tool_calls"][0], "extra_content");
    });
}

#[test]
fn thinking_has_its_own_limits() {
    let thinking = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    accepted(ANTHROPIC, |body| body["thinking"] = thinking(2048));
    refused(ANTHROPIC, "greater than or equal to 1024", |body| body["thinking"] = thinking(9));
    refused(ANTHROPIC, "`max_tokens` must be greater", |body| body["thinking"] = thinking(4096));
    refused(ANTHROPIC, "`temperature` may only be set to 1", |body| {
        body["thinking"] = thinking(2048);
        body["temperature"] = json!(0.5);
    });
}

#[test]
fn items_of_responses_have_ids_of_their_kind() {
    refused(RESPONSES, "begins with 'fc'", |body| body["input"][3]["id"] = json!("call_a"));
    refused(RESPONSES, "begins with 'msg'", |body| body["input"][2]["id"] = json!("m_1"));
    refused(RESPONSES, "begins with 'rs'", |body| body["input"][1]["id"] = json!("1"));
    refused(RESPONSES, "'input[1].id'", |body| remove(&mut body["input"][1], "id"));
    refused(RESPONSES, "Duplicate item found with id fc_1", |body| {
        body["input"][4]["id"] = json!("fc_1");
    });
    accepted(RESPONSES, |body| remove(&mut body["input"][3], "id"));
}

#[test]
fn pictures_are_sound_and_where_they_may_be() {
    let data = "iVBORw0KGgo=";
    let of_anthropic = |kind: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
    accepted(ANTHROPIC, |body| {
        body["messages"][0]["content"] = json!([of_anthropic("image/png", data)]);
        body["messages"][2]["content"][0]["content"] = json!([of_anthropic("image/png", data)]);
    });
    for bad in [of_anthropic("image/tiff", data), of_anthropic("image/png", "?")] {
        refused(ANTHROPIC, "image.source", |body| body["messages"][0]["content"] = json!([bad]));
    }
    let of_chat = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
    let url = format!("data:image/png;base64,{data}");
    accepted(CHAT, |body| body["messages"][1]["content"] = of_chat(&url));
    refused(CHAT, "base64-encoded data URL", |body| body["messages"][1]["content"] = of_chat("x"));
    refused(CHAT, "only allowed for messages with role 'user'", |body| {
        body["messages"][3]["content"] = of_chat(&url);
    });
    let of_responses = |url: &str| json!([{"type": "input_image", "image_url": url}]);
    accepted(RESPONSES, |body| body["input"][0]["content"] = of_responses(&url));
    accepted(RESPONSES, |body| body["input"][5]["output"] = of_responses(&url));
    refused(RESPONSES, "malformed", |body| body["input"][0]["content"] = of_responses("x"));
    accepted(OLLAMA, |body| body["messages"][1]["images"] = json!([data]));
    refused(OLLAMA, "illegal base64", |body| body["messages"][1]["images"] = json!(["?"]));
}
