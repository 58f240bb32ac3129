//! Which models a provider offers.

use std::sync::Arc;
use std::time::Duration;

use mainstay_llm::{Api, Client, FixedKey, Listed, Provider, Secret};
use mainstay_testkit::model::{Catalogue, ModelServer, Offered, Reply};

fn provider(server: &ModelServer, api: Api, path: &str) -> Provider {
    let base_url = url::Url::parse(&format!("{}{path}", server.url())).unwrap();
    Provider::without_key("x", api, base_url)
}

async fn listed(catalogue: Catalogue, api: Api, path: &str) -> Vec<Listed> {
    let server = ModelServer::always(Reply::text("never asked"));
    server.offer(catalogue);
    let listed = Client::new().models(&provider(&server, api, path), Duration::from_secs(5)).await;
    assert_eq!(server.requests(), 0, "no model is asked for words");
    listed.unwrap()
}

/// Name, window, the window it is served with, tools, in memory.
type Row<'a> = (&'a str, Option<u64>, Option<u64>, Option<bool>, Option<bool>);

fn rows(models: &[Listed]) -> Vec<Row<'_>> {
    models
        .iter()
        .map(|one| (one.name.as_str(), one.window, one.served, one.tools, one.loaded))
        .collect()
}

#[tokio::test]
async fn ollama_says_what_its_models_can_read_and_do() {
    let models = listed(
        Catalogue::ollama([
            Offered::new("gemma", 8_192).without_tools().loaded(),
            Offered::new("qwen3:8b", 40_960),
            Offered::new("small", 131_072).served_with(4_096),
            Offered::new("nomic", 2_048).embedding(),
        ]),
        Api::Ollama,
        "",
    )
    .await;
    assert_eq!(
        rows(&models),
        [
            ("gemma", Some(8_192), None, Some(false), Some(true)),
            ("qwen3:8b", Some(40_960), None, Some(true), Some(false)),
            ("small", Some(131_072), Some(4_096), Some(true), Some(false)),
        ]
    );
}

#[tokio::test]
async fn lm_studio_says_what_is_loaded_and_with_which_window() {
    let models = listed(
        Catalogue::lm_studio([
            Offered::new("a", 131_072).served_with(4_096).loaded(),
            Offered::new("b", 32_768).without_tools(),
            Offered::new("vectors", 512).embedding(),
        ]),
        Api::OpenAiChat,
        "/v1",
    )
    .await;
    assert_eq!(
        rows(&models),
        [
            ("a", Some(4_096), None, Some(true), Some(true)),
            ("b", Some(32_768), None, Some(false), Some(false)),
        ]
    );
}

#[tokio::test]
async fn llama_cpp_says_the_window_it_serves_and_not_the_one_it_was_trained_with() {
    let catalogue = Catalogue::llama_cpp(Offered::new("model.gguf", 8_192));
    let models = listed(catalogue, Api::OpenAiChat, "/v1").await;
    assert_eq!(rows(&models), [("model.gguf", Some(8_192), None, None, Some(true))]);
}

#[tokio::test]
async fn anthropic_and_plain_servers_say_names() {
    let names = || [Offered::new("b", 1), Offered::new("a", 1), Offered::new("b", 1)];
    for (catalogue, api) in [
        (Catalogue::anthropic(names()), Api::Anthropic),
        (Catalogue::plain(names()), Api::OpenAiChat),
        (Catalogue::plain(names()), Api::OpenAiResponses),
    ] {
        let models = listed(catalogue, api, "/v1").await;
        assert_eq!(rows(&models), [("b", None, None, None, None), ("a", None, None, None, None)]);
    }
}

#[tokio::test]
async fn one_that_does_not_answer_is_told_in_time_and_without_its_key() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/v1", socket.local_addr().unwrap());
    let server = ModelServer::always(Reply::text("x"));
    server.offer(Catalogue::ollama([]));
    let closed = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", socket.local_addr().unwrap())
    };
    let secret = Secret::new("sk-not-to-be-said");
    for (base, said) in [
        (silent, "no answer within 0.2 s"),
        (closed, "no connection (Connection refused"),
        (format!("{}/v1", server.url()), "no such model or address"),
    ] {
        let provider = Provider {
            name: "x".to_owned(),
            api: Api::OpenAiChat,
            base_url: url::Url::parse(&base).unwrap(),
            key: Arc::new(FixedKey::new(secret.clone(), "a test")),
            headers: vec![],
        };
        let began = std::time::Instant::now();
        let error = Client::new().models(&provider, Duration::from_millis(200)).await.unwrap_err();
        assert!(error.contains(said) && !error.contains("not-to-be-said"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
