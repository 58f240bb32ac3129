//! `web_search`.

use serde_json::json;

use super::*;
use crate::Fact;
use crate::web::{Engine, KeySource, WebSearch};

fn search(engine: Engine) -> WebSearch {
    WebSearch::new(Web::new::<&str>(&[]).unwrap(), engine)
}

fn key(value: &'static str) -> KeySource {
    Arc::new(move || Box::pin(async move { Ok(value.to_owned()) }))
}

/// The three shapes of services, each with two results.
fn server() -> WebServer {
    WebServer::start(|visit: &Visit| {
        let results = |snippet: &str| {
            json!([
                { "title": "First <b>title</b>", "url": "https://one.example/a?b=1", snippet: "A &amp; <strong>B</strong>\n C" },
                { "title": "Second", "url": "https://two.example/", snippet: "" },
                { "title": "Bad", "url": "javascript:alert(1)", snippet: "x" },
            ])
        };
        match visit.path.split('?').next().unwrap_or_default() {
            "/sx/search" => Page::json(&json!({ "query": "q", "results": results("content") })),
            "/res/v1/web/search" if visit.header("x-subscription-token") == Some("sesame") => {
                Page::json(
                    &json!({ "type": "search", "web": { "results": results("description") } }),
                )
            }
            "/search" if visit.header("authorization") == Some("Bearer sesame") => {
                Page::json(&json!({ "results": results("content") }))
            }
            _ => Page::json(&json!({ "error": "no" })).status(401),
        }
    })
}

#[tokio::test]
async fn each_service_is_asked_in_its_shape_and_read_alike() {
    let server = server();
    let base: url::Url = server.url("/").parse().unwrap();
    let engines = [
        Engine::Searxng(base.join("sx/").unwrap()),
        Engine::Brave(base.clone(), key("sesame")),
        Engine::Tavily(base.clone(), key("sesame")),
    ];
    let expected = "1. First title\n   https://one.example/a?b=1\n   A & B C\n2. Second\n   https://two.example/\n";
    for engine in engines {
        let name = format!("{engine:?}");
        let tool = search(engine);
        let arguments = json!({ "query": " rust & \"sqlite\" ", "count": 5 });
        assert_eq!(action(&tool, &arguments), Action::Network(vec![server.place()]));
        let outcome = call(&tool, &arguments).await;
        assert_eq!(data(&outcome), expected, "{name}: {outcome:?}");
        assert_eq!(outcome.facts, [Fact::Outside { origin: server.place() }], "{name}");
        let one = call(&tool, &json!({ "query": "x", "count": 1 })).await;
        assert_eq!(data(&one).lines().count(), 3, "{name}");
        assert!(call(&tool, &json!({ "query": "  " })).await.failed, "{name}");
    }
    let visits = server.visits();
    assert_eq!(visits[0].path, "/sx/search?q=rust+%26+%22sqlite%22&format=json");
    assert_eq!(visits[2].path, "/res/v1/web/search?q=rust+%26+%22sqlite%22&count=5");
    let body: Value = serde_json::from_slice(&visits[4].body).unwrap();
    assert_eq!(body, json!({ "query": "rust & \"sqlite\"", "max_results": 5 }));
    assert_eq!(visits[4].method, "POST");
}

#[tokio::test]
async fn what_goes_wrong_is_told_without_the_key() {
    let server = server();
    let base: url::Url = server.url("/").parse().unwrap();
    let missing: KeySource = Arc::new(|| {
        Box::pin(async { Err("the variable X is not set; set it to your key".to_owned()) })
    });
    let answers =
        |body: &'static str| WebServer::start(move |_: &Visit| Page::new("application/json", body));
    let (no_json, no_list, nothing) =
        (answers("<html>"), answers("{\"a\": 1}"), answers("{\"results\": []}"));
    let at = |server: &WebServer| server.url("/").parse::<url::Url>().unwrap();
    let cases = [
        (Engine::Brave(base.clone(), key("open-this-door")), "Brave refused the key (401)"),
        (Engine::Tavily(base.clone(), missing), "the variable X is not set"),
        (Engine::Tavily(base.clone(), key("bad\nkey")), "cannot be sent"),
        (Engine::Searxng(at(&no_json)), "is not valid JSON"),
        (Engine::Searxng(at(&no_list)), "is not a list of results"),
        (Engine::Searxng("http://127.0.0.1:1/".parse().unwrap()), "could not reach SearXNG"),
    ];
    for (engine, words) in cases {
        let outcome = call(&search(engine), &json!({ "query": "x" })).await;
        assert!(outcome.failed && said(&outcome).contains(words), "{words}: {outcome:?}");
        assert!(!format!("{outcome:?}").contains("open-this-door"));
    }
    let outcome = call(&search(Engine::Searxng(at(&nothing))), &json!({ "query": "x" })).await;
    assert!(!outcome.failed && said(&outcome).contains("No results"), "{outcome:?}");
}
