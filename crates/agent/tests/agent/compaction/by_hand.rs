//! Compaction by hand, and taking it back.

use mainstay_agent::{Compacted, Event};
use mainstay_journal::transcript;
use mainstay_message::redactor::Origin;
use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use tokio_util::sync::CancellationToken;

use super::scene::{
    self, LEDGER, body, compactions, fill, is_summary, reader, reading, rounds, summary,
};
use crate::fixture::{column, input, turn};

#[tokio::test]
async fn a_compaction_can_be_asked_for_with_a_focus_and_taken_back() {
    let (mut round, mut summaries) = (0, 0);
    let test = scene::agent(None, move |asked: &ModelRequest| {
        if is_summary(asked) {
            summaries += 1;
            return summary(summaries);
        }
        round += 1;
        match round {
            1..=10 => reading(round - 1),
            _ => Reply::text(format!("answer {round}")),
        }
    });
    fill(&test, 20, 100);
    let mut work = test.begin();
    turn(&mut work, "read it all").await;
    let id = work.id();
    let before = transcript(&test.entries(id));
    let cancel = CancellationToken::new();
    let mut told = Vec::new();
    let focus = Some("the colours".to_owned());
    let compacted = work.compact(focus, &mut |event| told.push(event), &cancel).await.unwrap();
    let Compacted::Made { number: 1, before: was, after } = compacted else {
        panic!("{compacted:?}")
    };
    assert!(after * 5 <= was * 4, "{was} {after}");
    assert!(matches!(told[..], [Event::Compacting { .. }, Event::Compacted { .. }]), "{told:?}");
    let asked = test.model.asked().pop().unwrap();
    assert!(is_summary(&asked) && asked.tool_names().is_empty());
    let question = asked.last_user_text();
    let (shown, wishes) = question.rsplit_once("</data ").unwrap();
    assert!(shown.starts_with("<data ") && shown.contains("read it all"), "{shown}");
    assert!(wishes.contains("the colours"), "{wishes}");
    assert_eq!(compactions(&test, id)[0].focus.as_deref(), Some("the colours"));

    turn(&mut work, "go on").await;
    let after = body(rounds(&test).last().unwrap());
    assert!(after.contains("SUMMARY 1") && after.contains(LEDGER) && after.contains("go on"));
    assert!(!after.contains("Now comes file 1,"), "{after}");

    // Another process takes it back.
    drop(work);
    let mut work = test.open(id);
    let restored = work.uncompact().unwrap().unwrap();
    assert_eq!(restored.number, 1);
    let shown = transcript(&test.entries(id));
    assert_eq!(shown[..before.len()], before[..]);
    turn(&mut work, "and on").await;
    let after = body(rounds(&test).last().unwrap());
    assert!(after.contains("Now comes file 1,") && !after.contains("SUMMARY 1"), "{after}");
    assert_eq!(work.uncompact().unwrap(), None);

    // A number is not used again, and an earlier record is brought up to date.
    for number in [2, 3] {
        let compacted = work.compact(None, &mut |_| {}, &cancel).await.unwrap();
        assert!(
            matches!(compacted, Compacted::Made { number: made, .. } if made == number)
                || matches!(compacted, Compacted::Not(_)),
            "{compacted:?}"
        );
    }
    test.model.assert_no_violations();
}

#[tokio::test]
async fn secrets_are_taken_out_of_a_summary_and_of_its_focus() {
    let secret = "sk-very-secret-0123456789";
    let test = scene::agent(
        None,
        reader(10, move |_: &ModelRequest| {
            Reply::text(format!("The key is {secret}, remember it."))
        }),
    );
    test.settings.redactor.add("the key", secret, Origin::Configured);
    fill(&test, 20, 100);
    let mut work = test.begin();
    turn(&mut work, "read it all").await;
    let cancel = CancellationToken::new();
    let focus = Some(format!("what {secret} opens"));
    let made = work.compact(focus, &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(made, Compacted::Made { .. }), "{made:?}");
    let compaction = format!("{:?}", compactions(&test, work.id()));
    assert!(compaction.contains("[redacted: the key]") && !compaction.contains(secret));
    assert!(!body(&test.model.asked().pop().unwrap()).contains(secret));
}

#[tokio::test]
async fn nothing_said_is_nothing_to_compact() {
    let test = scene::agent(None, |_: &ModelRequest| Reply::text("hello"));
    let mut work = test.begin();
    let cancel = CancellationToken::new();
    let compacted = work.compact(None, &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(compacted, Compacted::Not(_)), "{compacted:?}");
    turn(&mut work, "hello").await;
    let compacted = work.compact(None, &mut |_| {}, &cancel).await.unwrap();
    assert!(matches!(compacted, Compacted::Not(_)), "{compacted:?}");
    assert_eq!(test.model.requests(), 1);
}

#[tokio::test]
async fn one_that_is_stopped_changes_nothing_and_leaves_nothing_open() {
    let gate = Gate::new();
    let test = scene::agent(None, reader(10, move |_: &ModelRequest| summary(1).held_by(&gate)));
    fill(&test, 20, 100);
    let mut work = test.begin();
    turn(&mut work, "read it all").await;
    let before = test.entries(work.id()).len();
    let cancel = CancellationToken::new();
    let mut observer = |event: Event| {
        if matches!(event, Event::Compacting { .. }) {
            cancel.cancel();
        }
    };
    let stopped = work.compact(None, &mut observer, &cancel).await.unwrap();
    assert_eq!(stopped, Compacted::Stopped);
    assert_eq!(test.entries(work.id()).len(), before);
    let open = column(&test.store, "SELECT id FROM model_calls WHERE state = 'open'");
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn a_running_turn_can_be_told_to_compact() {
    let test = scene::agent(None, reader(12, |_: &ModelRequest| summary(1)));
    fill(&test, 20, 100);
    let mut work = test.begin();
    let steering = work.steering();
    let (mut results, mut made) = (0, None);
    let mut observer = |event: Event| match event {
        Event::ToolResult { .. } => {
            results += 1;
            if results == 8 {
                steering.compact(Some("the colours".to_owned()));
            }
        }
        Event::Compacted { why, .. } => made = Some(why),
        _ => {}
    };
    let cancel = CancellationToken::new();
    let ended = work.turn(&input("read it all"), &mut observer, &cancel).await.unwrap();
    assert_eq!((ended.answer.as_str(), made), ("All read.", Some("manual")));
    assert_eq!(compactions(&test, work.id()).len(), 1);
    test.model.assert_no_violations();
}

#[tokio::test]
async fn a_fork_of_a_compacted_session_is_compacted_and_goes_its_own_way() {
    let test = scene::agent(None, reader(10, |_: &ModelRequest| summary(1)));
    fill(&test, 20, 100);
    let mut work = test.begin();
    turn(&mut work, "read it all").await;
    let cancel = CancellationToken::new();
    work.compact(None, &mut |_| {}, &cancel).await.unwrap();
    let fork = mainstay_agent::session::manage::fork(&test.store, work.id(), None).unwrap();
    let mut other = test.open(fork);
    turn(&mut other, "go on").await;
    assert!(body(rounds(&test).last().unwrap()).contains("SUMMARY 1"));
    assert_eq!(other.uncompact().unwrap().unwrap().number, 1);
    turn(&mut work, "go on").await;
    assert!(body(rounds(&test).last().unwrap()).contains("SUMMARY 1"));
    test.model.assert_no_violations();
}
