//! Servers that send, and say nothing; models that are slow, and honest.

use std::sync::Arc;
use std::time::Duration;

use mainstay_llm::{Answer, Candidate, Client, Failure, Fault, Limits};
use mainstay_testkit::model::{ModelServer, Reply, Shape};

use crate::ground::{ask, candidate, quick};

const COMMENT: &str = ": PROCESSING\n\n";
const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
const EMPTY_CHUNK: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n";
const STILL_AT_IT: &str = "event: response.in_progress\n\
    data: {\"type\":\"response.in_progress\",\"response\":{\"status\":\"in_progress\"}}\n\n";
const EMPTY_LINE: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n";

/// Every way to be there and say nothing, or not even that.
const DRIPS: [(Shape, &str); 8] = [
    (Shape::Chat, COMMENT),
    (Shape::Chat, EMPTY_CHUNK),
    (Shape::Chat, "x"),
    (Shape::Responses, STILL_AT_IT),
    (Shape::Anthropic, PING),
    (Shape::Anthropic, "\n"),
    (Shape::Ollama, EMPTY_LINE),
    (Shape::Ollama, " "),
];

/// Often enough to be within every limit.
const OFTEN: Duration = Duration::from_millis(40);

fn dripping(events: usize, drip: &str) -> Reply {
    Reply::text("a b c d e f").drip_after_events(events, drip, OFTEN)
}

/// Asks, and panics where that hangs.
async fn ask_in_time(
    case: &str,
    chain: &[Arc<Candidate>],
    limits: &Limits,
) -> Result<Answer, Failure> {
    let client = Client::seeded(1);
    let asked = tokio::time::timeout(Duration::from_secs(30), ask(&client, chain, limits)).await;
    asked.unwrap_or_else(|_| panic!("{case}: hangs")).0
}

fn words(answer: &Answer) -> String {
    format!("{:?}", answer.parts)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drips_does_not_starve_the_fallback() {
    // Before the first word and after it; Ollama begins with a word.
    let begun = |shape| if shape == Shape::Ollama { 1 } else { 4 };
    let cases = DRIPS.iter().flat_map(|drip| [(drip, 0), (drip, begun(drip.0))]);
    let cases = cases.map(|((shape, drip), events)| {
        tokio::spawn(async move {
            let server = ModelServer::always(dripping(events, drip));
            let fallback = ModelServer::always(Reply::text("well"));
            let chain = [candidate(&server, *shape, "p"), candidate(&fallback, Shape::Chat, "q")];
            let case = format!("{shape:?} {drip:?} after {events}");
            // Long enough that only a pace can end it; the hang guard is what fails.
            let limits = Limits { chain: Duration::from_secs(60), ..quick() };
            let outcome = ask_in_time(&case, &chain, &limits).await;
            let answer = outcome.unwrap_or_else(|failure| panic!("{case}: {failure}"));
            assert_eq!(answer.candidate.to_string(), "q/m", "{case}");
            let failed = &answer.attempts[..answer.attempts.len() - 1];
            assert!(failed.iter().all(|a| a.fault == Some(Fault::Stalled)), "{case}: {failed:?}");
        })
    });
    for case in cases.collect::<Vec<_>>() {
        case.await.unwrap();
    }
}

#[tokio::test]
async fn a_model_that_drips_words_leaves_the_fallback_its_share() {
    // Each word is progress, so that only the share can end it.
    let word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \"}}]}\n\n";
    let server = ModelServer::always(dripping(2, word));
    let fallback = ModelServer::always(Reply::text("well"));
    let chain = [candidate(&server, Shape::Chat, "p"), candidate(&fallback, Shape::Chat, "q")];
    let limits = Limits { chain: Duration::from_secs(3), ..quick() };
    let (outcome, _) = ask(&Client::seeded(2), &chain, &limits).await;
    let answer = outcome.unwrap();
    assert_eq!(words(&answer), "[Text(\"well\")]");
    // Its share is what is left beside the one wait that the other needs, and it is not asked again.
    let first = &answer.attempts[0];
    assert_eq!((first.fault, server.requests()), (Some(Fault::Stalled), 1), "{first:?}");
    assert!(first.latency >= Duration::from_millis(2300), "{first:?}");
    assert!(first.said.contains("share"), "{first:?}");
}

#[tokio::test]
async fn a_slow_model_that_shows_that_it_is_alive_is_waited_for() {
    // Twelve events with a keep-alive in every one and far longer in all than a silence may be.
    let slow = Reply::text("a b c d e f").with_comments().pausing(Duration::from_millis(120));
    for shape in [Shape::Chat, Shape::Responses, Shape::Anthropic] {
        let server = ModelServer::always(slow.clone());
        let fallback = ModelServer::always(Reply::text("not asked"));
        let chain = [candidate(&server, shape, "p"), candidate(&fallback, Shape::Chat, "q")];
        let limits =
            Limits { idle: Duration::from_secs(2), first_byte: Duration::from_secs(2), ..quick() };
        let (outcome, _) = ask(&Client::seeded(3), &chain, &limits).await;
        assert_eq!(outcome.unwrap().candidate.to_string(), "p/m", "{shape:?}");
        assert_eq!(fallback.requests(), 0);
    }
}

#[tokio::test]
async fn the_last_model_may_think_until_the_deadline_as_long_as_its_server_is_there() {
    let silent = ModelServer::always(dripping(0, COMMENT));
    let chain = [candidate(&silent, Shape::Chat, "p")];
    let limits = Limits { chain: Duration::from_secs(3), ..quick() };
    let failure: Failure = ask(&Client::seeded(4), &chain, &limits).await.0.unwrap_err();
    assert_eq!((failure.fault, silent.requests()), (Fault::Deadline, 1), "{failure}");
}

#[tokio::test]
async fn the_words_of_an_error_and_what_follows_an_answer_may_drip_too() {
    // The status is known, and the answer is whole: neither waits for what comes after it.
    let limits = Limits { chain: Duration::from_secs(60), attempts: 1, ..quick() };
    let whole = Reply::text("a").without_end_marker();
    let events = whole.events(Shape::Chat);
    let after_all =
        ModelServer::always(Reply::text("a").drip_after_events(events - 1, COMMENT, OFTEN));
    let chain = [candidate(&after_all, Shape::Chat, "p")];
    let outcome = ask_in_time("after the answer", &chain, &limits).await;
    assert_eq!(words(&outcome.unwrap()), "[Text(\"a\")]");

    let words = Reply::raw(503, &[], "later ".repeat(1000)).in_pieces_of(1).pausing(OFTEN);
    let refusing = ModelServer::always(words);
    let chain = [candidate(&refusing, Shape::Chat, "p")];
    let outcome = ask_in_time("an error", &chain, &limits).await;
    assert_eq!(outcome.unwrap_err().fault, Fault::Overloaded);
}
