//! Long work in a small window.

use std::time::Duration;

use mainstay_agent::{Event, TurnEnding};
use mainstay_journal::entry::Body;
use mainstay_journal::turn::Outcome;
use mainstay_message::Content;
use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::scene::{
    self, LEDGER, body, compactions, fill, is_summary, reader, reading, rounds, summary,
    summary_rows, tokens,
};
use crate::fixture::{input, turn};

const TURNS: usize = 4;
const ROUNDS: usize = 125;

#[tokio::test]
async fn slow_five_hundred_rounds_fit_a_small_window_and_keep_what_matters() {
    let (mut round, mut summaries) = (0, 0);
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
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
    fill(&test, TURNS * ROUNDS, 100);
    let mut work = test.begin();
    let mut told = 0;
    let wish = |number: usize| format!("instruction {number}: read what is there, to its end");
    for number in 1..=TURNS {
        let ended = turn(&mut work, &wish(number)).await;
        assert_eq!(
            ended.report.ending,
            TurnEnding::Over(Outcome::Answered, None),
            "{:?}",
            ended.notices("compaction")
        );
        assert_eq!(ended.report.answer, format!("Part {number} is done."));
        let made =
            ended.events.iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
        assert!(made <= 2 * (ROUNDS / 10 + 1), "{made} in one turn");
        told += made;
    }
    test.model.assert_no_violations();
    let all = rounds(&test);
    assert_eq!(all.len(), TURNS * ROUNDS);
    let mut first = None;
    for (round, asked) in all.iter().enumerate() {
        let body = body(asked);
        let wish = wish(round / ROUNDS + 1);
        assert!(body.contains(&wish), "request {} forgot the instruction", asked.number);
        assert!(tokens(asked) < 12_000, "request {} has {}", asked.number, tokens(asked));
        if body.contains(LEDGER) {
            first.get_or_insert(round);
        }
        if first.is_some() {
            assert!(body.contains(LEDGER), "request {} has no ledger", asked.number);
            assert!(body.contains("read all the files"), "request {} has no list", asked.number);
        }
    }
    let first = first.unwrap();
    assert!(first < ROUNDS, "the first ledger came in request {first}");
    let id = work.id();
    let made = compactions(&test, id);
    assert_eq!(made.len(), told);
    let numbers: Vec<i64> = made.iter().map(|made| made.number).collect();
    assert_eq!(numbers, (1..=i64::try_from(told).unwrap()).collect::<Vec<_>>());
    assert!(made.iter().all(|made| made.after * 5 <= made.before * 4), "{made:?}");
    // Each summary was asked for once; a last one may be on its way.
    let summarised = made.iter().filter(|made| made.summary.is_some()).count();
    let rows = summary_rows(&test, id).len();
    assert!((summarised..=summarised + 1).contains(&rows), "{rows} rows for {summarised}");
    println!("{told} compactions, {summarised} of them with a summary, in {} rounds", all.len());
    // Nobody else sees another conversation.
    let sent = body(all.last().unwrap());
    drop(work);
    let shown = mainstay_journal::transcript(&test.entries(id));
    assert!(shown.len() < 60, "{}", shown.len());
    assert!(sent.contains("SUMMARY"), "{sent}");
}

#[tokio::test]
async fn a_summary_that_is_ready_after_the_turn_is_applied_in_the_next_one() {
    let gate = Gate::new();
    let held = gate.clone();
    let (mut round, mut begun) = (0, false);
    let mut test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
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
    test.settings.asking.first_byte = Duration::from_secs(30);
    fill(&test, 80, 100);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    assert_eq!(ended.report.answer, "Enough for now.");
    assert!(
        !ended.events.iter().any(|event| matches!(event, Event::Compacted { .. })),
        "{ended:?}"
    );
    gate.open();
    let ended = turn(&mut work, "and the rest").await;
    let compacted = |event: &Event| matches!(event, Event::Compacted { number: 1, .. });
    assert!(ended.events.iter().any(compacted), "{ended:?}");
    let made = &compactions(&test, work.id())[0];
    assert!(made.summary.as_deref().is_some_and(|text| text.starts_with("SUMMARY 1")), "{made:?}");
    assert!(summary_rows(&test, work.id())[0].answered, "what it took is in the ledger");
    test.model.assert_no_violations();
}

#[tokio::test]
async fn where_every_process_is_short_the_second_one_waits_for_its_summary() {
    let (mut round, mut summaries) = (0, 0);
    let never = Gate::new();
    let mut test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
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
    test.settings.asking.first_byte = Duration::from_secs(30);
    fill(&test, 80, 100);
    let mut work = test.begin();
    let id = work.id();
    turn(&mut work, "read it all").await;
    drop(work);
    assert_eq!((compactions(&test, id).len(), summary_rows(&test, id).len()), (0, 1));
    let mut work = test.open(id);
    let ended = turn(&mut work, "go on").await;
    assert!(ended.events.iter().any(|event| matches!(event, Event::Compacted { .. })), "{ended:?}");
    let asked = body(rounds(&test).last().unwrap());
    assert!(asked.contains("SUMMARY 2"), "the question came before its summary: {asked}");
    test.model.assert_no_violations();
}

#[tokio::test]
async fn what_a_provider_counted_is_known_to_the_next_process() {
    // Its tokens are smaller than usual ones.
    let count = |asked: &ModelRequest| asked.bytes / 2;
    let mut summaries = 0;
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        if is_summary(asked) {
            summaries += 1;
            return summary(summaries);
        }
        Reply::text("I heard you. ".repeat(100)).usage(count(asked) as u64, 0, 300)
    });
    let mut work = test.begin();
    let id = work.id();
    for number in 0..20 {
        turn(&mut work, &format!("tale {number}: {}", "it was a dark night ".repeat(30))).await;
        drop(work);
        work = test.open(id);
    }
    assert!(!compactions(&test, id).is_empty());
    for asked in rounds(&test) {
        assert!(count(&asked) < 11_000, "request {} has {}", asked.number, count(&asked));
    }
    test.model.assert_no_violations();
}

#[tokio::test]
async fn rows_that_come_while_a_summary_is_made_stay_live() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = reader(30, move |_: &ModelRequest| summary(1).held_by(&held));
    let mut test = scene::agent(Some(12_000), script);
    test.settings.asking.first_byte = Duration::from_secs(30);
    fill(&test, 40, 100);
    let mut work = test.begin();
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
    test.model.assert_no_violations();
    let made = told.iter().position(|event| matches!(event, Event::Compacted { .. })).unwrap();
    let steered = told.iter().position(|event| matches!(event, Event::Steered { .. })).unwrap();
    assert!(steered < made, "the user was heard while the summary was being made");
    let compaction = &compactions(&test, work.id())[0];
    let entries = test.entries(work.id());
    let of =
        |wanted: fn(&Body) -> bool| entries.iter().rfind(|entry| wanted(&entry.body)).unwrap().seq;
    let (said, compacted) = (
        of(|body| matches!(body, Body::User { .. })),
        of(|body| matches!(body, Body::Compaction(_))),
    );
    assert!(compaction.through < said && said < compacted, "{compaction:?} {said} {compacted}");
    let after: Vec<ModelRequest> =
        rounds(&test).into_iter().filter(|asked| body(asked).contains("SUMMARY 1")).collect();
    assert!(!after.is_empty());
    for asked in &after {
        let body = body(asked);
        assert!(body.contains("look at the colours too") && body.contains("read it all"), "{body}");
    }
}
