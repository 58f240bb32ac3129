//! Whatever the journal holds, every format's strictest server takes the request.

mod compacted;

use mainstay_message::{
    AssistantPart, Call, CallResult, Content, Image, Message, Reasoning, ToolSpec,
};
use mainstay_testkit::model::{Shape, check, sealed, signature};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Quirks, encode};
use crate::{Api, Candidate, Effort, Memo, Provider, Request};

fn candidate(name: &str, api: Api, base_url: &str, model: &str) -> Candidate {
    let provider = Provider::without_key(name, api, url::Url::parse(base_url).unwrap());
    Candidate { window: Some(32_768), ..Candidate::new(provider, model) }
}

fn shape(api: Api) -> Shape {
    match api {
        Api::OpenAiChat => Shape::Chat,
        Api::OpenAiResponses => Shape::Responses,
        Api::Anthropic => Shape::Anthropic,
        Api::Ollama => Shape::Ollama,
    }
}

fn body(candidate: &Candidate, request: &Request<'_>) -> Value {
    let bytes = encode(candidate, request, &Quirks::default()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn tools() -> Vec<ToolSpec> {
    let parameters =
        json!({"type": "object", "properties": {"command": {"type": "string"}}}).into();
    let name = "shell".to_owned();
    vec![ToolSpec { name, description: "Runs a command.".to_owned(), parameters }]
}

fn any_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", " ", "hello", "é😀\u{0}\"\\", "a\n\nb"]).prop_map(str::to_owned)
}

fn content() -> impl Strategy<Value = Vec<Content>> {
    let image = Image { media_type: "image/png".to_owned(), base64: "iVBORw0KGgo=".to_owned() };
    let one = prop_oneof![
        4 => any_text().prop_map(Content::Text),
        1 => Just(Content::Image(image)),
    ];
    prop::collection::vec(one, 0..4)
}

/// Reasoning of this model or of another, in every form that a provider gives.
fn reasoning() -> impl Strategy<Value = AssistantPart> {
    (any_text(), 0..4_u8, any::<bool>()).prop_map(|(text, form, own)| {
        let (origin, model) = if own { ("p/m", "m") } else { ("q/n", "n") };
        let mut reasoning = Reasoning { origin: origin.to_owned(), text, ..Reasoning::default() };
        match form {
            0 => reasoning.signature = Some(signature(model, &reasoning.text)),
            1 => {
                reasoning.sealed = Some(sealed(model, &reasoning.text));
                reasoning.text.clear();
            }
            2 => {
                reasoning.id = Some(format!("rs_{}", fastrand::u64(..)));
                reasoning.sealed = Some(sealed(model, &reasoning.text));
            }
            _ => {}
        }
        AssistantPart::Reasoning(reasoning)
    })
}

/// One round: the user may speak, the model speaks, its calls have results or not.
fn round() -> impl Strategy<Value = Vec<Message>> {
    let call = (
        prop::sample::select(vec!["shell", "made.up name", ""]),
        prop::sample::select(vec![r#"{"command":"ls"}"#, "", "[1]", "not json", r#"{"a":"#, "{}"]),
        any::<bool>(),
        any::<bool>(),
        content(),
    );
    (
        prop::collection::vec(content(), 0..3),
        prop::collection::vec(reasoning(), 0..3),
        any_text(),
        prop::collection::vec(call, 0..4),
        any_text(),
        any::<bool>(),
    )
        .prop_map(|(asked, thoughts, before, calls, after, answered)| {
            let mut messages: Vec<Message> = asked.into_iter().map(Message::User).collect();
            let mut parts = thoughts;
            parts.push(AssistantPart::Text(before));
            let mut results = Vec::new();
            for (name, arguments, plain, failed, content) in calls {
                let number = fastrand::u64(..);
                let id = if plain { format!("call_{number}") } else { format!("odd id {number}") };
                let name = name.to_owned();
                results.push(CallResult { call: id.clone(), name: name.clone(), content, failed });
                let arguments = arguments.to_owned();
                parts.push(AssistantPart::Call(Call { id, name, arguments, extra: None }));
            }
            parts.push(AssistantPart::Text(after));
            messages.push(Message::Assistant(parts));
            if answered && !results.is_empty() {
                messages.push(Message::Results(results));
            }
            messages
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_prefix_of_every_conversation_is_a_valid_request(
        rounds in prop::collection::vec(round(), 0..5),
        system in any_text(),
        offered in any::<bool>(),
        effort in prop::sample::select(vec![None, Some(Effort::Low), Some(Effort::High)]),
        max_output in prop::sample::select(vec![None, Some(1), Some(2000), Some(64_000)]),
    ) {
        let messages = rounds.concat();
        let tools = if offered { tools() } else { vec![] };
        for length in 0..=messages.len() {
            let request = Request {
                system: &system,
                tools: &tools,
                messages: &messages[..length],
                max_output,
                temperature: Some(0.5),
                effort,
                cache_key: Some("session"),
                memo: None,
            };
            for api in Api::ALL {
                let candidate = candidate("p", api, "http://127.0.0.1:1/v1", "m");
                let body = body(&candidate, &request);
                let judgement = check(shape(api), &body);
                prop_assert!(judgement.is_ok(), "{api}: {judgement:?}\n{body:#}");
            }
            let mistral = candidate("mistral", Api::OpenAiChat, "http://127.0.0.1:1/v1", "m");
            let body = body(&mistral, &request);
            for pair in body["messages"].as_array().unwrap().windows(2) {
                let (role, next) = (&pair[0]["role"], &pair[1]["role"]);
                prop_assert!(!(role == "tool" && next == "user"), "{body:#}");
                if let Some(id) = pair[1]["tool_call_id"].as_str() {
                    prop_assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_kept_from_before_changes_no_byte(rounds in prop::collection::vec(round(), 0..6)) {
        let messages = rounds.concat();
        let memos: Vec<Memo> = (0..3).map(|_| Memo::default()).collect();
        let names = ["p", "mistral", "gemini"];
        for length in 0..=messages.len() {
            for (name, memo) in names.iter().zip(&memos) {
                let candidate = candidate(name, Api::OpenAiChat, "http://127.0.0.1:1/v1", "m");
                let fresh = Request { messages: &messages[..length], ..Request::default() };
                let kept = Request { memo: Some(memo), ..fresh };
                let quirks = Quirks::default();
                let (fresh, kept) =
                    (encode(&candidate, &fresh, &quirks), encode(&candidate, &kept, &quirks));
                prop_assert_eq!(
                    String::from_utf8(kept.unwrap()).unwrap(),
                    String::from_utf8(fresh.unwrap()).unwrap()
                );
            }
        }
        // Another conversation, or an earlier moment of this one, is not mistaken for it.
        for length in [messages.len() / 2, 0] {
            let candidate = candidate("p", Api::OpenAiChat, "http://127.0.0.1:1/v1", "m");
            let fresh = Request { messages: &messages[..length], ..Request::default() };
            let kept = Request { memo: Some(&memos[0]), ..fresh };
            prop_assert_eq!(body(&candidate, &kept), body(&candidate, &fresh));
        }
    }
}

/// A conversation with everything in it.
fn conversation(origin: &str, model: &str) -> Vec<Message> {
    let picture = Image { media_type: "image/png".to_owned(), base64: "AAAA".to_owned() };
    let text = "thought".to_owned();
    let signature = Some(signature(model, &text));
    let reasoning =
        Reasoning { origin: origin.to_owned(), text, signature, ..Reasoning::default() };
    let call = |id: &str| {
        let name = "shell".to_owned();
        let arguments = r#"{"command": "ls"}"#.to_owned();
        let extra = Some(json!({"origin": origin, "extra_content": {"google": 1}}));
        AssistantPart::Call(Call { id: id.to_owned(), name, arguments, extra })
    };
    let result = |id: &str, content| CallResult {
        call: id.to_owned(),
        name: "shell".to_owned(),
        content,
        failed: id == "b",
    };
    vec![
        Message::User(vec![Content::Text("hello".to_owned())]),
        Message::Assistant(vec![AssistantPart::Reasoning(reasoning), call("a"), call("b")]),
        Message::Results(vec![
            result("a", vec![Content::Text("out".to_owned()), Content::Image(picture)]),
            result("b", vec![Content::Text("no".to_owned())]),
        ]),
        Message::User(vec![Content::Text("go on".to_owned())]),
    ]
}

#[test]
fn chat_puts_pictures_of_results_into_the_users_message() {
    let candidate = candidate("local", Api::OpenAiChat, "http://127.0.0.1:1/v1", "m");
    let messages = conversation("local/m", "m");
    let tools = tools();
    let system = "be brief";
    let request = Request {
        system,
        tools: &tools,
        messages: &messages,
        max_output: Some(5),
        cache_key: Some("k"),
        ..Request::default()
    };
    let call = |id: &str| {
        json!({"id": id, "type": "function", "extra_content": {"google": 1},
               "function": {"name": "shell", "arguments": r#"{"command": "ls"}"#}})
    };
    assert_eq!(
        body(&candidate, &request),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": null, "reasoning_content": "thought",
                 "tool_calls": [call("a"), call("b")]},
                {"role": "tool", "tool_call_id": "a", "content": "out"},
                {"role": "tool", "tool_call_id": "b", "content": "no"},
                {"role": "user", "content": [
                    {"type": "text", "text": "Pictures from the result of a call:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "text", "text": "go on"},
                ]},
            ],
            "tools": [{"type": "function", "function": tools[0]}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 5,
        })
    );
}

#[test]
fn anthropic_marks_at_most_four_places_and_puts_results_first() {
    let candidate = candidate("anthropic", Api::Anthropic, "http://127.0.0.1:1/v1", "m");
    let messages = conversation("anthropic/m", "m");
    let tools = tools();
    let request =
        Request { system: "be brief", tools: &tools, messages: &messages, ..Request::default() };
    let mark = json!({"type": "ephemeral"});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "shell", "input": {"command": "ls"}});
    assert_eq!(
        body(&candidate, &request),
        json!({
            "model": "m",
            "max_tokens": 8192,
            "system": [{"type": "text", "text": "be brief", "cache_control": mark}],
            "tools": [{"name": "shell", "description": "Runs a command.",
                       "input_schema": tools[0].parameters, "cache_control": mark}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "hello", "cache_control": mark}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "thought", "signature": signature("m", "thought")},
                    used("a"), used("b")]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": [
                        {"type": "text", "text": "out"},
                        {"type": "image", "source":
                            {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
                    {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": true},
                    {"type": "text", "text": "go on", "cache_control": mark}]},
            ],
            "stream": true,
        })
    );
}

#[test]
fn responses_and_ollama_write_their_own_shapes() {
    let messages = conversation("elsewhere/m", "m");
    let request = Request { system: "be brief", messages: &messages, ..Request::default() };
    let openai = candidate("openai", Api::OpenAiResponses, "https://api.openai.com/v1", "m");
    let call = |id: &str| {
        json!({"type": "function_call", "call_id": id, "name": "shell",
               "arguments": r#"{"command": "ls"}"#})
    };
    assert_eq!(
        body(&openai, &Request { cache_key: Some("k"), ..request }),
        json!({
            "model": "m",
            "instructions": "be brief",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                call("a"), call("b"),
                {"type": "function_call_output", "call_id": "a", "output": [
                    {"type": "input_text", "text": "out"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
                {"type": "function_call_output", "call_id": "b", "output": "no"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
            ],
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "k",
        })
    );
    let ollama = candidate("ollama", Api::Ollama, "http://127.0.0.1:1", "m");
    let call = json!({"function": {"name": "shell", "arguments": {"command": "ls"}}});
    assert_eq!(
        body(&ollama, &request),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "", "tool_calls": [call, call]},
                {"role": "tool", "content": "out", "tool_name": "shell"},
                {"role": "tool", "content": "no", "tool_name": "shell"},
                {"role": "user", "content": "Pictures from the results of calls:", "images": ["AAAA"]},
                {"role": "user", "content": "go on"},
            ],
            "stream": true,
            "options": {"num_ctx": 32768},
            "truncate": false,
        })
    );
}
