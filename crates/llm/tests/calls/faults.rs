//! The matrix of faults: what is asked, how often, and what the failure says.

use std::sync::Arc;

use mainstay_llm::{Client, Fault};
use mainstay_testkit::model::{ModelServer, Reply, Shape};

use crate::ground::{ask, candidate, quick};

/// How often a candidate is asked: alone, and with a healthy fallback behind it.
const TRANSIENT: (usize, usize) = (4, 2);
const FINAL: (usize, usize) = (1, 1);

/// Faults that a status tells, in each provider's words.
fn refusals(shape: Shape) -> Vec<(Reply, Fault, (usize, usize))> {
    use Fault::*;
    let status = |status: u16| Reply::status(status, format!("words of {status}"));
    let mut refusals = vec![
        (status(429), RateLimited, TRANSIENT),
        (status(408), Overloaded, TRANSIENT),
        (status(500), Overloaded, TRANSIENT),
        (status(502), Overloaded, TRANSIENT),
        (status(503), Overloaded, TRANSIENT),
        (status(529), Overloaded, TRANSIENT),
        (status(402), Quota, FINAL),
        (Reply::status(400, "Your credit balance is too low. words of quota"), Quota, FINAL),
        (status(401), Auth, FINAL),
        (status(403), Auth, FINAL),
        (status(404), NotFound, FINAL),
        (status(400), BadRequest, FINAL),
        (status(413), TooLong, FINAL),
        (Reply::status(400, "prompt is too long: words of length"), TooLong, FINAL),
        (Reply::status(400, "words of content policy"), Refused, FINAL),
    ];
    // Ollama's errors are words without types.
    if shape != Shape::Ollama {
        let empty = Reply::status(429, "words of quota").kind("insufficient_quota");
        refusals.push((empty, Quota, FINAL));
    }
    refusals
}

/// Faults of the connection and of the bytes.
fn breakages(shape: Shape) -> Vec<(Reply, &'static [Fault])> {
    use Fault::*;
    let whole = || Reply::text("never to be kept, not even in part").usage(5, 0, 5);
    let events = whole().events(shape);
    let mut replies: Vec<(Reply, &'static [Fault])> = vec![
        (whole().cut_before_first_byte(), &[Network]),
        (whole().cut_before_first_byte().by_reset(), &[Network]),
        (whole().garbage(), &[Garbage]),
        (Reply::raw(200, &[("content-type", "text/html")], "<html>Sign in</html>"), &[Garbage]),
        (Reply::raw(200, &[("content-type", "application/json")], "{\"ok\":true}"), &[Garbage]),
        (Reply::raw(200, &[], ""), &[Garbage]),
        (whole().stall_before_first_byte(), &[Stalled]),
        (whole().stall_after_events(1), &[Stalled]),
    ];
    // After its last words but one, chat completions have named their reason: the answer is whole.
    let marker = if shape == Shape::Chat { events - 2 } else { events };
    for cut in 0..marker {
        replies.push((whole().cut_inside_event(cut), &[Network, Garbage]));
        replies.push((whole().cut_after_events(cut), &[Network, Garbage]));
        replies.push((whole().cut_after_events(cut).by_reset(), &[Network, Garbage]));
        if cut > 0 {
            replies.push((whole().end_after_events(cut), &[Garbage]));
        }
        replies.push((whole().garbage_after_events(cut), &[Garbage]));
        replies.push((whole().error_event_after(cut, "overloaded_error", "words"), &[Overloaded]));
    }
    replies
}

#[tokio::test]
async fn every_refusal_in_every_format_alone_and_with_two_fallbacks() {
    for shape in Shape::ALL {
        for (reply, fault, (alone, with_fallback)) in refusals(shape) {
            let server = ModelServer::always(reply.clone());
            let primary = candidate(&server, shape, "p");
            let (outcome, heard) =
                ask(&Client::seeded(1), std::slice::from_ref(&primary), &quick()).await;
            let failure = outcome.unwrap_err();
            assert_eq!(failure.fault, fault, "{shape} {failure}");
            assert_eq!(server.requests(), alone, "{shape} {failure}");
            assert_eq!((heard.failed, failure.attempts.len()), (alone, alone));
            assert!(failure.to_string().starts_with("p/m: "), "{failure}");
            assert!(failure.to_string().contains("words of"), "{failure}");

            // A fresh client: this one knows by now that the primary is unwell.
            let (second, third) = (
                ModelServer::always(Reply::status(529, "busy")),
                ModelServer::always(Reply::text("ok")),
            );
            let chain = [primary, candidate(&second, shape, "q"), candidate(&third, shape, "r")];
            let (outcome, heard) = ask(&Client::seeded(1), &chain, &quick()).await;
            let answer = outcome.unwrap();
            assert_eq!(answer.candidate.to_string(), "r/m");
            assert_eq!(heard.text, "ok");
            assert_eq!(server.requests(), alone + with_fallback, "{shape} {fault}");
            assert_eq!((second.requests(), third.requests()), (2, 1));
            assert_eq!(answer.attempts.last().unwrap().fault, None);
        }
    }
}

#[tokio::test]
async fn every_breakage_in_every_format_is_a_fault_and_then_forgotten() {
    for shape in Shape::ALL {
        for (reply, faults) in breakages(shape) {
            let server = ModelServer::replies([reply.clone(), Reply::text("whole")]);
            let chain = [candidate(&server, shape, "p")];
            let (outcome, heard) = ask(&Client::seeded(2), &chain, &quick()).await;
            let answer = outcome.unwrap();
            assert_eq!(heard.text, "whole", "{shape} {reply:?}");
            assert_eq!(answer.attempts.len(), 2, "{shape} {reply:?}");
            let fault = answer.attempts[0].fault.unwrap();
            assert!(faults.contains(&fault), "{shape} {fault} {reply:?}");
        }
    }
}

#[tokio::test]
async fn every_breakage_in_every_format_with_two_fallbacks_moves_on_after_two_attempts() {
    for shape in Shape::ALL {
        for (reply, faults) in breakages(shape) {
            let server = ModelServer::always(reply.clone());
            let (second, third) =
                (ModelServer::always(reply.clone()), ModelServer::always(Reply::text("ok")));
            let chain = [
                candidate(&server, shape, "p"),
                candidate(&second, shape, "q"),
                candidate(&third, shape, "r"),
            ];
            let (outcome, heard) = ask(&Client::seeded(3), &chain, &quick()).await;
            let answer = outcome.unwrap();
            assert_eq!(heard.text, "ok", "{shape} {reply:?}");
            assert_eq!(answer.candidate.to_string(), "r/m");
            assert_eq!(answer.attempts.len(), 5, "{shape} {reply:?}");
            for attempt in &answer.attempts[..4] {
                assert!(faults.contains(&attempt.fault.unwrap()), "{shape} {attempt:?}");
            }
            assert_eq!((server.requests(), second.requests()), (2, 2));
        }
    }
}

#[tokio::test]
async fn nobody_listening_is_a_network_fault_with_the_systems_words() {
    let server = ModelServer::always(Reply::text("x"));
    let chain = [candidate(&server, Shape::Chat, "p")];
    drop(server);
    let failure = ask(&Client::seeded(4), &chain, &quick()).await.0.unwrap_err();
    assert_eq!(failure.fault, Fault::Network);
    assert!(failure.to_string().to_lowercase().contains("refused"), "{failure}");
    assert!(failure.to_string().contains("after 4 attempts in"), "{failure}");
}

#[tokio::test]
async fn an_endless_line_and_an_endless_answer_are_garbage() {
    let server = ModelServer::always(Reply::text("x".repeat(50_000)));
    let chain: Vec<Arc<_>> = vec![candidate(&server, Shape::Chat, "p")];
    for limits in [
        mainstay_llm::Limits { event_bytes: 50, attempts: 1, ..quick() },
        mainstay_llm::Limits { answer_bytes: 10_000, attempts: 1, ..quick() },
    ] {
        let failure = ask(&Client::seeded(5), &chain, &limits).await.0.unwrap_err();
        assert_eq!(failure.fault, Fault::Garbage, "{failure}");
        assert!(failure.to_string().contains("longer than allowed"), "{failure}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_leads() {
    let other = ModelServer::always(Reply::text("stolen"));
    let server = ModelServer::always(Reply::raw(307, &[("location", &other.url())], ""));
    let failure = ask(&Client::seeded(6), &[candidate(&server, Shape::Chat, "p")], &quick())
        .await
        .0
        .unwrap_err();
    assert_eq!(failure.fault, Fault::BadRequest);
    assert!(failure.to_string().contains(&other.url()), "{failure}");
    assert_eq!(other.requests(), 0);
}
