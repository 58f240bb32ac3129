//! Chains: parameters that are given up, keys that are renewed, windows, health.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use mainstay_llm::{Candidate, Client, Fault, Key, Request, Secret};
use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape};

use crate::ground::{api, ask, call, candidate, candidate_at, hello, quick};

/// A key whose source gives another one after a refusal, so many times.
struct Renewable {
    refusals: AtomicUsize,
    keys: usize,
}

impl Key for Renewable {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let number = self.refusals.load(Ordering::SeqCst).min(self.keys);
        ready(Ok(Some(Secret::new(&format!("sk-secret-{number}"))))).boxed()
    }

    fn refused(&self) {
        self.refusals.fetch_add(1, Ordering::SeqCst);
    }

    fn describe(&self) -> String {
        "a command".to_owned()
    }
}

fn bearer(asked: &ModelRequest) -> String {
    let name = if asked.shape == Shape::Anthropic { "x-api-key" } else { "authorization" };
    asked.header(name).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_refused_key_is_fetched_anew_once() {
    for shape in Shape::ALL {
        for (keys, requests) in [(1, 2), (0, 1), (9, 2)] {
            let server = ModelServer::answering(move |asked: &ModelRequest| {
                if bearer(asked).ends_with("sk-secret-1") && keys == 1 {
                    Reply::text("ok")
                } else {
                    Reply::status(401, format!("not accepted: {}", bearer(asked)))
                }
            });
            let key = Arc::new(Renewable { refusals: AtomicUsize::new(0), keys });
            let base = server.base_url(shape);
            let chain = [Arc::new(candidate_at(&base, api(shape), "p", key))];
            let (outcome, _) = ask(&Client::seeded(1), &chain, &quick()).await;
            assert_eq!(server.requests(), requests, "{shape} {keys}");
            match outcome {
                Ok(answer) => {
                    assert_eq!(answer.attempts[1].note.as_deref(), Some("with a new key"));
                }
                Err(failure) => {
                    assert_ne!(keys, 1);
                    assert_eq!(failure.fault, Fault::Auth);
                    assert!(!format!("{failure} {failure:?}").contains("sk-secret"), "{failure}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_and_that_is_remembered() {
    let server = ModelServer::answering(|asked: &ModelRequest| {
        let refuse = |name: &str| {
            Reply::status(400, format!("Unsupported parameter: '{name}' is not supported"))
                .code("unsupported_parameter")
                .param(name)
        };
        match ["max_tokens", "temperature"].iter().find(|name| asked.body.get(**name).is_some()) {
            Some(name) => refuse(name),
            None => Reply::text("ok"),
        }
    });
    let chain = [candidate(&server, Shape::Chat, "p")];
    let client = Client::seeded(2);
    let messages = hello();
    let request = Request {
        messages: &messages,
        max_output: Some(500),
        temperature: Some(0.1),
        ..Request::default()
    };
    let (outcome, _) = call(&client, &chain, &request, &quick()).await;
    let notes: Vec<_> = outcome.unwrap().attempts.into_iter().map(|attempt| attempt.note).collect();
    assert_eq!(
        notes,
        [
            None,
            Some("with another form of max_tokens".to_owned()),
            Some("without temperature".to_owned())
        ]
    );
    assert_eq!(server.asked()[2].body["max_completion_tokens"], 500);
    call(&client, &chain, &request, &quick()).await.0.unwrap();
    assert_eq!(server.requests(), 4, "what was learned is remembered");
}

#[tokio::test]
async fn the_failure_is_the_chain_with_the_first_cause_first() {
    let first = ModelServer::replies([
        Reply::status(400, "max_tokens not supported").param("max_tokens"),
        Reply::status(402, "insufficient credit"),
    ]);
    let second = ModelServer::always(Reply::status(529, "Overloaded"));
    let chain = [
        candidate(&first, Shape::Chat, "openai"),
        candidate(&second, Shape::Anthropic, "anthropic"),
    ];
    let messages = hello();
    let request = Request { messages: &messages, max_output: Some(9), ..Request::default() };
    let (outcome, _) = call(&Client::seeded(3), &chain, &request, &quick()).await;
    let said = outcome.unwrap_err().to_string();
    let start = "openai/m: 400 max_tokens not supported; again with another form of max_tokens: \
                 402 insufficient credit; fallback anthropic/m: 529 Overloaded after 4 attempts in";
    assert!(said.starts_with(start), "{said}");
}

#[tokio::test]
async fn a_limit_that_anthropic_names_is_kept() {
    let server = ModelServer::answering(|asked: &ModelRequest| {
        match asked.body["max_tokens"].as_u64() {
            Some(most) if most > 4096 => Reply::status(
                400,
                format!(
                    "max_tokens: {most} > 4096, which is the maximum allowed number of output tokens"
                ),
            ),
            _ => Reply::text("ok"),
        }
    });
    let chain = [candidate(&server, Shape::Anthropic, "p")];
    let client = Client::seeded(4);
    ask(&client, &chain, &quick()).await.0.unwrap();
    ask(&client, &chain, &quick()).await.0.unwrap();
    let sent: Vec<_> =
        server.asked().iter().map(|asked| asked.body["max_tokens"].clone()).collect();
    assert_eq!(sent, [8192, 4096, 4096]);
}

#[tokio::test]
async fn what_is_too_long_for_one_goes_only_to_larger_windows() {
    let long = || ModelServer::always(Reply::status(400, "prompt is too long: 9 > 8"));
    let (first, second, third) = (long(), long(), ModelServer::always(Reply::text("ok")));
    let sized = |server: &ModelServer, name: &str, window| {
        let candidate = candidate(server, Shape::Anthropic, name);
        Arc::new(Candidate { window: Some(window), ..(*candidate).clone() })
    };
    let (small, smaller) = (sized(&first, "p", 100), sized(&second, "q", 50));
    let chain = [small.clone(), smaller.clone(), sized(&third, "r", 200)];
    let answer = ask(&Client::seeded(5), &chain, &quick()).await.0.unwrap();
    assert_eq!(answer.candidate.to_string(), "r/m");
    assert_eq!((first.requests(), second.requests()), (1, 0));
    let failure = ask(&Client::seeded(5), &[small, smaller], &quick()).await.0.unwrap_err();
    assert_eq!((failure.fault, failure.attempts.len()), (Fault::TooLong, 1));
}

#[tokio::test]
async fn four_candidates_of_which_three_fail_differently_give_an_answer() {
    let servers = [
        ModelServer::always(Reply::status(402, "pay")),
        ModelServer::always(Reply::status(500, "oops")),
        ModelServer::always(Reply::status(404, "no such model")),
        ModelServer::always(Reply::text("ok")),
    ];
    let chain: Vec<_> = servers
        .iter()
        .zip(["a", "b", "c", "d"])
        .map(|(server, name)| candidate(server, Shape::Chat, name))
        .collect();
    let client = Client::seeded(6);
    let answer = ask(&client, &chain, &quick()).await.0.unwrap();
    let faults: Vec<_> = answer.attempts.iter().map(|attempt| attempt.fault).collect();
    assert_eq!(
        faults,
        [
            Some(Fault::Quota),
            Some(Fault::Overloaded),
            Some(Fault::Overloaded),
            Some(Fault::NotFound),
            None
        ]
    );
    // Those that are unwell are left alone; one that lacks the model is asked again.
    let answer = ask(&client, &chain, &quick()).await.0.unwrap();
    assert_eq!(answer.attempts.len(), 2);
    assert_eq!(servers[0].requests(), 1);
}

#[tokio::test]
async fn all_unwell_are_tried_all_the_same() {
    let server = ModelServer::replies([Reply::status(402, "pay"), Reply::text("paid")]);
    let chain = [candidate(&server, Shape::Chat, "p")];
    let client = Client::seeded(7);
    assert_eq!(ask(&client, &chain, &quick()).await.0.unwrap_err().fault, Fault::Quota);
    assert_eq!(ask(&client, &chain, &quick()).await.1.text, "paid");
}

#[tokio::test]
async fn a_chain_without_candidates_fails_and_says_so() {
    let failure = ask(&Client::seeded(8), &[], &quick()).await.0.unwrap_err();
    assert_eq!(failure.fault, Fault::NotFound);
    assert!(!failure.to_string().is_empty());
}
