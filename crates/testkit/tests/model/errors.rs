//! Errors in the providers' own words, and how models stop.

use mainstay_testkit::model::{ModelServer, Reply, Shape};
use serde_json::{Value, json};

use crate::client::{Ending, ask};
use crate::requests::first;

#[test]
fn an_error_has_the_body_of_its_shape() {
    let server = ModelServer::always(Reply::status(429, "Slow down.").header("retry-after", "5"));
    for shape in Shape::ALL {
        let answer = ask(&server, shape, &first(shape));
        assert_eq!((answer.status, answer.ending), (429, Ending::Whole));
        assert_eq!(answer.header("retry-after"), Some("5"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let body = answer.json();
        let expected = match shape {
            Shape::Chat | Shape::Responses => json!({"error": {
                "message": "Slow down.", "type": "requests",
                "param": null, "code": "rate_limit_exceeded",
            }}),
            Shape::Anthropic => json!({
                "type": "error",
                "error": {"type": "rate_limit_error", "message": "Slow down."},
                "request_id": answer.header("request-id").unwrap(),
            }),
            Shape::Ollama => json!({"error": "Slow down."}),
        };
        assert_eq!(body, expected);
    }
}

#[test]
fn an_error_can_be_named_otherwise() {
    let reply = Reply::status(400, "too long")
        .kind("invalid_request_error")
        .code("context_length_exceeded")
        .param("messages");
    let server = ModelServer::always(reply);
    let error = ask(&server, Shape::Chat, &first(Shape::Chat)).json()["error"].clone();
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(error["code"], "context_length_exceeded");
    assert_eq!(error["param"], "messages");
}

#[test]
fn an_error_can_be_cut_like_an_answer() {
    let reply = Reply::status(500, "words");
    assert_eq!(reply.events(Shape::Chat), 1);
    let server = ModelServer::replies([
        reply.clone().cut_inside_event(0),
        reply.clone().cut_after_events(0),
        reply.cut_before_first_byte(),
    ]);
    let [inside, after, before] = [(); 3].map(|()| ask(&server, Shape::Chat, &first(Shape::Chat)));
    let length: usize = inside.header("content-length").unwrap().parse().unwrap();
    assert_eq!((inside.status, inside.ending), (500, Ending::Closed));
    assert_eq!(inside.text().len(), length / 2);
    assert_eq!((after.status, after.text().len()), (500, 0));
    assert_eq!((before.status, before.ending), (0, Ending::Closed));
}

#[test]
fn raw_bytes_are_sent_as_they_are() {
    let page = "<html>Sign in to the network</html>";
    let server = ModelServer::always(Reply::raw(200, &[("Content-Type", "text/html")], page));
    let answer = ask(&server, Shape::Anthropic, &first(Shape::Anthropic));
    assert_eq!((answer.status, answer.text().as_str()), (200, page));
    assert_eq!(answer.header("content-type"), Some("text/html"));
}

#[test]
fn every_exchange_has_a_name_of_its_own() {
    let server = ModelServer::always(Reply::text("ok"));
    for (shape, header) in [
        (Shape::Chat, "x-request-id"),
        (Shape::Responses, "x-request-id"),
        (Shape::Anthropic, "request-id"),
    ] {
        let [one, two] = [(); 2].map(|()| ask(&server, shape, &first(shape)));
        let names = [one.header(header).unwrap(), two.header(header).unwrap()];
        assert!(names.iter().all(|name| name.starts_with("req_")));
        assert_ne!(names[0], names[1]);
    }
    // The script may say another.
    let server = ModelServer::always(Reply::text("ok").header("X-Request-Id", "mine"));
    let answer = ask(&server, Shape::Chat, &first(Shape::Chat));
    assert_eq!(answer.header("x-request-id"), Some("mine"));
    assert_eq!(answer.headers.iter().filter(|(name, _)| name == "x-request-id").count(), 1);
}

#[test]
fn a_model_can_stop_early_or_refuse() {
    let words = |reply: Reply, shape| {
        let server = ModelServer::always(reply);
        ask(&server, shape, &first(shape)).text()
    };
    for (shape, natural, length, refused) in [
        (
            Shape::Chat,
            r#""finish_reason":"stop""#,
            r#""finish_reason":"length""#,
            r#""finish_reason":"content_filter""#,
        ),
        (
            Shape::Anthropic,
            r#""stop_reason":"end_turn""#,
            r#""stop_reason":"max_tokens""#,
            r#""stop_reason":"refusal""#,
        ),
        (
            Shape::Responses,
            "response.completed",
            r#""incomplete_details":{"reason":"max_output_tokens"}"#,
            "response.refusal.delta",
        ),
        (
            Shape::Ollama,
            r#""done_reason":"stop""#,
            r#""done_reason":"length""#,
            r#""done_reason":"stop""#,
        ),
    ] {
        assert!(words(Reply::text("so"), shape).contains(natural), "{shape}");
        assert!(words(Reply::text("so").stopped_by_length(), shape).contains(length), "{shape}");
        assert!(words(Reply::text("so").refused(), shape).contains(refused), "{shape}");
        if shape != Shape::Ollama {
            assert!(!words(Reply::text("so"), shape).contains(refused));
        }
    }
}

#[test]
fn usage_is_told_to_chat_clients_only_when_they_ask() {
    let server = ModelServer::always(Reply::text("ok").usage(1, 2, 3));
    let mut body = first(Shape::Chat);
    let with = ask(&server, Shape::Chat, &body);
    body.as_object_mut().unwrap().remove("stream_options");
    let without = ask(&server, Shape::Chat, &body);
    assert!(with.text().contains(r#""prompt_tokens":3"#));
    assert!(!without.text().contains("usage"));
    assert_eq!(without.chunks.len() + 1, with.chunks.len());
}

#[test]
fn calls_can_come_without_ids_and_with_broken_arguments() {
    let reply = Reply::empty().call_with_words("shell", "{\"command\": ").without_call_ids();
    let server = ModelServer::always(reply);
    let text = ask(&server, Shape::Chat, &first(Shape::Chat)).text();
    assert!(!text.contains(r#""id":"call_"#));
    let line = ask(&server, Shape::Ollama, &first(Shape::Ollama)).text();
    let line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let call = &line["message"]["tool_calls"][0];
    assert_eq!(call.get("id"), None);
    assert_eq!(call["function"]["arguments"], "{\"command\": ");
}

#[test]
fn only_the_first_call_is_signed_and_only_in_chat_completions() {
    let arguments = json!({"command": "ls"});
    let reply = Reply::call_of("shell", &arguments).call("shell", &arguments).with_signed_calls();
    let server = ModelServer::always(reply);
    for shape in Shape::ALL {
        let text = ask(&server, shape, &first(shape)).text();
        let signed = text.matches("thought_signature").count();
        assert_eq!(signed, usize::from(shape == Shape::Chat), "{shape}");
        assert_eq!(text.contains("call_signed_"), shape == Shape::Chat);
    }
}
