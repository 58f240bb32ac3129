//! Long work in a small window.

use std::time::Duration;

use mainstay_agent::{Event, TurnEnding};
use mainstay_journal::entry::Body;
use mainstay_journal::turn::Outcome;
use mainstay_message::Content;
use mainstay_testkit::model::{Asked, Gate, Reply};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::place::{
    LEDGER, Place, body, input, is_summary, notices, opened, reader, reading, summary, turn,
};

const TURNS: usize = 4;
const ROUNDS: usize = 125;

/// The tokens that the scripted server counts for a request, as it tells them.
fn tokens(asked: &Asked) -> usize {
    asked.bytes / 4
}

#[tokio::test]
async fn slow_five_hundred_rounds_fit_a_small_window_and_keep_what_matters() {
    let (mut round, mut summaries) = (0, 0);
    let place = Place::new(Some(12_000), move |asked: &Asked| {
        if is_summary(asked) {
            summaries += 1;
            return summary(summaries);
        }
        round += 1;
        match round % ROUNDS {
            0 => Reply::text(format!("Part {} is done.", round / ROUNDS)),
            1 => Reply::call_of(
                "todo",
                json!({ "steps": [{ "content": "read all the files", "status": "in_progress" }] }),
            ),
            number => reading(round / ROUNDS * ROUNDS + number),
        }
    });
    place.fill(TURNS * ROUNDS, 100);
    let mut work = place.begin();
    let mut compactions = 0;
    let wish = |number: usize| format!("instruction {number}: read what is there, to its end");
    for number in 1..=TURNS {
        let (ended, told) = turn(&mut work, &wish(number)).await;
        assert_eq!(ended.ending, TurnEnding::Over(Outcome::Answered, None), "{:?}", notices(&told));
        assert_eq!(ended.answer, format!("Part {number} is done."));
        let made = told.iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
        assert!(made <= 2 * (ROUNDS / 10 + 1), "{made} in one turn");
        compactions += made;
    }
    place.model.assert_no_violations();
    let all = place.rounds();
    assert_eq!(all.len(), TURNS * ROUNDS);
    let mut first = None;
    for (place, asked) in all.iter().enumerate() {
        let body = body(asked);
        let wish = wish(place / ROUNDS + 1);
        assert!(body.contains(&wish), "request {} forgot the instruction", asked.number);
        assert!(tokens(asked) < 12_000, "request {} has {}", asked.number, tokens(asked));
        if body.contains(LEDGER) {
            first.get_or_insert(place);
        }
        if first.is_some() {
            assert!(body.contains(LEDGER), "request {} has no ledger", asked.number);
            assert!(body.contains("read all the files"), "request {} has no list", asked.number);
        }
    }
    let first = first.unwrap();
    assert!(first < ROUNDS, "the first ledger came in request {first}");
    let id = work.id();
    let made = place.compactions(id);
    assert_eq!(made.len(), compactions);
    let numbers: Vec<i64> = made.iter().map(|made| made.number).collect();
    assert_eq!(numbers, (1..=i64::try_from(compactions).unwrap()).collect::<Vec<_>>());
    assert!(made.iter().all(|made| made.after * 5 <= made.before * 4), "{made:?}");
    // Each summary was asked for once; a last one may be on its way.
    let summarised = made.iter().filter(|made| made.summary.is_some()).count();
    let rows = place.summaries(id).len();
    assert!((summarised..=summarised + 1).contains(&rows), "{rows} rows for {summarised}");
    println!(
        "{compactions} compactions, {summarised} of them with a summary, in {} rounds",
        all.len()
    );
    // Nobody else sees another conversation.
    let sent = body(all.last().unwrap());
    drop(work);
    let shown = mainstay_journal::transcript(&place.entries(id));
    assert!(shown.len() < 60, "{}", shown.len());
    assert!(sent.contains("SUMMARY"), "{sent}");
}

#[tokio::test]
async fn a_summary_that_is_ready_after_the_turn_is_applied_in_the_next_one() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut round, mut begun) = (0, false);
    let mut place = Place::new(Some(12_000), move |asked: &Asked| {
        if is_summary(asked) {
            begun = true;
            return summary(1).held_by(&held);
        }
        round += 1;
        if begun && asked.last_user_text() == "read it all" {
            return Reply::text("Enough for now.");
        }
        if round % 40 == 0 { Reply::text("All read.") } else { reading(round) }
    });
    place.settings.asking.first_byte = Duration::from_secs(30);
    place.fill(80, 100);
    let mut work = place.begin();
    let (ended, told) = turn(&mut work, "read it all").await;
    assert_eq!(ended.answer, "Enough for now.");
    assert!(!told.iter().any(|event| matches!(event, Event::Compacted { .. })), "{told:?}");
    gate.open();
    let (_, told) = turn(&mut work, "and the rest").await;
    let compacted = |event: &Event| matches!(event, Event::Compacted { number: 1, .. });
    assert!(told.iter().any(compacted), "{told:?}");
    let made = &place.compactions(work.id())[0];
    assert!(made.summary.as_deref().is_some_and(|text| text.starts_with("SUMMARY 1")), "{made:?}");
    assert!(place.summaries(work.id())[0].answered, "what it took is in the ledger");
    place.model.assert_no_violations();
}

#[tokio::test]
async fn where_every_process_is_short_the_second_one_waits_for_its_summary() {
    let (mut round, mut summaries) = (0, 0);
    let never = Gate::new();
    let mut place = Place::new(Some(12_000), move |asked: &Asked| {
        if is_summary(asked) {
            summaries += 1;
            let summary = summary(summaries);
            return if summaries == 1 { summary.held_by(&never) } else { summary };
        }
        round += 1;
        if asked.last_user_text() != "read it all" || asked.bytes > 36_500 {
            return Reply::text("Enough for now.");
        }
        reading(round)
    });
    place.settings.asking.first_byte = Duration::from_secs(30);
    place.fill(80, 100);
    let mut work = place.begin();
    let id = work.id();
    turn(&mut work, "read it all").await;
    drop(work);
    assert_eq!((place.compactions(id).len(), place.summaries(id).len()), (0, 1));
    let mut work = opened(&place.agent(), id);
    let (_, told) = turn(&mut work, "go on").await;
    assert!(told.iter().any(|event| matches!(event, Event::Compacted { .. })), "{told:?}");
    let asked = body(place.rounds().last().unwrap());
    assert!(asked.contains("SUMMARY 2"), "the question came before its summary: {asked}");
    place.model.assert_no_violations();
}

#[tokio::test]
async fn what_a_provider_counted_is_known_to_the_next_process() {
    // Its tokens are smaller than usual ones.
    let count = |asked: &Asked| asked.bytes / 2;
    let mut summaries = 0;
    let place = Place::new(Some(12_000), move |asked: &Asked| {
        if is_summary(asked) {
            summaries += 1;
            return summary(summaries);
        }
        Reply::text("I heard you. ".repeat(100)).usage(count(asked) as u64, 0, 300)
    });
    let mut work = place.begin();
    let id = work.id();
    for number in 0..20 {
        turn(&mut work, &format!("tale {number}: {}", "it was a dark night ".repeat(30))).await;
        drop(work);
        work = opened(&place.agent(), id);
    }
    assert!(!place.compactions(id).is_empty());
    for asked in place.rounds() {
        assert!(count(&asked) < 11_000, "request {} has {}", asked.number, count(&asked));
    }
    place.model.assert_no_violations();
}

#[tokio::test]
async fn rows_that_come_while_a_summary_is_made_stay_live() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = reader(30, move |_: &Asked| summary(1).held_by(&held));
    let mut place = Place::new(Some(12_000), script);
    place.settings.asking.first_byte = Duration::from_secs(30);
    place.fill(40, 100);
    let mut work = place.begin();
    let steering = work.steering();
    let (mut begun, mut results) = (false, 0);
    let mut told = Vec::new();
    let mut observer = |event: Event| {
        match &event {
            Event::Compacting { .. } => {
                begun = true;
                steering.push(vec![Content::Text("look at the colours too".to_owned())]);
            }
            Event::ToolResult { .. } if begun => {
                results += 1;
                if results == 2 {
                    gate.open();
                }
            }
            _ => {}
        }
        told.push(event);
    };
    let cancel = CancellationToken::new();
    let ended = work.turn(&input("read it all"), &mut observer, &cancel).await.unwrap();
    assert_eq!(ended.answer, "All read.");
    place.model.assert_no_violations();
    let made = told.iter().position(|event| matches!(event, Event::Compacted { .. })).unwrap();
    let steered = told.iter().position(|event| matches!(event, Event::Steered { .. })).unwrap();
    assert!(steered < made, "the user was heard while the summary was being made");
    let compaction = &place.compactions(work.id())[0];
    let entries = place.entries(work.id());
    let of =
        |wanted: fn(&Body) -> bool| entries.iter().rfind(|entry| wanted(&entry.body)).unwrap().seq;
    let (said, compacted) = (
        of(|body| matches!(body, Body::User { .. })),
        of(|body| matches!(body, Body::Compaction(_))),
    );
    assert!(compaction.through < said && said < compacted, "{compaction:?} {said} {compacted}");
    let after: Vec<Asked> =
        place.rounds().into_iter().filter(|asked| body(asked).contains("SUMMARY 1")).collect();
    assert!(!after.is_empty());
    for asked in &after {
        let body = body(asked);
        assert!(body.contains("look at the colours too") && body.contains("read it all"), "{body}");
    }
}
