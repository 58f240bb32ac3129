//! What ends the tries.

use std::sync::Arc;

use mainstay_agent::budget::Limits;
use mainstay_agent::{Compacted, Event, TurnEnding};
use mainstay_journal::turn::Outcome;
use mainstay_llm::{Candidate, Prices};
use mainstay_store::params;
use mainstay_testkit::model::{Asked, Reply, Script as _};
use tokio_util::sync::CancellationToken;

use crate::place::{
    LEDGER, Place, body, candidate, is_summary, notices, opened, reader, reading, reading_silently,
    summary, too_long, turn,
};

#[tokio::test]
async fn an_instruction_that_fills_the_window_is_told_once_and_asks_no_model() {
    let place = Place::new(Some(8_000), reader(6, |_: &Asked| summary(1)));
    place.fill(10, 200);
    let mut work = place.begin();
    let wish = format!("read these: {}", "many words that cannot be left out ".repeat(700));
    let (ended, told) = turn(&mut work, &wish).await;
    assert_eq!(ended.answer, "All read.");
    let notices = notices(&told);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("no longer compacted"), "{notices:?}");
    assert!(notices[0].contains("used by your messages"), "{notices:?}");
    assert_eq!(place.compactions(work.id()), []);
    assert_eq!(place.summaries(work.id()), [], "no model can make it smaller");
    assert!(place.rounds().iter().all(|asked| body(asked).contains("cannot be left out")));
}

#[tokio::test]
async fn two_summaries_in_a_row_that_do_not_help_are_the_last() {
    // What a summary saves, it takes itself.
    let long = "all of it again, word for word. ".repeat(1_000);
    let place = Place::new(Some(12_000), reader(28, move |_: &Asked| Reply::text(long.clone())));
    place.fill(40, 100);
    let mut work = place.begin();
    let (ended, told) = turn(&mut work, "read it all").await;
    assert_eq!(ended.answer, "All read.");
    assert_eq!(place.compactions(work.id()), []);
    assert_eq!(place.summaries(work.id()).len(), 2);
    let said = notices(&told);
    assert!(said[0].contains("would save less than a fifth"), "{said:?}");
    assert!(said[1].contains("the last two compactions did not help"), "{said:?}");
    assert!(said[1].contains("used by answers"), "{said:?}");
    // Nor does the next turn try, nor another process; a person may.
    let id = work.id();
    drop(work);
    let mut work = opened(&place.agent(), id);
    let (_, told) = turn(&mut work, "go on").await;
    assert_eq!(place.summaries(id).len(), 2);
    assert!(notices(&told)[0].contains("the last two compactions did not help"), "{told:?}");
    let cancel = CancellationToken::new();
    let by_hand = work.compact(None, &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(by_hand, Compacted::Not(_)), "{by_hand:?}");
    assert_eq!(place.summaries(id).len(), 3);
}

#[tokio::test]
async fn a_broken_record_of_compactions_does_not_stop_the_turn() {
    let mut full = false;
    let mut script = reader(usize::MAX, |_: &Asked| summary(1));
    let place = Place::new(Some(12_000), move |asked: &Asked| {
        full |= asked.bytes > 48_000;
        if full { too_long() } else { script.reply(asked) }
    });
    place.fill(60, 100);
    let mut work = place.begin();
    let (store, _) = place.store();
    store.write(|tx| tx.execute("DROP TABLE compactions", params![])).unwrap();
    let (ended, told) = turn(&mut work, "read it all").await;
    let TurnEnding::Over(Outcome::Failed, Some(reason)) = &ended.ending else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("compactions") && reason.contains("tokens are used by"), "{reason}");
    assert!(place.rounds().len() > 20, "it went on as far as the window allows");
    let said = notices(&told);
    assert!(said.len() == 1 && said[0].contains("compactions"), "{said:?}");
    assert_eq!(place.summaries(work.id()), []);
}

#[tokio::test]
async fn what_a_provider_finds_too_long_and_cannot_be_less_ends_the_turn_at_once() {
    for window in [None, Some(8_000)] {
        let place = Place::new(window, |_: &Asked| too_long());
        let mut work = place.begin();
        let wish = "many words that cannot be left out ".repeat(500);
        let (ended, _) = turn(&mut work, &wish).await;
        let TurnEnding::Over(Outcome::Failed, Some(reason)) = &ended.ending else {
            panic!("{ended:?}")
        };
        assert!(reason.contains("maximum context length exceeded"), "{reason}");
        assert!(reason.contains("used by your messages"), "{reason}");
        assert!(reason.contains("--model") && reason.contains("a new session"), "{reason}");
        assert_eq!(place.model.requests(), 1, "it was asked again with the same");
    }
}

#[tokio::test]
async fn a_model_without_a_known_window_is_compacted_when_its_provider_says_so() {
    let (mut next, mut summaries) = (0, 0);
    let place = Place::new(None, move |asked: &Asked| {
        if is_summary(asked) {
            summaries += 1;
            return if asked.bytes > 40_000 { too_long() } else { summary(summaries) };
        }
        if asked.bytes > 40_000 {
            return too_long();
        }
        next += 1;
        if next > 60 { Reply::text("All read.") } else { reading(next - 1) }
    });
    place.fill(60, 100);
    let mut work = place.begin();
    let (ended, told) = turn(&mut work, "read it all").await;
    assert_eq!(ended.ending, TurnEnding::Over(Outcome::Answered, None), "{told:?}");
    let made = place.compactions(work.id());
    assert!((2..=6).contains(&made.len()), "{}", made.len());
    let because = |why: &str| {
        let is =
            |event: &&Event| matches!(event, Event::Compacted { why: told, .. } if *told == why);
        told.iter().filter(is).count()
    };
    // What its provider found too long is not tried again.
    assert_eq!((because("too_long"), because("window")), (1, made.len() - 1));
    assert!(body(place.rounds().last().unwrap()).contains(LEDGER));
    place.model.assert_no_violations();
}

#[tokio::test]
async fn a_provider_that_finds_everything_too_long_is_asked_thrice_at_most() {
    let (mut next, mut full) = (0, false);
    let place = Place::new(None, move |asked: &Asked| {
        if is_summary(asked) {
            return summary(1);
        }
        next += 1;
        full |= next > 20;
        if full { too_long() } else { reading(next - 1) }
    });
    place.fill(30, 100);
    let mut work = place.begin();
    let (ended, _) = turn(&mut work, "read it all").await;
    let TurnEnding::Over(Outcome::Failed, Some(reason)) = &ended.ending else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("are used by"), "{reason}");
    assert!(place.compactions(work.id()).len() <= 2);
    assert!(place.rounds().len() <= 23, "{}", place.rounds().len());
    // To resume it asks once, and does not begin to compact anew.
    let (id, before) = (work.id(), place.model.requests());
    drop(work);
    let cancel = CancellationToken::new();
    let mut work = opened(&place.agent(), id);
    let again = work.resume(&mut |_| {}, &cancel).await.unwrap().unwrap();
    assert!(matches!(again.ending, TurnEnding::Over(Outcome::Failed, Some(_))), "{again:?}");
    assert!(place.model.requests() <= before + 2);
}

#[tokio::test]
async fn without_room_in_the_budget_there_is_no_summary_and_it_is_said() {
    let mut place = Place::new(Some(12_000), reader(22, |_: &Asked| summary(1)));
    // Rounds cost nothing, and the model for summaries more than there is.
    place.settings.budgets.turn = Limits { money: Some(10), tokens: None, calls: None };
    let mut dear = Candidate::clone(&candidate(&place.model, "dear", None));
    dear.prices = Some(Prices { input: 1_000_000, cached: 0, cache_written: 0, output: 1_000_000 });
    place.settings.compaction.model = Some(Arc::new(dear));
    place.fill(40, 100);
    let mut work = place.begin();
    let (ended, told) = turn(&mut work, "read it all").await;
    assert_eq!(ended.answer, "All read.");
    assert_eq!((place.compactions(work.id()), place.summaries(work.id())), (vec![], vec![]));
    let said = notices(&told);
    assert!(said.len() == 1 && said[0].contains("this turn's budget is spent"), "{said:?}");
}

#[tokio::test]
async fn the_cheap_steps_come_first_and_ask_no_model() {
    let mut next = 0;
    let place = Place::new(Some(12_000), move |asked: &Asked| {
        assert!(!is_summary(asked), "a summary was asked for");
        next += 1;
        if next > 16 { Reply::text("All read.") } else { reading_silently(next - 1) }
    });
    // Few large results: shortened they are a line each.
    place.fill(20, 5_000);
    let mut work = place.begin();
    let (ended, told) = turn(&mut work, "read it all").await;
    assert_eq!(ended.answer, "All read.", "{told:?}");
    let made = place.compactions(work.id());
    assert!(!made.is_empty() && made.iter().all(|made| made.summary.is_none()), "{made:?}");
    let last = body(place.rounds().last().unwrap());
    assert!(last.contains("[Mainstay: shortened.") && last.contains("read it all"), "{last}");
    place.model.assert_no_violations();
}
