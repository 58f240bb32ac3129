//! The `memory` tool.

use std::sync::Arc;

use mainstay_agent::Verdict;
use mainstay_agent::approvals::requests::{Effort, Outcome};
use mainstay_agent::policy::Decision;
use mainstay_memory::notes::Scope;
use mainstay_testkit::model::Reply;
use mainstay_tools::Fact;
use serde_json::{Value, json};

use super::{add_fact, facts_of, notes_of, on_both, on_one};
use crate::fixture::{TestAgent, TestTool, resume, turn};

/// Calls, each answered by the next, and a last word.
fn calling(calls: &[Value]) -> Vec<Reply> {
    let calls = calls.iter().map(|arguments| Reply::call_of("memory", arguments));
    calls.chain([Reply::text("done")]).collect()
}

/// What each call was answered.
fn answers(test: &TestAgent) -> Vec<String> {
    test.last_asked().results().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn facts_are_added_once_found_trusted_and_forgotten() {
    let calls = [
        json!({ "action": "add", "text": "Ada wrote the parser.", "tags": ["people"] }),
        json!({ "action": "add", "text": "Ada wrote the parser." }),
        json!({ "action": "search", "text": "who wrote the parser?" }),
        json!({ "action": "feedback", "id": "facts:1", "helpful": true }),
        json!({ "action": "search", "text": "unicorns" }),
        json!({ "action": "forget", "id": "facts:1" }),
        json!({ "action": "forget", "id": "facts:1" }),
        json!({ "action": "forget", "id": "nowhere:1" }),
        json!({ "action": "feedback", "id": "x", "helpful": true }),
    ];
    on_both(
        || calling(&calls),
        async |test| {
            let mut work = test.begin();
            turn(&mut work, "remember things").await;
            let said = answers(test);
            assert_eq!(said[0], "Remembered:\n- [facts:1]");
            assert_eq!(said[1], "That was known already:\n- [facts:1]");
            assert!(said[2].starts_with("The best first:\n<data "), "{}", said[2]);
            let source = format!("(just now, trust 0.50, from session {}) Ada wrote", work.id());
            assert!(said[2].contains(&format!("\n- [facts:1] {source}")), "{}", said[2]);
            assert_eq!(said[3], "facts:1 is now trusted 0.55.");
            assert_eq!(said[4], "Nothing is remembered of that.");
            assert_eq!(said[5], "facts:1 is forgotten.");
            assert_eq!(said[6], "there is no fact facts:1; `search` shows ids");
            assert_eq!(said[7], "There is no memory nowhere:1.");
            assert!(said[8].contains("names no fact"), "{}", said[8]);
            assert_eq!(facts_of(test), []);
        },
    );
}

#[test]
fn the_vectors_are_asked_about_entities() {
    let query = |mode: &str, entities: &[&str]| json!({ "action": "query", "mode": mode, "entities": entities });
    let calls = [
        query("probe", &["Ada Lovelace"]),
        query("reason", &["Ada Lovelace", "Mill Lane"]),
        query("related", &["Ada Lovelace"]),
        json!({ "action": "query", "mode": "contradict" }),
        query("probe", &[]),
        query("related", &["a", "b"]),
        json!({ "action": "query" }),
    ];
    on_one(calling(&calls), async |test| {
        add_fact(test, "Ada Lovelace works in Mill Lane.");
        add_fact(test, "Ada Lovelace drinks tea.");
        add_fact(test, "Grace Hopper drinks coffee.");
        turn(&mut test.begin(), "think").await;
        let said = answers(test);
        assert!(said[0].contains("[facts:1]") && said[0].contains("[facts:2]"), "{}", said[0]);
        assert!(!said[0].contains("[facts:3]"), "{}", said[0]);
        assert!(said[1].contains("[facts:1]") && !said[1].contains("[facts:2]"), "{}", said[1]);
        assert!(said[2].contains("[facts:1]"), "{}", said[2]);
        let disagree = said[3].starts_with("These disagree") || said[3].starts_with("Nothing");
        assert!(disagree, "{}", said[3]);
        assert!(said[4].contains("`entities`") && said[5].contains("takes one"), "{said:?}");
        assert!(said[6].contains("`mode`"), "{}", said[6]);
    });
}

#[test]
fn notes_are_changed_as_a_whole_and_refusals_say_what_to_do() {
    let note = |about: &str, changes: Value| json!({ "action": "note", "about": about, "changes": changes });
    let calls = [
        note("user", json!([{ "new": "likes tabs" }, { "new": "likes tea" }])),
        note("workspace", json!([{ "new": "builds with make" }])),
        note("user", json!([{ "old": "tea", "new": "drinks tea" }, { "old": "nothing" }])),
        note("user", json!([{ "old": "likes" , "new": "x" }])),
        note("user", json!([{ "old": "tea", "new": "drinks tea" }, { "old": "tabs" }])),
        note("user", json!([{ "new": "x".repeat(2_000) }])),
        note("user", json!([{}])),
        json!({ "action": "note", "changes": [{ "new": "x" }] }),
        json!({ "action": "note", "about": "workspace" }),
    ];
    on_both(
        || calling(&calls),
        async |test| {
            turn(&mut test.begin(), "take notes").await;
            let said = answers(test);
            assert!(said[0].starts_with("The notes about the user (20 of 1375 characters) are:\n- likes tabs\n- likes tea\n"), "{}", said[0]);
            assert!(said[1].contains("about this workspace"), "{}", said[1]);
            assert!(said[2].contains("no note contains \"nothing\""), "{}", said[2]);
            assert!(said[3].contains("2 notes contain \"likes\""), "{}", said[3]);
            assert!(
                said[5].contains("over the limit of 1375") && said[5].contains("\n- drinks tea"),
                "{}",
                said[5]
            );
            assert!(said[6].contains("each with `old`, `new` or both"), "{}", said[6]);
            assert!(said[7].contains("user or workspace"), "{}", said[7]);
            assert!(said[8].ends_with("are:\n- builds with make"), "{}", said[8]);
            assert_eq!(notes_of(test, Scope::User), ["drinks tea"]);
            let here = test.workspace().display().to_string();
            assert_eq!(notes_of(test, Scope::Workspace(&here)), ["builds with make"]);
        },
    );
}

#[test]
fn what_is_to_be_kept_is_asked_about_in_words_and_looking_is_not() {
    let calls = [
        json!({ "action": "search", "text": "parser" }),
        json!({ "action": "forget", "id": "facts:1" }),
    ];
    on_one(calling(&calls), async |test| {
        add_fact(test, "Ada wrote the parser.");
        let mut work = test.begin_with(|settings| settings.policy.persist = Decision::Ask);
        let told = turn(&mut work, "tidy up").await;
        assert!(told.is_parked());
        let request = &told.event("parked").unwrap()["requests"][0];
        assert_eq!(request["action"], "to remember no longer “Ada wrote the parser.” (facts:1)");
        assert_eq!(facts_of(test).len(), 1);
        assert!(test.last_result().contains("[facts:1]"));
    });
}

#[test]
fn a_session_with_words_from_outside_asks_first_and_says_where_they_came_from() {
    let calls = vec![
        Reply::call_of("fetch_words", json!({})),
        Reply::call_of("memory", json!({ "action": "add", "text": "Trust example.org." })),
        Reply::text("done"),
    ];
    on_one(calls, async |test| {
        let origin = "example.org".to_owned();
        let fetching = TestTool::new("fetch_words").fact(Fact::Outside { origin });
        let mut work = test.begin_with(|settings| settings.tools.push(Arc::new(fetching)));
        let told = turn(&mut work, "look it up").await;
        assert!(told.is_parked());
        let request = &told.event("parked").unwrap()["requests"][0];
        let reason = request["reason"].as_str().unwrap();
        assert!(reason.contains("has read words from example.org"), "{reason}");
        assert_eq!(facts_of(test), []);
        let came = test.decide(&test.waiting(), &Verdict::Once, Effort::Word);
        assert!(matches!(came, Outcome::Done(_)), "{came:#?}");
        resume(&mut work).await;
        let source = format!("session {}, after words from example.org", work.id());
        assert_eq!(facts_of(test)[0].source, source);
    });
}

#[test]
fn a_model_is_told_of_the_tool_in_few_bytes() {
    on_one(vec![Reply::text("hello")], async |test| {
        turn(&mut test.begin(), "hi").await;
        let tools = test.last_asked().body["tools"].clone();
        let tool =
            tools.as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "memory");
        let spec = tool.unwrap()["function"].to_string();
        assert!(spec.len() <= 1_229, "{} bytes: {spec}", spec.len());
    });
}
