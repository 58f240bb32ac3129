//! What ends the tries.

use std::sync::Arc;

use mainstay_agent::budget::Limits;
use mainstay_agent::{Compacted, Event, TurnEnding};
use mainstay_journal::turn::Outcome;
use mainstay_llm::Prices;
use mainstay_store::params;
use mainstay_testkit::model::{ModelRequest, Reply, Script as _};
use tokio_util::sync::CancellationToken;

use super::scene::{
    self, LEDGER, body, candidate, compactions, fill, is_summary, reader, reading,
    reading_silently, rounds, summary, summary_rows, too_long,
};
use crate::fixture::{resume, turn};

#[tokio::test]
async fn an_instruction_that_fills_the_window_is_told_once_and_asks_no_model() {
    let test = scene::agent(Some(8_000), reader(6, |_: &ModelRequest| summary(1)));
    fill(&test, 10, 200);
    let mut work = test.begin();
    let wish = format!("read these: {}", "many words that cannot be left out ".repeat(720));
    let ended = turn(&mut work, &wish).await;
    assert_eq!(ended.report.answer, "All read.");
    let notices = ended.notices("compaction");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("no longer compacted"), "{notices:?}");
    assert!(notices[0].contains("used by your messages"), "{notices:?}");
    assert_eq!(compactions(&test, work.id()), []);
    assert_eq!(summary_rows(&test, work.id()), [], "no model can make it smaller");
    assert!(rounds(&test).iter().all(|asked| body(asked).contains("cannot be left out")));
}

#[tokio::test]
async fn two_summaries_in_a_row_that_do_not_help_are_the_last() {
    // What a summary saves, it takes itself.
    let long = "all of it again, word for word. ".repeat(1_000);
    let test =
        scene::agent(Some(12_000), reader(28, move |_: &ModelRequest| Reply::text(long.clone())));
    fill(&test, 40, 100);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    assert_eq!(ended.report.answer, "All read.");
    assert_eq!(compactions(&test, work.id()), []);
    assert_eq!(summary_rows(&test, work.id()).len(), 2);
    let said = ended.notices("compaction");
    assert!(said[0].contains("would save less than a fifth"), "{said:?}");
    assert!(said[1].contains("the last two compactions did not help"), "{said:?}");
    assert!(said[1].contains("used by answers"), "{said:?}");
    // Nor does the next turn try, nor another process; a person may.
    let id = work.id();
    drop(work);
    let mut work = test.open(id);
    let ended = turn(&mut work, "go on").await;
    assert_eq!(summary_rows(&test, id).len(), 2);
    assert!(
        ended.notices("compaction")[0].contains("the last two compactions did not help"),
        "{ended:?}"
    );
    let cancel = CancellationToken::new();
    let by_hand = work.compact(None, &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(by_hand, Compacted::Not(_)), "{by_hand:?}");
    assert_eq!(summary_rows(&test, id).len(), 3);
}

#[tokio::test]
async fn a_broken_record_of_compactions_does_not_stop_the_turn() {
    let mut full = false;
    let mut script = reader(usize::MAX, |_: &ModelRequest| summary(1));
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        full |= asked.bytes > 48_000;
        if full { too_long() } else { script.reply(asked) }
    });
    fill(&test, 60, 100);
    let mut work = test.begin();
    test.store.write(|tx| tx.execute("DROP TABLE compactions", params![])).unwrap();
    let ended = turn(&mut work, "read it all").await;
    let reason = ended.failed_because().unwrap();
    assert!(reason.contains("compactions") && reason.contains("tokens are used by"), "{reason}");
    assert!(rounds(&test).len() > 20, "it went on as far as the window allows");
    let said = ended.notices("compaction");
    assert!(said.len() == 1 && said[0].contains("compactions"), "{said:?}");
    assert_eq!(summary_rows(&test, work.id()), []);
}

#[tokio::test]
async fn what_a_provider_finds_too_long_and_cannot_be_less_ends_the_turn_at_once() {
    for window in [None, Some(8_000)] {
        let test = scene::agent(window, |_: &ModelRequest| too_long());
        let mut work = test.begin();
        let wish = "many words that cannot be left out ".repeat(500);
        let ended = turn(&mut work, &wish).await;
        let reason = ended.failed_because().unwrap();
        assert!(reason.contains("maximum context length exceeded"), "{reason}");
        assert!(reason.contains("used by your messages"), "{reason}");
        assert!(reason.contains("--model") && reason.contains("a new session"), "{reason}");
        assert_eq!(test.model.requests(), 1, "it was asked again with the same");
    }
}

#[tokio::test]
async fn a_model_without_a_known_window_is_compacted_when_its_provider_says_so() {
    let (mut next, mut summaries) = (0, 0);
    let test = scene::agent(None, move |asked: &ModelRequest| {
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
    fill(&test, 60, 100);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    assert_eq!(ended.report.ending, TurnEnding::Over(Outcome::Answered, None), "{ended:?}");
    let made = compactions(&test, work.id());
    assert!((2..=6).contains(&made.len()), "{}", made.len());
    let because = |why: &str| {
        let is =
            |event: &&Event| matches!(event, Event::Compacted { why: told, .. } if *told == why);
        ended.events.iter().filter(is).count()
    };
    // What its provider found too long is not tried again.
    assert_eq!((because("too_long"), because("window")), (1, made.len() - 1));
    assert!(body(rounds(&test).last().unwrap()).contains(LEDGER));
    test.model.assert_no_violations();
}

#[tokio::test]
async fn a_provider_that_finds_everything_too_long_is_asked_thrice_at_most() {
    let (mut next, mut full) = (0, false);
    let test = scene::agent(None, move |asked: &ModelRequest| {
        if is_summary(asked) {
            return summary(1);
        }
        next += 1;
        full |= next > 20;
        if full { too_long() } else { reading(next - 1) }
    });
    fill(&test, 30, 100);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    let reason = ended.failed_because().unwrap();
    assert!(reason.contains("are used by"), "{reason}");
    assert!(compactions(&test, work.id()).len() <= 2);
    assert!(rounds(&test).len() <= 23, "{}", rounds(&test).len());
    // To resume it asks once, and does not begin to compact anew.
    let (id, before) = (work.id(), test.model.requests());
    drop(work);
    let again = resume(&mut test.open(id)).await;
    assert!(again.failed_because().is_some(), "{again:?}");
    assert!(test.model.requests() <= before + 2);
}

#[tokio::test]
async fn without_room_in_the_budget_there_is_no_summary_and_it_is_said() {
    let mut test = scene::agent(Some(12_000), reader(22, |_: &ModelRequest| summary(1)));
    // Rounds cost nothing, and the model for summaries more than there is.
    test.settings.budgets.turn = Limits { money: Some(10), tokens: None, calls: None };
    let mut dear = candidate(&test, "dear", None);
    dear.prices = Some(Prices { input: 1_000_000, cached: 0, cache_written: 0, output: 1_000_000 });
    test.settings.compaction.model = Some(Arc::new(dear));
    fill(&test, 40, 100);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    assert_eq!(ended.report.answer, "All read.");
    assert_eq!((compactions(&test, work.id()), summary_rows(&test, work.id())), (vec![], vec![]));
    let said = ended.notices("compaction");
    assert!(said.len() == 1 && said[0].contains("this turn's budget is spent"), "{said:?}");
}

#[tokio::test]
async fn the_cheap_steps_come_first_and_ask_no_model() {
    let mut next = 0;
    let test = scene::agent(Some(12_000), move |asked: &ModelRequest| {
        assert!(!is_summary(asked), "a summary was asked for");
        next += 1;
        if next > 16 { Reply::text("All read.") } else { reading_silently(next - 1) }
    });
    // Few large results: shortened they are a line each.
    fill(&test, 20, 5_000);
    let mut work = test.begin();
    let ended = turn(&mut work, "read it all").await;
    assert_eq!(ended.report.answer, "All read.", "{ended:?}");
    let made = compactions(&test, work.id());
    assert!(!made.is_empty() && made.iter().all(|made| made.summary.is_none()), "{made:?}");
    let last = body(rounds(&test).last().unwrap());
    assert!(last.contains("[Mainstay: shortened.") && last.contains("read it all"), "{last}");
    test.model.assert_no_violations();
}
