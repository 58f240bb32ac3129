//! A reader of a few lines for each shape.

use mainstay_testkit::model::Shape;
use serde_json::{Value, json};

use crate::client::Answer;

/// What a model said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) model: String,
    pub(crate) reasoning: String,
    pub(crate) proof: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) ids: Vec<String>,
    pub(crate) stop: String,
    /// All input, cached input, output.
    pub(crate) tokens: (u64, u64, u64),
    pub(crate) ended: bool,
}

pub(crate) fn hear(shape: Shape, answer: &Answer) -> Heard {
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
    heard.model = text(&chunk["model"]).to_owned();
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
            heard.model = text(&response["model"]).to_owned();
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
        "message_start" => heard.model = text(&event["message"]["model"]).to_owned(),
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
    heard.model = text(&line["model"]).to_owned();
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
