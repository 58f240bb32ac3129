//! What each shape says, put together by a reader of a few lines.

use mainstay_testkit::model::{ModelServer, Reply, Shape, check, rounds, sealed, signature};
use serde_json::{Value, json};

use crate::client::{Answer, Client, Ending, ask};
use crate::requests::{first, later, messages};

/// What a model said.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    reasoning: String,
    proof: String,
    text: String,
    calls: Vec<(String, String)>,
    ids: Vec<String>,
    stop: String,
    /// All input, cached input, output.
    tokens: (u64, u64, u64),
    ended: bool,
}

fn hear(shape: Shape, answer: &Answer) -> Heard {
    let mut heard = Heard::default();
    for event in answer.text().split_inclusive(if shape == Shape::Ollama { "\n" } else { "\n\n" }) {
        let data = match shape {
            Shape::Ollama => event,
            _ => event.split_once("data: ").unwrap().1,
        };
        if data.trim() == "[DONE]" {
            heard.ended = true;
            continue;
        }
        let data: Value = serde_json::from_str(data).unwrap();
        if matches!(shape, Shape::Anthropic | Shape::Responses) {
            assert!(event.starts_with(&format!("event: {}\n", data["type"].as_str().unwrap())));
        }
        match shape {
            Shape::Chat => chat(&data, &mut heard),
            Shape::Responses => responses(&data, &mut heard),
            Shape::Anthropic => anthropic(&data, &mut heard),
            Shape::Ollama => ollama(&data, &mut heard),
        }
    }
    heard
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn tokens(input: &Value, cached: &Value, output: &Value) -> (u64, u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    (number(input), number(cached), number(output))
}

fn chat(chunk: &Value, heard: &mut Heard) {
    assert_eq!(chunk["object"], "chat.completion.chunk");
    assert_eq!(chunk["model"], "m");
    if let Some(usage) = chunk["usage"].as_object() {
        let cached = &usage["prompt_tokens_details"]["cached_tokens"];
        heard.tokens = tokens(&usage["prompt_tokens"], cached, &usage["completion_tokens"]);
        assert_eq!(chunk["choices"], json!([]));
        return;
    }
    let choice = &chunk["choices"][0];
    heard.reasoning += text(&choice["delta"]["reasoning_content"]);
    heard.text += text(&choice["delta"]["content"]);
    heard.stop += text(&choice["finish_reason"]);
    for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
        let index = call["index"].as_u64().unwrap() as usize;
        if index == heard.calls.len() {
            assert_eq!(call["type"], "function");
            heard.ids.push(text(&call["id"]).to_owned());
            heard.calls.push((text(&call["function"]["name"]).to_owned(), String::new()));
        }
        heard.calls[index].1 += text(&call["function"]["arguments"]);
    }
}

fn responses(event: &Value, heard: &mut Heard) {
    let item = &event["item"];
    match text(&event["type"]) {
        "response.reasoning_summary_text.delta" => heard.reasoning += text(&event["delta"]),
        "response.output_text.delta" => heard.text += text(&event["delta"]),
        "response.output_item.added" if item["type"] == "function_call" => {
            heard.ids.push(text(&item["call_id"]).to_owned());
            heard.calls.push((text(&item["name"]).to_owned(), String::new()));
        }
        "response.function_call_arguments.delta" => {
            heard.calls.last_mut().unwrap().1 += text(&event["delta"]);
        }
        "response.output_item.done" if item["type"] == "reasoning" => {
            heard.proof = text(&item["encrypted_content"]).to_owned();
        }
        "response.completed" | "response.incomplete" => {
            let response = &event["response"];
            heard.ended = true;
            heard.stop = text(&response["status"]).to_owned();
            let usage = &response["usage"];
            let cached = &usage["input_tokens_details"]["cached_tokens"];
            heard.tokens = tokens(&usage["input_tokens"], cached, &usage["output_tokens"]);
            let written = response["output"].as_array().unwrap().iter();
            let arguments = written.filter_map(|item| item["arguments"].as_str());
            assert!(arguments.eq(heard.calls.iter().map(|(_, arguments)| arguments)));
        }
        _ => {}
    }
}

fn anthropic(event: &Value, heard: &mut Heard) {
    let delta = &event["delta"];
    match text(&event["type"]) {
        "message_start" => assert_eq!(event["message"]["model"], "m"),
        "content_block_start" if event["content_block"]["type"] == "tool_use" => {
            let block = &event["content_block"];
            heard.ids.push(text(&block["id"]).to_owned());
            heard.calls.push((text(&block["name"]).to_owned(), String::new()));
        }
        "content_block_delta" => {
            heard.reasoning += text(&delta["thinking"]);
            heard.proof += text(&delta["signature"]);
            heard.text += text(&delta["text"]);
            if let Some(json) = delta["partial_json"].as_str() {
                heard.calls.last_mut().unwrap().1 += json;
            }
        }
        "message_delta" => {
            heard.stop = text(&delta["stop_reason"]).to_owned();
            let usage = &event["usage"];
            let cached = &usage["cache_read_input_tokens"];
            heard.tokens = tokens(&usage["input_tokens"], cached, &usage["output_tokens"]);
        }
        "message_stop" => heard.ended = true,
        _ => {}
    }
}

fn ollama(line: &Value, heard: &mut Heard) {
    let message = &line["message"];
    heard.reasoning += text(&message["thinking"]);
    heard.text += text(&message["content"]);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        heard.ids.push(text(&call["id"]).to_owned());
        let function = &call["function"];
        heard.calls.push((text(&function["name"]).to_owned(), function["arguments"].to_string()));
    }
    if line["done"] == true {
        heard.ended = true;
        heard.stop = text(&line["done_reason"]).to_owned();
        heard.tokens = tokens(&line["prompt_eval_count"], &Value::Null, &line["eval_count"]);
    }
}

/// A reply with one of everything.
fn everything() -> Reply {
    Reply::text("Grüße, “Welt” – I look now.")
        .reasoning("The user wants both.")
        .call("shell", &json!({"command": "printf 'ä\\n' \"x\""}))
        .call("read_file", &json!({"path": "a"}))
        .usage(70, 30, 9)
}

#[test]
fn every_shape_says_what_the_script_told() {
    for shape in Shape::ALL {
        let server = ModelServer::always(everything());
        let answer = ask(&server, shape, &first(shape));
        assert_eq!((answer.status, answer.ending), (200, Ending::Whole), "{shape}");
        let mut heard = hear(shape, &answer);
        assert_eq!(heard.ids.len(), 2);
        assert_ne!(heard.ids[0], heard.ids[1]);
        heard.ids.clear();
        let thought = "The user wants both.";
        let expected = Heard {
            reasoning: thought.to_owned(),
            proof: match shape {
                Shape::Anthropic => signature("m", thought),
                Shape::Responses => sealed("m", thought),
                Shape::Chat | Shape::Ollama => String::new(),
            },
            text: "Grüße, “Welt” – I look now.".to_owned(),
            calls: vec![
                ("shell".to_owned(), json!({"command": "printf 'ä\\n' \"x\""}).to_string()),
                ("read_file".to_owned(), json!({"path": "a"}).to_string()),
            ],
            ids: Vec::new(),
            stop: match shape {
                Shape::Chat => "tool_calls",
                Shape::Responses => "completed",
                Shape::Anthropic => "tool_use",
                Shape::Ollama => "stop",
            }
            .to_owned(),
            tokens: match shape {
                Shape::Anthropic => (70, 30, 9),
                Shape::Ollama => (100, 0, 9),
                Shape::Chat | Shape::Responses => (100, 30, 9),
            },
            ended: true,
        };
        assert_eq!(heard, expected, "{shape}");
    }
}

#[test]
fn well_formed_requests_are_accepted_and_the_conversation_is_read_back() {
    for shape in Shape::ALL {
        assert_eq!(check(shape, &first(shape)), Ok(()), "{shape}");
        assert_eq!(check(shape, &later(shape)), Ok(()), "{shape}");

        let server = ModelServer::always(Reply::text("ok"));
        ask(&server, shape, &later(shape));
        let asked = server.asked().remove(0);
        assert_eq!(asked.shape, shape);
        assert_eq!(asked.model(), "m");
        assert_eq!(asked.system(), "Be brief.");
        assert_eq!(asked.last_user_text(), "count");
        assert_eq!(asked.tool_names(), ["shell"]);
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(asked.bytes, later(shape).to_string().len());
        let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        assert_eq!(asked.results(), [pair("call_a", "one"), pair("call_b", "two")]);
        let calls = asked.calls();
        assert_eq!(calls[0].arguments, json!({"command": "ls"}));
        assert_eq!((calls[1].id.as_str(), calls[1].name.as_str()), ("call_b", "shell"));
    }
}

/// Answers a reply as a client would: the calls, and a result for each.
fn answered(shape: Shape, body: &mut Value, heard: &Heard) {
    let list = messages(body, shape);
    let calls = || heard.ids.iter().zip(&heard.calls);
    let parsed = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap();
    match shape {
        Shape::Chat => {
            let function = |name, arguments| json!({"name": name, "arguments": arguments});
            let asked: Vec<_> = calls()
                .map(|(id, (name, arguments))| {
                    json!({"id": id, "type": "function", "function": function(name, arguments)})
                })
                .collect();
            list.push(json!({"role": "assistant", "content": null, "tool_calls": asked}));
            list.extend(
                heard
                    .ids
                    .iter()
                    .map(|id| json!({"role": "tool", "tool_call_id": id, "content": "done"})),
            );
        }
        Shape::Responses => {
            list.extend(calls().map(|(id, (name, arguments))| {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
            }));
            list.extend(heard.ids.iter().map(
                |id| json!({"type": "function_call_output", "call_id": id, "output": "done"}),
            ));
        }
        Shape::Anthropic => {
            let asked: Vec<_> = calls()
                .map(|(id, (name, arguments))| {
                    let input = parsed(arguments);
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                })
                .collect();
            let results: Vec<_> = heard
                .ids
                .iter()
                .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"}))
                .collect();
            list.push(json!({"role": "assistant", "content": asked}));
            list.push(json!({"role": "user", "content": results}));
        }
        Shape::Ollama => {
            let asked: Vec<_> = calls()
                .map(|(id, (name, arguments))| {
                    let arguments = parsed(arguments);
                    json!({"id": id, "function": {"name": name, "arguments": arguments}})
                })
                .collect();
            list.push(json!({"role": "assistant", "content": "", "tool_calls": asked}));
            list.extend(calls().map(|(id, (name, _))| {
                json!({"role": "tool", "tool_call_id": id, "tool_name": name, "content": "done"})
            }));
        }
    }
}

#[test]
fn rounds_go_by_the_results_in_the_conversation() {
    for shape in Shape::ALL {
        for width in [1, 2] {
            let script = rounds(3, |k| ("shell", json!({"command": format!("echo {k}")})))
                .in_parallel(width)
                .finally("enough");
            let server = ModelServer::start(script);
            let mut client = Client::new(&server);
            let mut body = first(shape);
            let mut commands = Vec::new();
            let last = loop {
                // Asked twice, it says the same twice.
                hear(shape, &client.ask(shape, &body));
                let heard = hear(shape, &client.ask(shape, &body));
                if heard.calls.is_empty() {
                    break heard;
                }
                assert_eq!(heard.calls.len(), width);
                commands.extend(heard.calls.iter().map(|(_, arguments)| arguments.clone()));
                answered(shape, &mut body, &heard);
            };
            assert_eq!(last.text, "enough");
            let expected: Vec<_> = (0..3 * width)
                .map(|k| json!({"command": format!("echo {k}")}).to_string())
                .collect();
            assert_eq!(commands, expected);
            server.assert_no_violations();
            // All on one connection.
            assert!(server.asked().iter().all(|asked| asked.connection == 1));
        }
    }
}
