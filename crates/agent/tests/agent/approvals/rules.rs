//! What "always" remembers, and how it is forgotten.

use mainstay_agent::Verdict;
use mainstay_agent::approvals::requests::{DecideOutcome, Effort, RequestFilter};
use mainstay_agent::approvals::rules;
use mainstay_testkit::model::Reply;

use super::{on_both, writing};
use crate::fixture::{DATE, resume, turn};

#[test]
fn always_holds_for_a_directory_until_it_is_forgotten() {
    let replies = || {
        vec![
            writing("../near/a", "1"),
            writing("../near/b", "2"),
            writing("../near/sub/c", "3"),
            writing("../far/d", "4"),
            Reply::text("done"),
            writing("../near/e", "5"),
        ]
    };
    on_both(replies, async |test| {
        let outside = |name: &str| test.directory.path().join(name);
        for name in ["near", "far"] {
            std::fs::create_dir(outside(name)).unwrap();
        }
        let mut work = test.begin();
        turn(&mut work, "write").await;
        let first = test.waiting();
        let always = first.request.always.as_deref().unwrap();
        assert!(always.starts_with("changes in ") && always.ends_with("/near"), "{always}");
        test.decide(&first, &Verdict::Always, Effort::Key);
        // The next two are covered, the last is not.
        assert!(resume(&mut work).await.is_parked());
        assert!(outside("near/a").exists() && outside("near/b").exists());
        assert!(outside("near/sub/c").exists() && !outside("far/d").exists());
        assert_eq!(test.requests(RequestFilter::All).len(), 2);
        test.approve(&test.waiting());
        assert_eq!(resume(&mut work).await.report.answer, "done");

        // Forgotten by another process, it no longer holds for this one.
        let (store, owner) = (&test.store, test.owner);
        let rules = store.read(|tx| rules::remembered(tx, owner)).unwrap();
        assert_eq!(rules.len(), 1, "{rules:#?}");
        let typed = rules[0].id.to_string();
        store.write(|tx| rules::forget(tx, owner, &typed).map(drop)).unwrap();
        assert!(store.read(|tx| rules::remembered(tx, owner)).unwrap().is_empty());
        assert!(turn(&mut work, "once more").await.is_parked());
        assert!(!outside("near/e").exists());
    });
}

#[test]
fn always_holds_in_its_workspace_and_for_its_owner() {
    let replies =
        || vec![writing("../near/a", "1"), Reply::text("done"), writing("../near/a", "2")];
    on_both(replies, async |test| {
        std::fs::create_dir(test.directory.path().join("near")).unwrap();
        let mut work = test.begin();
        turn(&mut work, "write").await;
        test.decide(&test.waiting(), &Verdict::Always, Effort::Key);
        assert_eq!(resume(&mut work).await.report.answer, "done");
        let other = test.directory.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let mut elsewhere = test.agent().begin(&other, DATE).unwrap();
        assert!(turn(&mut elsewhere, "write").await.is_parked());
        let store = &test.store;
        let stranger = store.write(|tx| tx.owner("somebody else")).unwrap();
        let rules =
            store.read(|tx| rules::rules_of(tx, stranger, &test.workspace(), work.id(), None));
        assert!(rules.unwrap().is_empty());
    });
}

#[test]
fn always_twice_is_remembered_once() {
    let replies = || {
        let both = |path: &str| serde_json::json!({ "path": path, "content": "x" });
        let reply =
            Reply::call_of("write_file", both("../near/a")).call("write_file", both("../near/b"));
        vec![reply, Reply::text("done")]
    };
    on_both(replies, async |test| {
        std::fs::create_dir(test.directory.path().join("near")).unwrap();
        let mut work = test.begin();
        turn(&mut work, "write").await;
        for waiting in test.requests(RequestFilter::Waiting) {
            let came = test.decide(&waiting, &Verdict::Always, Effort::Key);
            assert!(matches!(came, DecideOutcome::Done(_)), "{came:#?}");
        }
        let (store, owner) = (&test.store, test.owner);
        assert_eq!(store.read(|tx| rules::remembered(tx, owner)).unwrap().len(), 1);
        assert_eq!(resume(&mut work).await.report.answer, "done");
    });
}
