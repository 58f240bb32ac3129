//! A turn that waits for a person, and the process that goes on with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error"
)]

use std::sync::Arc;
use std::time::Duration;

use mainstay_agent::policy::{Decision, Policy};
use mainstay_agent::{AGENT, Agent, Input, Settings, TurnEnding};
use mainstay_journal::JOURNAL;
use mainstay_llm::{Api, Candidate, Provider};
use mainstay_memory::MEMORY;
use mainstay_message::Content;
use mainstay_store::{Location, Options, Schema, Store};
use mainstay_testkit::model::{ModelServer, Reply, Shape};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::Launch;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn agent(directory: &std::path::Path, model: &ModelServer) -> Agent {
    let schema = Schema::new(&[JOURNAL, mainstay_journal::SEARCH, AGENT, MEMORY]);
    let place = Location::file(directory.join("store.db"));
    let store = Store::open(&place, Options::new(schema)).unwrap();
    let owner = store.write(|tx| tx.owner("me")).unwrap();
    // Nothing here starts it.
    let keeper = Keeper::new(Launch {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
        spool: directory.join("keepers"),
        grace: Duration::ZERO,
    });
    let provider = Provider::without_key(
        "local",
        Api::OpenAiChat,
        model.base_url(Shape::Chat).parse().unwrap(),
    );
    let candidate = Candidate::new(provider, "qwen");
    let policy = Policy { write: Decision::Ask, ..Policy::default() };
    let settings = Settings { chain: vec![Arc::new(candidate)], policy, ..Settings::default() };
    Agent::new(store, owner, keeper, settings)
}

#[tokio::test]
async fn a_parked_call_still_waits_when_the_same_process_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let model = ModelServer::replies([
        Reply::call_of("write_file", json!({ "path": "a", "content": "x" })),
        Reply::text("never mind"),
    ]);
    let agent = agent(directory.path(), &model);
    let mut work = agent.begin(directory.path(), "2026-01-02").unwrap();
    let input = |text: &str| Input { content: vec![Content::Text(text.to_owned())], key: None };
    let cancel = CancellationToken::new();
    let parked = work.turn(&input("write"), &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(parked.ending, TurnEnding::Parked { .. }), "{parked:?}");

    let again = work.resume(&mut |_| {}, &cancel).await.unwrap().unwrap();
    assert_eq!(again.ending, parked.ending);
    assert_eq!(model.requests(), 1, "the model was asked though its call has no outcome");

    let after = work.turn(&input("leave it"), &mut |_| {}, &cancel).await.unwrap();
    assert_eq!(after.answer, "never mind");
    let last = model.asked().pop().unwrap();
    assert!(last.results()[0].1.contains("not run"), "{last:?}");
    assert!(!directory.path().join("a").exists());
    model.assert_no_violations();
}
