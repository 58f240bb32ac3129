//! Waits: what a provider asks for, and the deadline over all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_llm::{Candidate, Client, Event, Fault, Limits, Request};
use mainstay_testkit::model::{ModelServer, Reply, Shape};

use crate::ground::{ask, candidate, hello, quick};

fn limited(status: u16, retry_after: &str) -> Reply {
    Reply::status(status, "slow down").header("retry-after", retry_after)
}

#[tokio::test]
async fn a_short_wait_is_kept_on_429_503_and_529() {
    for status in [429, 503, 529] {
        for (value, least, most) in [("0", 0, 0), ("0.2", 200, 221), ("1", 1000, 1101)] {
            let server = ModelServer::replies([limited(status, value), Reply::text("ok")]);
            let (outcome, heard) =
                ask(&Client::seeded(1), &[candidate(&server, Shape::Chat, "p")], &quick()).await;
            let waited = outcome.unwrap().attempts[0].waited;
            let bounds = Duration::from_millis(least)..=Duration::from_millis(most);
            assert!(bounds.contains(&waited), "{status} {value}: {waited:?}");
            assert_eq!(heard.waits.len(), usize::from(least > 0));
            let asked = server.asked();
            assert!(asked[1].at - asked[0].at >= Duration::from_millis(least));
        }
    }
}

/// The wait that is announced first, or the outcome if there is none.
async fn first_wait(chain: &[Arc<Candidate>], limits: &Limits) -> Result<Duration, Option<Fault>> {
    let messages = hello();
    let request = Request { messages: &messages, ..Request::default() };
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut listener = |event: Event<'_>| {
        if let Event::Waiting { wait, .. } = event {
            let _ = told.send(wait);
        }
    };
    let client = Client::seeded(2);
    tokio::select! {
        outcome = client.call(chain, &request, limits, &mut listener) => {
            Err(outcome.err().map(|failure| failure.fault))
        }
        Some(wait) = heard.recv() => Ok(wait),
    }
}

#[tokio::test]
async fn five_seconds_are_waited_for_unless_that_is_above_the_cap_or_a_fallback_is_nearer() {
    let seconds = Duration::from_secs;
    let server = ModelServer::always(limited(429, "5"));
    let fallback = ModelServer::always(Reply::text("ok"));
    let alone = [candidate(&server, Shape::Anthropic, "p")];
    let both = [alone[0].clone(), candidate(&fallback, Shape::Chat, "q")];
    let about_five = |wait: Result<Duration, _>| (seconds(5)..=seconds(6)).contains(&wait.unwrap());

    assert!(about_five(first_wait(&alone, &Limits { retry_after: seconds(5), ..quick() }).await));
    let above = first_wait(&alone, &Limits { retry_after: seconds(4), ..quick() }).await;
    assert_eq!(above, Err(Some(Fault::RateLimited)));
    assert!(about_five(first_wait(&both, &Limits { patience: seconds(5), ..quick() }).await));
    let nearer = first_wait(&both, &Limits { patience: seconds(4), ..quick() }).await;
    assert_eq!(nearer, Err(None));
    assert_eq!((server.requests(), fallback.requests()), (4, 1));
}

#[tokio::test]
async fn a_long_wait_moves_on_and_without_a_fallback_says_until_when() {
    let now = jiff::Timestamp::now().as_millisecond();
    let date = jiff::Timestamp::from_millisecond(now + 7_200_000).unwrap();
    let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for value in ["7200", &date] {
        let server = ModelServer::always(limited(429, value));
        let chain = [candidate(&server, Shape::Responses, "p")];
        let began = Instant::now();
        let failure = ask(&Client::seeded(3), &chain, &quick()).await.0.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!((failure.fault, server.requests()), (Fault::RateLimited, 1));
        let wait = failure.retry_at.unwrap() - now;
        assert!((7_190_000..7_220_000).contains(&wait), "{value}: {wait}");

        let fallback = ModelServer::always(Reply::text("ok"));
        let chain = [chain[0].clone(), candidate(&fallback, Shape::Chat, "q")];
        let client = Client::seeded(3);
        for round in 1..=3 {
            let answer = ask(&client, &chain, &quick()).await.0.unwrap();
            assert_eq!(answer.candidate.to_string(), "q/m");
            // Asked once more by this client, then left alone until its time is over.
            assert_eq!((server.requests(), fallback.requests()), (2, round));
        }
    }
}

#[tokio::test]
async fn a_date_close_by_is_waited_for() {
    let at = jiff::Timestamp::now().as_millisecond() + 2_000;
    let date = jiff::Timestamp::from_millisecond(at).unwrap();
    let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let server = ModelServer::replies([limited(503, &date), Reply::text("ok")]);
    let answer = ask(&Client::seeded(4), &[candidate(&server, Shape::Chat, "p")], &quick()).await;
    let waited = answer.0.unwrap().attempts[0].waited;
    assert!(
        waited > Duration::from_millis(500) && waited < Duration::from_millis(2300),
        "{waited:?}"
    );
}

#[tokio::test]
async fn garbage_in_retry_after_means_our_own_wait() {
    for value in ["soon", "-5", "1e99x", ""] {
        let server = ModelServer::replies([limited(429, value), Reply::text("ok")]);
        let chain = [candidate(&server, Shape::Chat, "p")];
        let answer = ask(&Client::seeded(5), &chain, &quick()).await.0.unwrap();
        assert!(answer.attempts[0].waited <= Duration::from_millis(2), "{value:?}");
    }
}

#[tokio::test]
async fn the_deadline_holds_over_every_mix_of_faults() {
    let stalls = ModelServer::always(Reply::text("x").stall_before_first_byte());
    let limits_many = ModelServer::always(limited(429, "0.1"));
    let slow = ModelServer::always(Reply::text("a b c d e f").pausing(Duration::from_millis(280)));
    let chain = [
        candidate(&stalls, Shape::Chat, "p"),
        candidate(&limits_many, Shape::Anthropic, "q"),
        candidate(&slow, Shape::Ollama, "r"),
    ];
    for millis in [50, 400, 900] {
        let limits = Limits { chain: Duration::from_millis(millis), attempts: 100, ..quick() };
        let began = Instant::now();
        let failure = ask(&Client::seeded(6), &chain, &limits).await.0.unwrap_err();
        assert!(began.elapsed() < Duration::from_millis(millis + 300), "{:?}", began.elapsed());
        assert_eq!(failure.fault, Fault::Deadline, "{failure}");
    }
}

#[tokio::test]
async fn no_wait_is_begun_that_would_pass_the_deadline() {
    let server = ModelServer::always(limited(429, "30"));
    let limits = Limits { chain: Duration::from_secs(5), ..quick() };
    let began = Instant::now();
    let chain = [candidate(&server, Shape::Chat, "p")];
    let failure = ask(&Client::seeded(7), &chain, &limits).await.0.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!((failure.fault, server.requests()), (Fault::RateLimited, 1));
    assert!(failure.retry_at.is_some());
}
