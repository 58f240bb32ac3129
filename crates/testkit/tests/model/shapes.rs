//! What each shape says, and how it reads what was said to it.

use mainstay_testkit::model::{ModelServer, Reply, Shape, check, rounds, sealed, signature};
use serde_json::{Value, json};

use crate::client::{Client, Ending, ask};
use crate::hearing::{Heard, hear};
use crate::requests::{first, later, messages};

/// A reply with one of everything.
fn everything() -> Reply {
    Reply::text("Grüße, “Welt” – I look now.")
        .reasoning("The user wants both.")
        .call("shell", json!({"command": "printf 'ä\\n' \"x\""}))
        .call("read_file", json!({"path": "a"}))
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
        // By this mark it is known that the thoughts must come back.
        assert!(heard.ids.iter().all(|id| id.contains("_thought_")), "{:?}", heard.ids);
        heard.ids.clear();
        let thought = "The user wants both.";
        let expected = Heard {
            model: "m".to_owned(),
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
