//! Somebody at hand, who is asked while the turn goes on.

use std::time::Duration;

use mainstay_agent::Verdict;
use mainstay_agent::approvals::requests::{Standing, Which};
use mainstay_testkit::model::Reply;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{on_both, one_write, writing};
use crate::fixture::{Person, Says, input, resume, turn};

#[test]
fn a_yes_at_hand_is_a_row_before_it_is_asked_and_a_decision_before_it_is_done() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let person = Person::new(test, Says::Verdict(Some(Verdict::Once)));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "write").await.report.answer, "done");
        assert_eq!(person.seen(), ["waiting"]);
        let all = test.requests(Which::All);
        assert!(matches!(all[0].standing, Standing::Allowed(_)) && all[0].used_at.is_some());
        assert_eq!(test.file("a").as_deref(), Some("x"));
    });
}

#[test]
fn a_no_at_hand_tells_the_model() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let verdict = Verdict::Deny { reason: Some("not today".to_owned()) };
        work.ask_here(Person::new(test, Says::Verdict(Some(verdict))));
        assert_eq!(turn(&mut work, "write").await.report.answer, "done");
        assert!(test.last_result().contains("not today"));
        assert_eq!(test.file("a"), None);
    });
}

#[test]
fn somebody_who_does_not_answer_leaves_the_turn_parked() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        work.ask_here(Person::new(test, Says::Verdict(None)));
        assert!(turn(&mut work, "write").await.is_parked());
        test.approve(&test.waiting());
        assert_eq!(resume(&mut work).await.report.answer, "done");
    });
}

#[test]
fn what_another_process_decides_ends_the_prompt() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        work.ask_here(Person::new(test, Says::Never(Verdict::Once)));
        let over = tokio::time::timeout(Duration::from_secs(20), turn(&mut work, "write")).await;
        assert_eq!(over.unwrap().report.answer, "done");
        assert_eq!(test.file("a").as_deref(), Some("x"));
    });
}

#[test]
fn who_answers_after_another_process_is_told_so_and_not_heard() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let person = Person::new(test, Says::TooLate(Verdict::Deny { reason: None }));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "write").await.report.answer, "done");
        assert_eq!(test.file("a"), None, "the later yes was heard");
        assert_eq!(person.seen(), ["waiting", "it was denied already, by another process"]);
    });
}

#[test]
fn to_cancel_takes_the_prompt_away_and_the_request_with_it() {
    on_both(
        || vec![writing("a", "x")],
        async |test| {
            let mut work = test.begin();
            work.ask_here(Person::new(test, Says::Nothing));
            let cancel = CancellationToken::new();
            let (input, mut observer) = (input("write"), |_| {});
            let working = work.turn(&input, &mut observer, &cancel);
            let stopping = async {
                while test.requests(Which::Waiting).is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                cancel.cancel();
            };
            let (ended, ()) = futures_util::future::join(working, stopping).await;
            assert_eq!(format!("{:?}", ended.unwrap().ending), "Over(Cancelled, None)");
            assert!(test.requests(Which::Waiting).is_empty());
            assert_eq!(test.file("a"), None);
        },
    );
}

#[test]
fn a_question_is_answered_at_hand() {
    let replies = || {
        let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
        vec![Reply::call_of("ask_user", question), Reply::text("done")]
    };
    on_both(replies, async |test| {
        let mut work = test.begin();
        let person = Person::new(test, Says::Answer("2"));
        work.ask_here(person.clone());
        assert_eq!(turn(&mut work, "paint").await.report.answer, "done");
        assert_eq!(person.seen(), ["Which colour?"]);
        assert_eq!(test.last_result(), "blue");
    });
}
