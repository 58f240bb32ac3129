//! The server's own life: connections, refusals, what it leaves behind.

use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mainstay_testkit::model::{ModelServer, Reply, Shape};
use serde_json::json;

use crate::client::{Client, DEADLINE, Ending, ask};
use crate::requests::first;

#[test]
fn a_connection_is_kept_between_requests_of_all_shapes() {
    let server = ModelServer::always(Reply::text("ok"));
    let mut client = Client::new(&server);
    for shape in Shape::ALL {
        assert_eq!(client.ask(shape, &first(shape)).status, 200);
    }
    assert_eq!(ask(&server, Shape::Chat, &first(Shape::Chat)).status, 200);
    let connections: Vec<_> = server.asked().iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [1, 1, 1, 1, 2]);
    let numbers: Vec<_> = server.asked().iter().map(|asked| asked.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

#[test]
fn a_connection_is_kept_after_an_error_too() {
    let server = ModelServer::replies([Reply::status(503, "later"), Reply::text("now")]);
    let mut client = Client::new(&server);
    assert_eq!(client.ask(Shape::Chat, &first(Shape::Chat)).status, 503);
    assert_eq!(client.ask(Shape::Chat, &first(Shape::Chat)).status, 200);
}

#[test]
fn a_body_in_chunks_is_read() {
    let server = ModelServer::always(Reply::text("ok"));
    let body = first(Shape::Chat).to_string();
    let (one, two) = body.split_at(10);
    let mut client = Client::new(&server);
    client.send_bytes(
        format!(
            "POST /v1/chat/completions?x=1 HTTP/1.1\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\n\r\na\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
            two.len()
        )
        .as_bytes(),
    );
    assert_eq!(client.read().status, 200);
    assert_eq!(*server.asked()[0].body, first(Shape::Chat));
}

#[test]
fn a_client_that_wants_the_connection_closed_gets_it_closed() {
    let server = ModelServer::always(Reply::text("ok"));
    let body = first(Shape::Ollama).to_string();
    let mut client = Client::new(&server);
    client.send_bytes(
        format!(
            "POST /api/chat HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    assert_eq!(client.read().ending, Ending::Whole);
    assert_eq!(client.read().ending, Ending::Closed);
}

#[test]
fn a_violation_is_refused_and_recorded_and_the_script_not_asked() {
    let server = ModelServer::answering(|_| panic!("the script was asked"));
    let mut body = first(Shape::Anthropic);
    body.as_object_mut().unwrap().remove("max_tokens");
    let answer = ask(&server, Shape::Anthropic, &body);
    assert_eq!(answer.status, 400);
    let error = &answer.json()["error"];
    assert_eq!(error["message"], "max_tokens: Field required");
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(server.violations(), ["request 1 (anthropic): max_tokens: Field required"]);
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_violation_that_nobody_looked_at_comes_out_when_the_server_is_dropped() {
    let drop_after = |look: fn(&ModelServer)| {
        let server = ModelServer::always(Reply::text("ok"));
        ask(&server, Shape::Chat, &json!({}));
        look(&server);
        catch_unwind(AssertUnwindSafe(|| drop(server)))
    };
    let panic = drop_after(|_| ()).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("you must provide a model"));
    assert!(drop_after(|server| drop(server.violations())).is_ok());
}

#[test]
fn a_body_that_is_no_json_and_headers_that_lack_are_violations() {
    let server = ModelServer::always(Reply::text("ok"));
    let mut client = Client::new(&server);
    client.send(Shape::Chat, "{\"model\": ");
    assert_eq!(client.read().status, 400);
    let body = first(Shape::Anthropic).to_string();
    client.send_bytes(
        format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .as_bytes(),
    );
    assert_eq!(client.read().status, 400);
    let violations = server.violations();
    assert!(violations[0].contains("not valid JSON"));
    assert!(violations[1].contains("content-type"));
    assert!(violations[2].contains("anthropic-version"));
}

#[test]
fn a_script_that_panics_is_an_error_of_the_server_and_a_violation() {
    let server = ModelServer::answering(|_| panic!("no such case"));
    let answer = ask(&server, Shape::Chat, &first(Shape::Chat));
    assert_eq!(answer.status, 500);
    assert_eq!(server.violations(), ["request 1: The script failed: no such case"]);

    let server = ModelServer::always(Reply::text("ok").cut_after_events(1000));
    assert_eq!(ask(&server, Shape::Chat, &first(Shape::Chat)).status, 500);
    assert!(server.violations()[0].contains("the script wants 1000"));
}

#[test]
fn a_list_of_replies_comes_to_an_end() {
    let server = ModelServer::replies([Reply::text("one")]);
    assert_eq!(ask(&server, Shape::Chat, &first(Shape::Chat)).status, 200);
    let answer = ask(&server, Shape::Chat, &first(Shape::Chat));
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["error"]["message"], "The script is over.");
}

#[test]
fn other_paths_have_the_answers_that_clients_probe_for() {
    let server = ModelServer::always(Reply::text("ok"));
    let mut client = Client::new(&server);
    let mut get = |method: &str, path: &str| {
        client.send_to(
            method,
            path,
            if method == "GET" { "" } else { "{\"model\": \"scripted\"}" },
        );
        client.read()
    };
    assert_eq!(get("GET", "/v1/models").json()["data"][0]["id"], "scripted");
    assert_eq!(get("GET", "/api/tags").json()["models"][0]["name"], "scripted");
    assert_eq!(get("GET", "/api/version").status, 200);
    let shown = get("POST", "/api/show").json();
    assert_eq!(shown["model_info"]["scripted.context_length"], 32768);
    assert_eq!(get("GET", "/v1/nothing").status, 404);
    assert_eq!(get("GET", "/v1/chat/completions").status, 404);
    assert_eq!(server.requests(), 0);
}

/// The threads of this process that a server on a port has.
fn threads(port: &str) -> usize {
    let name = format!("model:{port}\n");
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|of_thread| *of_thread == name).count()
}

/// The sockets of this machine that listen on a port or are connected from it.
fn sockets(port: &str) -> usize {
    let end = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_ours = |line: &&str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields[1].ends_with(&end) && matches!(fields[3], "01" | "08" | "0A")
    };
    table.lines().skip(1).filter(is_ours).count()
}

#[test]
fn a_dropped_server_leaves_no_thread_and_no_socket() {
    let server = ModelServer::answering(|asked| match asked.number {
        1 => Reply::text("ok"),
        2 => Reply::text("ok").stall_after_events(1),
        _ => Reply::text("ok").stall_before_first_byte(),
    });
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    // One idle connection, two in the middle of an answer, one that said half a request.
    let mut clients: Vec<_> = (0..4).map(|_| Client::new(&server)).collect();
    clients[0].ask(Shape::Chat, &first(Shape::Chat));
    clients[1].send(Shape::Chat, &first(Shape::Chat).to_string());
    server.wait_for_requests(2, DEADLINE);
    clients[2].send(Shape::Chat, &first(Shape::Chat).to_string());
    clients[3].send_bytes(b"POST /v1/chat");
    server.wait_for_requests(3, DEADLINE);
    mainstay_testkit::process::wait_for("four connections", DEADLINE, || {
        server.open_connections() == 4
    });
    assert_eq!((threads(&port), sockets(&port)), (5, 5));
    drop(server);
    assert_eq!((threads(&port), sockets(&port)), (0, 0));
    assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
}
