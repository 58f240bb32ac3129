//! Parked, decided by another process, and resumed.

use mainstay_agent::Verdict;
use mainstay_agent::approvals::requests::{Effort, Outcome, Standing, Which};
use mainstay_agent::policy::Class;
use mainstay_store::params;
use mainstay_testkit::model::Reply;
use serde_json::json;

use super::{on_both, one_write, writing};
use crate::fixture::{resume, turn};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

#[test]
fn a_request_names_the_exact_action_and_its_approval_runs_the_call_once() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let (id, parked) = (work.id(), turn(&mut work, "write").await);
        assert!(parked.is_parked());
        drop(work);
        let waiting = test.waiting();
        let request = &waiting.request;
        assert_eq!(parked.parked_on(), [request.id.to_string()]);
        assert_eq!((request.tool.as_str(), request.class), ("write_file", Class::Write));
        assert_eq!(request.arguments, json!({ "path": "a", "content": "x" }));
        assert!(request.action.ends_with("work/a"), "{request:?}");
        let reason = parked.parked_because().unwrap();
        assert!(reason.contains(request.id.as_str()), "{reason}");

        assert_eq!(test.file("a"), None, "it was done before anybody said yes");
        test.approve(&waiting);
        let mut work = test.open(id);
        let over = resume(&mut work).await;
        assert_eq!(over.report.answer, "done");
        assert_eq!(test.file("a").as_deref(), Some("x"));
        let all = test.requests(Which::All);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert!(all[0].used_at.is_some() && test.requests(Which::Waiting).is_empty());
        assert_eq!(test.model.requests(), 2);
    });
}

#[test]
fn a_yes_that_was_not_used_before_a_crash_still_holds() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let id = work.id();
        turn(&mut work, "write").await;
        drop(work);
        test.approve(&test.waiting());
        // Processes that take the session up and die, one after the other.
        for _ in 0..3 {
            drop(test.open(id));
        }
        assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
        assert_eq!(test.requests(Which::All).len(), 1);
    });
}

#[test]
fn a_denied_call_tells_the_model_why_and_the_turn_goes_on() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let verdict = Verdict::Deny { reason: Some("that file is mine".to_owned()) };
        test.decide(&test.waiting(), &verdict, Effort::Key);
        assert_eq!(resume(&mut work).await.report.answer, "done");
        assert_eq!(test.file("a"), None);
        let read = test.last_result();
        assert!(read.contains("said no") && read.contains("that file is mine"), "{read}");
    });
}

#[test]
fn an_expired_request_cannot_be_approved_and_the_turn_asks_anew() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let first = test.waiting();
        test.clock.pass(DAY + 1);
        let came = test.decide(&first, &Verdict::Once, Effort::Word);
        let Outcome::TooLate(late) = came else { panic!("{came:#?}") };
        assert_eq!(late.standing, Standing::Expired);

        let parked = resume(&mut work).await;
        let second = test.waiting();
        assert_ne!(second.request.id, first.request.id);
        assert_eq!(parked.parked_on(), [second.request.id.to_string()]);
        test.approve(&second);
        assert_eq!(resume(&mut work).await.report.answer, "done");
        assert_eq!(test.file("a").as_deref(), Some("x"));
    });
}

#[test]
fn a_yes_that_nobody_used_in_time_is_void() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let first = test.waiting();
        test.clock.pass(DAY - MINUTE);
        test.approve(&first);
        // The time for using it begins with the yes.
        test.clock.pass(DAY - MINUTE);
        assert!(matches!(test.requests(Which::All)[0].standing, Standing::Allowed(_)));
        test.clock.pass(2 * MINUTE);
        assert!(resume(&mut work).await.is_parked());
        assert_ne!(test.waiting().request.id, first.request.id);
        assert_eq!(test.file("a"), None);
    });
}

#[test]
fn an_approval_lets_no_other_call_through_not_even_the_same_again() {
    let twice = || vec![writing("a", "x"), writing("a", "x"), Reply::text("done")];
    on_both(twice, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let first = test.waiting();
        test.approve(&first);
        let parked = resume(&mut work).await;
        let second = test.waiting();
        assert!(parked.is_parked() && second.request.id != first.request.id);
        assert_eq!(second.request.action, first.request.action);
        test.approve(&second);
        assert_eq!(resume(&mut work).await.report.answer, "done");
    });
}

#[test]
fn an_approval_lets_no_other_arguments_through() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        let id = work.id();
        turn(&mut work, "write").await;
        drop(work);
        let first = test.waiting();
        test.approve(&first);
        // Somebody changes what the call would do, as a hook may.
        let store = &test.store;
        let changed = store
            .write(|tx| -> mainstay_store::Result<usize> {
                let body: String = tx.query_one(
                    "SELECT body FROM entries WHERE kind = 'assistant'",
                    params![],
                    |row| row.get(0),
                )?;
                let other = body.replace("\\\"x\\\"", "\\\"evil\\\"");
                assert_ne!(body, other);
                tx.execute("UPDATE entries SET body = ?1 WHERE kind = 'assistant'", params![other])
            })
            .unwrap();
        assert_eq!(changed, 1);
        let parked = resume(&mut test.open(id)).await;
        assert!(parked.is_parked());
        let second = test.waiting();
        assert_ne!(second.request.id, first.request.id);
        assert_eq!(second.request.arguments["content"], "evil");
        assert_eq!(test.file("a"), None);
    });
}

#[test]
fn an_approval_does_not_follow_a_link_that_was_moved() {
    let linked = || vec![writing("link/a", "x"), Reply::text("done")];
    on_both(linked, async |test| {
        for name in ["one", "two"] {
            std::fs::create_dir(test.directory.path().join(name)).unwrap();
        }
        let link = test.workspace().join("link");
        std::os::unix::fs::symlink("../one", &link).unwrap();
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let first = test.waiting();
        assert_eq!(first.request.class, Class::WriteOutside);
        test.approve(&first);
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../two", &link).unwrap();
        assert!(resume(&mut work).await.is_parked());
        assert_ne!(test.waiting().request.id, first.request.id);
        assert!(!test.directory.path().join("two/a").exists());
    });
}

#[test]
fn all_that_a_message_has_to_ask_is_asked_at_once() {
    let three = || {
        let call = |path: &str| json!({ "path": path, "content": "x" });
        let reply = Reply::call_of("write_file", call("a"))
            .call("write_file", call("b"))
            .call("write_file", call("c"));
        vec![reply, Reply::text("done")]
    };
    on_both(three, async |test| {
        let mut work = test.begin();
        let parked = turn(&mut work, "write").await;
        let waiting = test.requests(Which::Waiting);
        let ids: Vec<String> =
            waiting.iter().map(|approval| approval.request.id.to_string()).collect();
        assert_eq!(parked.parked_on(), ids);
        assert_eq!(ids.len(), 3);
        test.approve(&waiting[0]);
        test.decide(&waiting[1], &Verdict::Deny { reason: None }, Effort::Key);
        test.approve(&waiting[2]);
        assert_eq!(resume(&mut work).await.report.answer, "done");
        let there = ["a", "b", "c"].map(|name| test.file(name).is_some());
        assert_eq!(there, [true, false, true]);
        assert_eq!(test.requests(Which::All).len(), 3);
    });
}

#[test]
fn of_many_deciders_one_wins_and_the_others_are_told_who() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let waiting = test.waiting();
        let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let deciders: Vec<_> = (0..8)
                .map(|number| {
                    let waiting = &waiting;
                    scope.spawn(move || {
                        let verdict = match number % 2 {
                            0 => Verdict::Once,
                            _ => Verdict::Deny { reason: None },
                        };
                        test.decide(waiting, &verdict, Effort::Key)
                    })
                })
                .collect();
            deciders.into_iter().map(|decider| decider.join().unwrap()).collect()
        });
        let won: Vec<&Outcome> =
            outcomes.iter().filter(|came| matches!(came, Outcome::Done(_))).collect();
        assert_eq!(won.len(), 1, "{outcomes:#?}");
        let Outcome::Done(winner) = won[0] else { unreachable!() };
        for came in &outcomes {
            if let Outcome::TooLate(late) = came {
                assert_eq!(late.standing, winner.standing);
                assert!(
                    late.standing_text().ends_with("by another process"),
                    "{}",
                    late.standing_text()
                );
            }
        }
    });
}

#[test]
fn what_the_turn_went_on_without_cannot_be_decided_any_more() {
    let replies = || vec![writing("a", "x"), Reply::text("never mind")];
    on_both(replies, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let waiting = test.waiting();
        assert_eq!(turn(&mut work, "leave it").await.report.answer, "never mind");
        assert!(test.requests(Which::Waiting).is_empty());
        let came = test.decide(&waiting, &Verdict::Once, Effort::Key);
        let Outcome::TooLate(late) = came else { panic!("{came:#?}") };
        assert_eq!(late.standing, Standing::Lapsed);
        assert_eq!(test.file("a"), None);
    });
}

#[test]
fn after_three_approvals_of_a_kind_in_a_minute_a_yes_takes_more() {
    let five = || {
        let mut replies: Vec<Reply> =
            (0..5).map(|number| writing("a", &number.to_string())).collect();
        replies.push(Reply::text("done"));
        replies
    };
    on_both(five, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        for _ in 0..3 {
            assert_eq!(test.waiting().request.friction.because(), None);
            test.approve(&test.waiting());
            resume(&mut work).await;
        }
        let fourth = test.waiting();
        assert!(fourth.request.friction.because().unwrap().contains("3 of this kind"));
        let came = test.decide(&fourth, &Verdict::Once, Effort::Key);
        assert!(matches!(came, Outcome::NotSure(..)), "{came:#?}");
        assert_eq!(test.waiting().standing, Standing::Open);
        // A no is never made hard, and a yes that is meant goes through.
        let came = test.decide(&fourth, &Verdict::Once, Effort::Word);
        assert!(matches!(came, Outcome::Done(_)), "{came:#?}");
        resume(&mut work).await;
        test.clock.pass(MINUTE + 1);
        test.approve(&test.waiting());
        assert_eq!(resume(&mut work).await.report.answer, "done");
        assert_eq!(test.file("a").as_deref(), Some("4"));
    });
}

#[test]
fn nobody_decides_for_another_owner() {
    on_both(one_write, async |test| {
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let waiting = test.waiting();
        let store = &test.store;
        let other = store.write(|tx| tx.owner("somebody else")).unwrap();
        let typed = waiting.request.id.to_string();
        let found = store.read(|tx| mainstay_agent::approvals::requests::find(tx, other, &typed));
        assert!(found.unwrap_err().to_string().contains("request"));
        let none = store
            .read(|tx| mainstay_agent::approvals::requests::list(tx, other, Which::All))
            .unwrap();
        assert!(none.is_empty());
    });
}
