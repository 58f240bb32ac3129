//! MCP servers, as programs and over HTTP, honest and broken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_testkit::mcp::{McpServer, Mood, program};
use mainstay_testkit::web::WebServer;
use mainstay_tools::keeper::Program as Line;
use mainstay_tools::mcp::{Answer, Client, Limits, McpError, Program, Server, Service};
use mainstay_tools::{Keeper, Web};
use serde_json::{Map, Value, json};

use crate::scene::{Scene, in_time, mark, running, until};

/// What each server may take.
const LIMIT: Duration = Duration::from_secs(2);
const LIMITS: Limits = Limits { start: LIMIT, answer: LIMIT };
const PATIENCE: Duration = Duration::from_secs(10);

/// A client of a program whose memory is a mark, by which its process is known.
fn of_program(keeper: &Keeper, mood: &str, mark: &str) -> Client {
    let words = [program().to_str().unwrap(), mood, mark].map(str::to_owned).to_vec();
    let program =
        Program { program: Line::Arguments(words), directory: "/".into(), environment: Vec::new() };
    Client::new(Server::Program(program), keeper.clone(), LIMITS)
}

/// A client of a service, and the service.
fn of_service(keeper: &Keeper, mood: Mood, mark: &str) -> (Client, Arc<McpServer>, WebServer) {
    let server = Arc::new(McpServer::new([mark], mood));
    let answering = server.clone();
    let web = WebServer::start(move |visit| answering.page(visit));
    let (url, way) = (web.url("/mcp").parse().unwrap(), Web::new::<&str>(&[]).unwrap());
    let service = Service::new(url, [("x-team", "blue")], way).unwrap();
    (Client::new(Server::Service(service), keeper.clone(), LIMITS), server, web)
}

fn query() -> Map<String, Value> {
    json!({ "query": "tabs" }).as_object().unwrap().clone()
}

fn first(answer: &Answer) -> Value {
    let found: Value = serde_json::from_str(&answer.texts[0]).unwrap();
    found["results"][0]["memory"].clone()
}

#[tokio::test]
async fn a_program_is_started_once_asked_often_and_ends_with_its_client() {
    let (scene, mark) = (Scene::new(), mark());
    let client = of_program(&scene.keeper, "well", &mark);
    assert!(running(&mark).is_empty(), "nobody asked yet");
    let tools = in_time(client.list_tools()).await.unwrap();
    assert_eq!(tools[0].name, "search_memory");
    assert_eq!(tools[0].parameters["required"], json!(["query"]));
    let before = running(&mark);
    for _ in 0..20 {
        let answer = in_time(client.call("search_memory", query())).await.unwrap();
        assert_eq!((first(&answer), answer.failed), (json!(mark), false));
    }
    assert_eq!((before.len(), running(&mark)), (1, before.clone()));
    drop(client);
    until("the server ends", PATIENCE, || running(&mark).is_empty()).await;
    scene.keeper.leave().await;
}

#[tokio::test]
async fn one_that_was_let_go_or_died_is_started_anew_and_not_too_often() {
    let (scene, mark) = (Scene::new(), mark());
    let client = of_program(&scene.keeper, "well", &mark);
    in_time(client.list_tools()).await.unwrap();
    in_time(client.reset()).await;
    until("the server ends", PATIENCE, || running(&mark).is_empty()).await;
    in_time(client.list_tools()).await.unwrap();
    assert_eq!(running(&mark).len(), 1);

    let dies = of_program(&scene.keeper, "dies", &mark);
    let gone = in_time(dies.call("search_memory", query())).await;
    assert!(matches!(gone, Err(McpError::Gone)), "{gone:?}");
    until("the end is noticed", PATIENCE, || running(&mark).len() == 1).await;
    let resting = in_time(dies.call("search_memory", query())).await;
    assert!(matches!(resting, Err(McpError::Resting { .. })), "{resting:?}");
    scene.keeper.leave().await;
}

#[tokio::test]
async fn slow_every_bad_program_costs_its_limit_at_most_and_is_told_in_words() {
    let scene = Scene::new();
    let cases = [
        ("hangs", "it did not answer within 2 s"),
        ("dumb", "it did not answer within 2 s"),
        ("stillborn", "it ended (exit code 7): there is no database"),
        ("garbage", "it did not answer within 2 s"),
        ("floods", "it went away before answering"),
    ];
    for (mood, words) in cases {
        let mark = mark();
        let client = of_program(&scene.keeper, mood, &mark);
        let begun = Instant::now();
        let failed = in_time(client.call("search_memory", query())).await.unwrap_err();
        assert!(begun.elapsed() < 2 * LIMIT, "{mood}: {:?}", begun.elapsed());
        assert_eq!(failed.to_string(), words, "{mood}");
        in_time(client.reset()).await;
        until("the server ends", PATIENCE, || running(&mark).is_empty()).await;
    }
    let refuses = of_program(&scene.keeper, "refuses", "x");
    let answer = in_time(refuses.call("search_memory", query())).await.unwrap();
    assert_eq!((answer.failed, answer.texts), (true, vec!["not you".to_owned()]));
    scene.keeper.leave().await;
}

#[tokio::test]
async fn a_service_is_asked_with_its_headers_in_one_session() {
    let scene = Scene::new();
    let (client, server, web) = of_service(&scene.keeper, Mood::Well, "by http");
    assert_eq!(in_time(client.list_tools()).await.unwrap().len(), 2);
    for _ in 0..3 {
        let answer = in_time(client.call("search_memory", query())).await.unwrap();
        assert_eq!(first(&answer), "by http");
    }
    let call = json!({ "tool": "search_memory", "arguments": { "query": "tabs" } });
    assert_eq!(server.calls(), [call.clone(), call.clone(), call]);
    let visits = web.visits();
    assert!(visits.iter().all(|visit| visit.header("x-team") == Some("blue")), "{visits:?}");
    assert!(visits[1..].iter().all(|visit| visit.header("mcp-session-id") == Some("s-1")));
}

#[tokio::test]
async fn slow_every_bad_service_costs_its_limit_at_most_and_is_told_in_words() {
    let scene = Scene::new();
    let cases = [
        (Mood::Hangs, "it did not answer within 2 s"),
        (Mood::Dumb, "it did not answer within 2 s"),
        (Mood::Stillborn, "could not reach it: HTTP 503 Service Unavailable: out of order"),
        (Mood::Garbage, "its answer is not a valid message of the protocol"),
        (Mood::Floods, "its answer is larger than 4 MiB"),
        (Mood::Refuses, "HTTP 403 Forbidden: not you"),
    ];
    for (mood, words) in cases {
        let (client, _, _web) = of_service(&scene.keeper, mood, "x");
        let begun = Instant::now();
        let failed = in_time(client.call("search_memory", query())).await.unwrap_err();
        assert!(begun.elapsed() < 2 * LIMIT, "{mood:?}: {:?}", begun.elapsed());
        assert_eq!(failed.to_string(), words, "{mood:?}");
    }
    let (client, _, web) = of_service(&scene.keeper, Mood::Well, "x");
    drop(web);
    let failed = in_time(client.list_tools()).await.unwrap_err().to_string();
    assert!(failed.starts_with("could not reach it: "), "{failed}");
}
