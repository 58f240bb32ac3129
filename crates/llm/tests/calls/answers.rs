//! Answers that arrive.

use std::time::Duration;

use mainstay_llm::{Candidate, Client, Effort, Limits, Prices, Request, Stop};
use mainstay_message::{AssistantPart, CallResult, Content, Message, ToolSpec};
use mainstay_testkit::model::{ModelServer, Reply, Shape};
use serde_json::json;

use crate::ground::{ask, call, candidate, hello, quick};

fn texts(parts: &[AssistantPart]) -> String {
    let text = |part: &AssistantPart| match part {
        AssistantPart::Text(text) => Some(text.clone()),
        AssistantPart::Reasoning(_) | AssistantPart::Call(_) => None,
    };
    parts.iter().filter_map(text).collect()
}

#[tokio::test]
async fn text_usage_and_cost_arrive_in_every_format_however_the_bytes_are_cut() {
    for shape in Shape::ALL {
        for piece in [1, 7, 100_000] {
            let reply = Reply::text("Grüße, 世界! 😀").usage(100, 40, 9).in_pieces_of(piece);
            let server = ModelServer::replies([reply.with_comments()]);
            let primary = candidate(&server, shape, "p");
            let prices =
                Some(Prices { input: 1_000_000, cached: 0, cache_written: 0, output: 2_000_000 });
            let primary = std::sync::Arc::new(Candidate { prices, ..(*primary).clone() });
            let (answer, heard) = ask(&Client::seeded(1), &[primary], &quick()).await;
            let answer = answer.unwrap();
            assert_eq!(texts(&answer.parts), "Grüße, 世界! 😀", "{shape}");
            assert_eq!(heard.text, "Grüße, 世界! 😀");
            assert_eq!(answer.stop, Stop::End);
            let usage = answer.usage.unwrap();
            assert_eq!((usage.all_input(), usage.output), (140, 9), "{shape}");
            if shape != Shape::Ollama {
                assert_eq!((usage.input, usage.cached), (100, 40), "{shape}");
                assert_eq!(answer.cost, Some(118));
            }
            let attempt = answer.attempts.last().unwrap();
            assert_eq!((attempt.fault, attempt.status), (None, Some(200)));
            assert_eq!(attempt.request_id.is_some(), shape.request_id_header().is_some());
            assert!(attempt.first_byte.unwrap() <= attempt.latency);
        }
    }
}

#[tokio::test]
async fn rounds_of_parallel_calls_and_reasoning_are_valid_when_sent_back() {
    let tools = ["read", "write"].map(|name| ToolSpec {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}).into(),
    });
    for shape in Shape::ALL {
        for ids in [true, false] {
            let mut calls = Reply::thinking("let me see")
                .sealed_reasoning("secret")
                .and_text("I look.")
                .call("read", json!({"path": "a\"é"}))
                .call("write", json!({"path": "b", "text": "x".repeat(500)}));
            if !ids {
                calls = calls.without_call_ids();
            }
            let server = ModelServer::replies([calls, Reply::text("done")]);
            let chain = [candidate(&server, shape, "p")];
            let client = Client::seeded(2);
            let mut messages = hello();
            let request = Request {
                tools: &tools,
                messages: &messages,
                max_output: Some(8000),
                effort: Some(Effort::Low),
                ..Request::default()
            };
            let (answer, heard) = call(&client, &chain, &request, &quick()).await;
            let answer = answer.unwrap();
            assert_eq!(answer.stop, Stop::Calls, "{shape}");
            assert_eq!(heard.calls, ["read", "write"]);
            let mut results = Vec::new();
            for part in &answer.parts {
                if let AssistantPart::Call(call) = part {
                    let arguments: serde_json::Value =
                        serde_json::from_str(&call.arguments).unwrap();
                    assert!(arguments["path"].is_string(), "{shape} {arguments}");
                    let content = vec![Content::Text("ok".to_owned())];
                    let (call, name) = (call.id.clone(), call.name.clone());
                    results.push(CallResult { call, name, content, failed: false });
                }
            }
            assert_eq!(results.len(), 2, "{shape}");
            assert_ne!(results[0].call, results[1].call);
            messages.push(Message::Assistant(answer.parts));
            messages.push(Message::Results(results));
            let request = Request {
                tools: &tools,
                messages: &messages,
                max_output: Some(8000),
                effort: Some(Effort::Low),
                ..Request::default()
            };
            let (answer, _) = call(&client, &chain, &request, &quick()).await;
            assert_eq!(texts(&answer.unwrap().parts), "done", "{shape}");
            server.assert_no_violations();
            let asked = server.asked();
            assert_eq!(asked[1].calls().len(), 2, "{shape}");
            assert_eq!(asked[1].results().len(), 2, "{shape}");
            assert_eq!(asked[0].connection, asked[1].connection, "{shape}: a new connection");
        }
    }
}

#[tokio::test]
async fn reasoning_is_sent_back_only_to_the_model_that_wrote_it() {
    for shape in Shape::ALL {
        let server = ModelServer::always(Reply::thinking("deep thought").and_text("yes"));
        let chain = [candidate(&server, shape, "p")];
        let client = Client::seeded(3);
        let (answer, heard) = ask(&client, &chain, &quick()).await;
        assert_eq!(heard.text, "yes");
        let parts = answer.unwrap().parts;
        let own = parts.iter().any(|part| match part {
            AssistantPart::Reasoning(reasoning) => reasoning.origin == "p/m",
            AssistantPart::Text(_) | AssistantPart::Call(_) => false,
        });
        assert!(own, "{shape}: {parts:?}");
        let mut messages = hello();
        messages.push(Message::Assistant(parts));
        messages.extend(hello());
        let request = Request { messages: &messages, ..Request::default() };
        let (answer, _) =
            call(&client, &[candidate(&server, shape, "q")], &request, &quick()).await;
        answer.unwrap();
        let sent = server.asked()[1].body.to_string();
        assert!(!sent.contains("deep thought") && !sent.contains("sealed"), "{shape}: {sent}");
    }
}

#[tokio::test]
async fn length_and_refusal_are_told_apart_from_an_end() {
    for shape in Shape::ALL {
        let server = ModelServer::replies([
            Reply::text("cut").stopped_by_length(),
            Reply::text("no").refused(),
        ]);
        let chain = [candidate(&server, shape, "p")];
        let client = Client::seeded(4);
        assert_eq!(ask(&client, &chain, &quick()).await.0.unwrap().stop, Stop::Length, "{shape}");
        let refused = ask(&client, &chain, &quick()).await.0.unwrap().stop;
        if shape != Shape::Ollama {
            assert_eq!(refused, Stop::Refused, "{shape}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_not_streamed_is_accepted_when_it_is_whole() {
    let chat = json!({"object": "chat.completion", "usage": {"prompt_tokens": 3, "completion_tokens": 1},
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}]});
    let responses = json!({"object": "response", "status": "completed", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}]});
    let anthropic = json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 3, "output_tokens": 1}});
    let ollama = json!({"message": {"role": "assistant", "content": "hi"}, "done": true});
    let bodies = [chat, responses, anthropic, ollama];
    for (shape, body) in Shape::ALL.into_iter().zip(bodies) {
        let kind = [("content-type", "application/json")];
        let server = ModelServer::replies([Reply::raw(200, &kind, body.to_string())]);
        let (answer, _) =
            ask(&Client::seeded(5), &[candidate(&server, shape, "p")], &quick()).await;
        assert_eq!(texts(&answer.unwrap().parts), "hi", "{shape}");
    }
}

#[tokio::test]
async fn a_chat_that_names_its_reason_and_closes_is_whole_without_done() {
    let chunk = |delta: &str, reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let kind = [("content-type", "text/event-stream")];
    // Two whole calls without ids and indexes, then a reason that does not mention them.
    let call = |name: &str| {
        format!(r#"{{"tool_calls":[{{"function":{{"name":"{name}","arguments":{{}}}}}}]}}"#)
    };
    let body =
        chunk(&call("one"), "null") + &chunk(&call("two"), "null") + &chunk("{}", "\"stop\"");
    let server = ModelServer::replies([Reply::raw(200, &kind, body)]);
    let (answer, heard) =
        ask(&Client::seeded(6), &[candidate(&server, Shape::Chat, "p")], &quick()).await;
    let answer = answer.unwrap();
    assert_eq!(answer.stop, Stop::Calls);
    assert_eq!(heard.calls, ["one", "two"]);
    assert_eq!(answer.parts.len(), 2);
}

// On threads of its own, so that waiting here does not keep the connection's task from running.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_lets_go_of_its_connection() {
    for stall in
        [Reply::text("x").stall_before_first_byte(), Reply::text("x y z").stall_after_events(2)]
    {
        let server = ModelServer::always(stall);
        let chain = [candidate(&server, Shape::Chat, "p")];
        let client = Client::seeded(7);
        let limits = Limits::default();
        tokio::select! {
            outcome = ask(&client, &chain, &limits) => panic!("{outcome:?}"),
            () = async {
                while server.requests() == 0 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        server.wait_for_no_connections(Duration::from_secs(5));
    }
}

#[test]
fn a_call_can_be_made_from_any_thread() {
    fn assert_send<T: Send>(_: T) {}
    let (client, limits) = (Client::new(), Limits::default());
    let request = Request::default();
    let mut listener = |_: mainstay_llm::Event<'_>| {};
    assert_send(client.call(&[], &request, &limits, &mut listener));
}

#[tokio::test]
async fn what_gemini_signs_goes_back_to_it_and_to_nobody_else() {
    let calls = Reply::call_of("read", json!({"path": "a"})).with_signed_calls();
    let server = ModelServer::replies([calls, Reply::text("own")]);
    let client = Client::seeded(8);
    let gemini = [candidate(&server, Shape::Chat, "gemini")];
    let (answer, _) = ask(&client, &gemini, &quick()).await;
    let parts = answer.unwrap().parts;
    let [AssistantPart::Call(asked)] = &parts[..] else { panic!("{parts:?}") };
    let content = vec![Content::Text("ok".to_owned())];
    let (id, name) = (asked.id.clone(), asked.name.clone());
    let result = CallResult { call: id, name, content, failed: false };
    let mut messages = hello();
    messages.extend([Message::Assistant(parts), Message::Results(vec![result])]);
    let request = Request { messages: &messages, ..Request::default() };
    call(&client, &gemini, &request, &quick()).await.0.unwrap();
    server.assert_no_violations();
    // The scripted server takes everybody for Gemini and misses the signature; OpenAI would refuse it.
    let other = [candidate(&server, Shape::Chat, "other")];
    call(&client, &other, &request, &quick()).await.0.unwrap_err();
    let signed =
        |number: usize| server.asked()[number].body.to_string().contains("thought_signature");
    assert!(signed(1) && !signed(2));
    assert_eq!(server.violations().len(), 1);
}
