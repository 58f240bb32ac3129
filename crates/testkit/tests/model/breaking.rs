//! Each way to break an answer, as it looks on the wire.

use std::time::{Duration, Instant};

use mainstay_testkit::model::{Gate, ModelServer, Reply, Shape};
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::client::{Answer, Client, DEADLINE, Ending, ask};
use crate::requests::first;

fn reply() -> Reply {
    Reply::text("A few words – more than one.").call("shell", json!({"command": "ls"}))
}

/// The whole answer, event by event, without what differs from one answer to the next.
fn answer_to(reply: Reply, shape: Shape) -> Answer {
    let server = ModelServer::always(reply);
    ask(&server, shape, &first(shape))
}

/// The events with the ids, which differ by server, blotted out.
fn blotted(chunks: &[Vec<u8>]) -> Vec<usize> {
    // Ids have a fixed size, so the sizes tell enough.
    chunks.iter().map(Vec::len).collect()
}

#[test]
fn every_event_leaves_by_itself_and_is_counted() {
    for shape in Shape::ALL {
        let answer = answer_to(reply(), shape);
        assert_eq!(answer.chunks.len(), reply().events(shape), "{shape}");
        assert!(answer.chunks.len() > 4, "{shape} has too few events to cut between");
        for event in &answer.chunks {
            assert!(event.ends_with(if shape == Shape::Ollama { b"}\n" } else { b"\n\n" }));
        }
    }
}

#[test]
fn an_answer_can_be_cut_after_each_event() {
    for shape in Shape::ALL {
        let whole = blotted(&answer_to(reply(), shape).chunks);
        for events in 0..=whole.len() {
            let answer = answer_to(reply().cut_after_events(events), shape);
            assert_eq!((answer.status, answer.ending), (200, Ending::Closed));
            assert_eq!(blotted(&answer.chunks), whole[..events]);
        }
    }
}

#[test]
fn an_answer_can_be_cut_inside_each_event() {
    for shape in Shape::ALL {
        let whole = blotted(&answer_to(reply(), shape).chunks);
        for events in 0..whole.len() {
            let answer = answer_to(reply().cut_inside_event(events), shape);
            assert_eq!((answer.status, answer.ending), (200, Ending::Closed));
            assert_eq!(blotted(&answer.chunks[..events]), whole[..events]);
            assert_eq!(answer.chunks[events].len(), whole[events] / 2);
            let half = String::from_utf8_lossy(&answer.chunks[events]).into_owned();
            let data = half.split_once("data: ").map_or(half.as_str(), |(_, data)| data);
            assert!(serde_json::from_str::<Value>(data).is_err());
        }
    }
}

#[test]
fn a_connection_can_close_or_reset_before_the_first_byte() {
    let closed = answer_to(reply().cut_before_first_byte(), Shape::Chat);
    assert_eq!((closed.status, closed.ending), (0, Ending::Closed));
    let reset = answer_to(reply().cut_before_first_byte().by_reset(), Shape::Chat);
    assert_eq!((reset.status, reset.ending), (0, Ending::Reset));
}

#[test]
fn a_cut_can_be_a_reset() {
    // A reset may overtake what was sent before it, so only its own sign is certain.
    let answer = answer_to(reply().cut_after_events(2).by_reset(), Shape::Anthropic);
    assert_eq!(answer.ending, Ending::Reset);
}

#[test]
fn a_stall_lasts_until_the_client_goes() {
    for (stalling, events) in [
        (reply().stall_before_first_byte(), None),
        (reply().stall_after_events(0), Some(0)),
        (reply().stall_after_events(2), Some(2)),
    ] {
        let server = ModelServer::always(stalling);
        let mut client = Client::new(&server).patience(Duration::from_millis(150));
        let answer = client.ask(Shape::Anthropic, &first(Shape::Anthropic));
        assert_eq!(answer.ending, Ending::Silent);
        assert_eq!(answer.status, if events.is_some() { 200 } else { 0 });
        assert_eq!(answer.chunks.len(), events.unwrap_or(0));
        assert_eq!(server.open_connections(), 1);
        drop(client);
        server.wait_for_no_connections(DEADLINE);
    }
}

#[test]
fn a_stalled_answer_ends_with_the_server() {
    let server = ModelServer::always(reply().stall_after_events(1));
    let mut client = Client::new(&server);
    client.send(Shape::Chat, &first(Shape::Chat).to_string());
    server.wait_for_requests(1, DEADLINE);
    drop(server);
    assert_eq!(client.read().ending, Ending::Closed);
}

#[test]
fn silence_before_the_first_byte_lasts_as_long_as_told() {
    let time = Duration::from_millis(120);
    let server = ModelServer::always(reply().after(time));
    let start = Instant::now();
    let answer = ask(&server, Shape::Ollama, &first(Shape::Ollama));
    assert!(start.elapsed() >= time);
    assert_eq!(answer.ending, Ending::Whole);

    // And no longer than the client waits.
    let server = ModelServer::always(reply().after(Duration::from_secs(600)));
    let mut client = Client::new(&server);
    client.send(Shape::Chat, &first(Shape::Chat).to_string());
    server.wait_for_requests(1, DEADLINE);
    drop(client);
    server.wait_for_no_connections(DEADLINE);
}

#[test]
fn a_held_answer_waits_for_its_gate_or_for_the_client_to_go() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ModelServer::answering(move |_| reply().held_by(&held));
    let mut gone = Client::new(&server);
    gone.send(Shape::Chat, &first(Shape::Chat).to_string());
    let mut patient = Client::new(&server).patience(Duration::from_millis(100));
    let early = patient.ask(Shape::Chat, &first(Shape::Chat));
    assert_eq!((early.status, early.ending), (0, Ending::Silent));
    let mut patient = patient.patience(DEADLINE);
    server.wait_for_requests(2, DEADLINE);
    drop(gone);
    wait_for("one connection", DEADLINE, || server.open_connections() == 1);
    gate.open();
    let answer = patient.read();
    assert_eq!((answer.status, answer.ending), (200, Ending::Whole));
}

#[test]
fn pauses_come_between_the_events() {
    let time = Duration::from_millis(20);
    let server = ModelServer::always(reply().pausing(time));
    let start = Instant::now();
    let answer = ask(&server, Shape::Chat, &first(Shape::Chat));
    assert!(start.elapsed() >= time * (answer.chunks.len() as u32 - 1));
}

#[test]
fn an_answer_can_lack_its_end_marker_and_be_whole_for_http() {
    let markers: [(Shape, &[u8]); 4] = [
        (Shape::Chat, b"[DONE]"),
        (Shape::Responses, b"response.completed"),
        (Shape::Anthropic, b"message_stop"),
        (Shape::Ollama, b"\"done\":true"),
    ];
    for (shape, marker) in markers {
        let marked = |answer: &Answer| {
            answer.chunks.concat().windows(marker.len()).any(|window| window == marker)
        };
        assert!(marked(&answer_to(reply(), shape)));
        let answer = answer_to(reply().without_end_marker(), shape);
        assert_eq!(answer.ending, Ending::Whole);
        assert_eq!(answer.chunks.len(), reply().events(shape) - 1);
        assert!(!marked(&answer), "{shape}");

        let answer = answer_to(reply().end_after_events(1), shape);
        assert_eq!((answer.ending, answer.chunks.len()), (Ending::Whole, 1));
    }
}

#[test]
fn an_error_can_come_inside_the_stream() {
    for shape in Shape::ALL {
        let reply = reply().error_event_after(2, "overloaded_error", "Overloaded today");
        let answer = answer_to(reply, shape);
        assert_eq!((answer.status, answer.ending), (200, Ending::Whole));
        let event = String::from_utf8(answer.chunks[2].clone()).unwrap();
        let data = event.split_once("data: ").map_or(event.as_str(), |(_, data)| data);
        let data: Value = serde_json::from_str(data).unwrap();
        let (words, kind) = match shape {
            Shape::Ollama => (&data["error"], None),
            Shape::Responses => (&data["message"], Some(&data["code"])),
            Shape::Chat | Shape::Anthropic => {
                (&data["error"]["message"], Some(&data["error"]["type"]))
            }
        };
        assert_eq!(words, "Overloaded today", "{shape}");
        assert!(kind.is_none_or(|kind| kind == "overloaded_error"));
        let last = String::from_utf8(answer.chunks.last().unwrap().clone()).unwrap();
        assert_eq!(shape == Shape::Responses, last.contains("response.failed"));
    }
}

#[test]
fn garbage_is_no_json() {
    for shape in Shape::ALL {
        for (reply, before) in [(reply().garbage(), 0), (reply().garbage_after_events(3), 3)] {
            let answer = answer_to(reply, shape);
            assert_eq!((answer.status, answer.ending), (200, Ending::Whole));
            assert_eq!(answer.chunks.len(), before + 1);
            let event = String::from_utf8(answer.chunks[before].clone()).unwrap();
            let data = event.strip_prefix("data: ").unwrap_or(&event);
            assert!(serde_json::from_str::<Value>(data).is_err());
        }
    }
}

#[test]
fn pieces_and_comments_change_nothing_that_is_said() {
    for shape in Shape::ALL {
        let server =
            ModelServer::replies([reply(), reply().in_pieces_of(7), reply().with_comments()]);
        // The number of the answer is part of its ids and times; blot it out by length.
        let [whole, pieces, comments] = [(); 3].map(|()| ask(&server, shape, &first(shape)));
        assert_eq!(whole.text().len(), pieces.text().len());
        let (last, others) = pieces.chunks.split_last().unwrap();
        assert!(others.iter().all(|piece| piece.len() == 7) && last.len() <= 7);
        let without = comments.text().replace(": PROCESSING\n\n", "");
        assert_eq!(without.len(), whole.text().len());
        assert_eq!(shape == Shape::Ollama, without.len() == comments.text().len());
    }
}
