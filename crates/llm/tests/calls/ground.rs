//! What the tests share: candidates on scripted servers, small limits, a listener that remembers.

use std::sync::Arc;
use std::time::Duration;

use mainstay_llm::{
    Answer, Api, Candidate, Client, Event, Failure, Key, Limits, NoKey, Provider, Request,
};
use mainstay_message::{Content, Message};
use mainstay_testkit::model::{ModelServer, Shape};

pub(crate) fn api(shape: Shape) -> Api {
    shape.name().parse().unwrap()
}

pub(crate) fn candidate_at(base_url: &str, api: Api, name: &str, key: Arc<dyn Key>) -> Candidate {
    let base_url = url::Url::parse(base_url).unwrap();
    let provider = Provider { name: name.to_owned(), api, base_url, key, headers: vec![] };
    Candidate {
        provider: Arc::new(provider),
        model: "m".to_owned(),
        prices: None,
        window: None,
        max_output: None,
    }
}

pub(crate) fn candidate(server: &ModelServer, shape: Shape, name: &str) -> Arc<Candidate> {
    Arc::new(candidate_at(&server.base_url(shape), api(shape), name, Arc::new(NoKey)))
}

/// Limits that make a failing call quick, and a stall one of 300 ms.
pub(crate) fn quick() -> Limits {
    Limits {
        connect: Duration::from_secs(2),
        first_byte: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        progress: Duration::from_millis(900),
        chain: Duration::from_secs(20),
        backoff_base: Duration::from_millis(2),
        backoff_cap: Duration::from_millis(5),
        ..Limits::default()
    }
}

pub(crate) fn hello() -> Vec<Message> {
    vec![Message::User(vec![Content::Text("hello".to_owned())])]
}

/// What a listener heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The text since the last attempt failed.
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<String>,
    pub(crate) failed: usize,
    pub(crate) waits: Vec<Duration>,
}

impl Heard {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Text(words) => self.text.push_str(words),
            Event::Reasoning(words) => self.reasoning.push_str(words),
            Event::Call { name } => self.calls.push(name.to_owned()),
            Event::Failed(_) => {
                self.failed += 1;
                self.text.clear();
                self.reasoning.clear();
                self.calls.clear();
            }
            Event::Waiting { wait, why } => {
                assert!(why.contains('/'), "{why}");
                self.waits.push(wait);
            }
        }
    }
}

pub(crate) async fn call(
    client: &Client,
    chain: &[Arc<Candidate>],
    request: &Request<'_>,
    limits: &Limits,
) -> (Result<Answer, Failure>, Heard) {
    let mut heard = Heard::default();
    let outcome = client.call(chain, request, limits, &mut |event| heard.hear(event)).await;
    (outcome, heard)
}

/// Says hello.
pub(crate) async fn ask(
    client: &Client,
    chain: &[Arc<Candidate>],
    limits: &Limits,
) -> (Result<Answer, Failure>, Heard) {
    let messages = hello();
    let request = Request { messages: &messages, ..Request::default() };
    call(client, chain, &request, limits).await
}
