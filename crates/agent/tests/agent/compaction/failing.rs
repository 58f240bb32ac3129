//! A model for summaries that fails in every way there is.

use std::time::{Duration, Instant};

use mainstay_agent::{Event, OnFailure, TurnEnding};
use mainstay_journal::turn::Outcome;
use mainstay_testkit::model::{ModelRequest, Reply};
use serde_json::json;

use super::scene::{
    self, body, candidate, compactions, fill, is_summary, reading, rounds, summary,
    summary_requests, summary_rows, too_long,
};
use crate::fixture::{TestAgent, TestTurn, resume, runtime, turn};

/// The bytes of a request that the model takes no more.
const HARD: usize = 48_000;

/// The ways, each with a name.
fn faults() -> Vec<(&'static str, Reply)> {
    vec![
        ("401", Reply::status(401, "who are you")),
        ("402", Reply::status(402, "pay first")),
        ("404", Reply::status(404, "no such model")),
        ("400", Reply::status(400, "this makes no sense")),
        ("429", Reply::status(429, "slow down").header("retry-after", "0")),
        ("429 for long", Reply::status(429, "come back later").header("retry-after", "7200")),
        ("quota", Reply::status(429, "quota exceeded").code("insufficient_quota")),
        ("500", Reply::status(500, "it broke")),
        ("503", Reply::status(503, "gone for lunch")),
        ("529", Reply::status(529, "too many of you")),
        ("page", Reply::raw(502, &[("content-type", "text/html")], "<h1>Bad gateway</h1>")),
        ("page as words", Reply::text("<!DOCTYPE html><html><body>Sign in</body></html>")),
        ("silence", Reply::text("x").stall_before_first_byte()),
        ("silence in the middle", Reply::text("words of it").stall_after_events(1)),
        ("cut", Reply::text("words of it").cut_after_events(1)),
        ("reset", Reply::text("words of it").cut_after_events(1).by_reset()),
        ("no end", Reply::text("words of it").end_after_events(1)),
        ("garbage", Reply::text("x").garbage()),
        ("error in the stream", Reply::text("x").error_event_after(1, "server_error", "mid-way")),
        ("empty", Reply::empty()),
        ("blank", Reply::text("  \n ")),
        ("thoughts only", Reply::thinking("let me think about it")),
        ("a call", Reply::call_of("read_file", json!({ "path": "f0" }))),
        ("refused", Reply::text("I cannot").refused()),
        ("larger", Reply::text("all of it again, and more. ".repeat(4_000))),
        ("too long", too_long()),
    ]
}

/// Reads a file a round and then answers, or goes on for ever. Requests that are too long are refused,
/// as real servers do.
fn agent(rounds: usize, fault: Reply) -> TestAgent {
    let mut next = 0;
    let mut test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        if is_summary(asked) {
            return fault.clone();
        }
        if asked.bytes > HARD {
            return too_long();
        }
        next += 1;
        if next > rounds { Reply::text("All read.") } else { reading(next - 1) }
    });
    test.settings.asking.first_byte = Duration::from_millis(200);
    test.settings.asking.idle = Duration::from_millis(200);
    test.settings.compaction.timeout = Duration::from_secs(2);
    fill(&test, 60, 100);
    test
}

fn on_each(faults: &[(&'static str, Reply)], check: impl AsyncFn(&str, Reply) + Send + Sync) {
    std::thread::scope(|scope| {
        for chunk in faults.chunks(faults.len().div_ceil(4)) {
            let check = &check;
            scope.spawn(move || {
                let runtime = runtime();
                for (name, fault) in chunk {
                    runtime.block_on(check(name, fault.clone()));
                }
            });
        }
    });
}

/// How many summaries a turn began.
fn begun(turn: &TestTurn) -> usize {
    turn.events.iter().filter(|event| matches!(event, Event::Compacting { .. })).count()
}

#[test]
fn slow_a_turn_ends_well_without_its_summary_where_the_window_lets_it() {
    on_each(&faults(), async |name, fault| {
        // Enough to pass three quarters, and not all.
        let test = agent(22, fault);
        let mut work = test.begin();
        let ended = turn(&mut work, "read it all").await;
        assert_eq!(
            ended.report.ending,
            TurnEnding::Over(Outcome::Answered, None),
            "{name}: {ended:?}"
        );
        assert_eq!(ended.report.answer, "All read.", "{name}");
        let begun = begun(&ended);
        assert!((1..=2).contains(&begun), "{name}: {begun} summaries were begun");
        let asked = summary_requests(&test).len();
        assert!((1..=4).contains(&asked), "{name}: {asked} requests");
        assert_eq!(compactions(&test, work.id()).len(), 0, "{name}");
        assert!(
            !body(rounds(&test).last().unwrap()).contains("a record of this session"),
            "{name}"
        );
        // One that was not waited for is settled all the same.
        drop(work);
        test.model.assert_no_violations();
    });
}

#[test]
fn slow_a_turn_that_needs_the_room_ends_in_words_that_say_what_fills_it() {
    on_each(&faults(), async |name, fault| {
        let test = agent(usize::MAX, fault);
        let mut work = test.begin();
        let began = Instant::now();
        let ended = turn(&mut work, "read it all").await;
        assert!(began.elapsed() < Duration::from_secs(30), "{name}: {:?}", began.elapsed());
        let parked = ended.parked_because();
        let reason =
            parked.or(ended.failed_because()).unwrap_or_else(|| panic!("{name}: {ended:?}"));
        assert_eq!(parked.is_some(), name == "429 for long", "{name}: {reason}");
        assert_eq!(ended.resume_at().is_some(), parked.is_some(), "{name}: {reason}");
        assert!(reason.contains("maximum context length exceeded"), "{name}: {reason}");
        assert!(reason.contains("are filled with answers"), "{name}: {reason}");
        assert!(reason.contains("mainstay sessions fork"), "{name}: {reason}");
        let begun = begun(&ended);
        assert!((1..=2).contains(&begun), "{name}: {begun} summaries were begun");
        let asked = summary_requests(&test).len();
        assert!((1..=4).contains(&asked), "{name}: {asked} requests");
        assert_eq!(summary_rows(&test, work.id()).len(), asked, "{name}");
        assert_eq!(compactions(&test, work.id()).len(), 0, "{name}");
        test.model.assert_no_violations();

        // Another process does not begin anew: it finds in the record that it has to rest.
        let id = work.id();
        drop(work);
        let again = resume(&mut test.open(id)).await;
        assert!(again.failed_because().is_some(), "{name}: {again:?}");
        let later = summary_requests(&test).len();
        assert!(later <= asked + 2, "{name}: {asked} requests, then {later}");
    });
}

#[test]
fn slow_where_it_is_wished_for_a_summary_is_made_without_a_model() {
    let mut faults = faults();
    faults.retain(|(name, _)| ["401", "500", "page as words", "empty", "cut"].contains(name));
    on_each(&faults, async |name, fault| {
        let mut test = agent(40, fault);
        test.settings.compaction.on_failure = OnFailure::Local;
        let mut work = test.begin();
        let ended = turn(&mut work, "read it all").await;
        assert_eq!(
            ended.report.ending,
            TurnEnding::Over(Outcome::Answered, None),
            "{name}: {ended:?}"
        );
        let made = compactions(&test, work.id());
        assert!(!made.is_empty(), "{name}");
        assert!(made.iter().any(|made| {
            made.summary.as_deref().is_some_and(|text| text.contains("Made without a model"))
        }));
        let asked = summary_requests(&test).len();
        assert!(asked <= 4, "{name}: {asked} requests");
        test.model.assert_no_violations();
    });
}

#[tokio::test]
async fn the_turn_s_model_is_asked_once_where_that_for_summaries_fails() {
    for fault in [Reply::status(401, "who are you"), Reply::empty()] {
        let mut next = 0;
        let mut test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
            if is_summary(asked) {
                return if asked.model() == "small" { fault.clone() } else { summary(1) };
            }
            next += 1;
            if next > 30 { Reply::text("All read.") } else { reading(next - 1) }
        });
        test.settings.compaction.model = Some(candidate(&test, "small", Some(32_000)).into());
        fill(&test, 40, 100);
        let mut work = test.begin();
        let ended = turn(&mut work, "read it all").await;
        assert_eq!(ended.report.answer, "All read.", "{:?}", ended.notices("compaction"));
        let made = compactions(&test, work.id());
        assert!(made[0].summary.as_deref().is_some_and(|text| text.starts_with("SUMMARY 1")));
        let models: Vec<String> =
            summary_requests(&test).iter().map(|asked| asked.model().to_owned()).collect();
        assert_eq!(models[..2], ["small", "qwen"]);
        // One more may be on its way.
        let rows = summary_rows(&test, work.id()).len();
        assert!(rows >= 2 && rows <= models.len(), "{rows} of {models:?}");
    }
}
