//! What is written together, what is told after it was written, and what is left when a write fails.

use std::sync::{Arc, Mutex};

use mainstay_agent::{Error, Event};
use mainstay_journal::turn::State;
use mainstay_journal::{SessionId, session};
use mainstay_store::params;
use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_tools::{Outcome, Replay, Settled};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Engine, TestAgent, TestTool, attempt, call_states, input, resume, turn};

/// Calls `first` and `second` in one message, then answers.
fn acting(asked: &ModelRequest) -> Reply {
    match asked.results().len() {
        0 => Reply::call_of("first", json!({})).call("second", json!({})),
        _ => Reply::text("done"),
    }
}

#[tokio::test]
async fn before_a_call_has_its_effect_its_intent_and_the_results_before_it_are_durable() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let (store, seen) = (test.store.clone(), seen.clone());
        let look = move || seen.lock().unwrap().push(call_states(&store).join(" "));
        test.tool(TestTool::new(name).during(look));
    }
    turn(&mut test.begin(), "act").await;
    assert_eq!(*seen.lock().unwrap(), ["started intended", "done started"]);
    assert_eq!(call_states(&test.store), ["done", "done"]);
}

/// Checks an event against the record as another process sees it.
fn is_recorded(test: &TestAgent, id: SessionId, event: &Event, told: &[Event]) -> bool {
    let count = |kind: &str| test.kinds(id).iter().filter(|other| **other == kind).count();
    let told_of = |is: fn(&Event) -> bool| told.iter().filter(|event| is(event)).count() + 1;
    match event {
        Event::Session { .. } | Event::Turn { .. } => count("user") == 1,
        Event::Answer { .. } => {
            count("assistant") >= told_of(|event| matches!(event, Event::Answer { .. }))
        }
        Event::ToolCall { .. } => !call_states(&test.store).is_empty(),
        Event::ToolResult { .. } => {
            count("result") >= told_of(|event| matches!(event, Event::ToolResult { .. }))
        }
        Event::Steered { .. } => count("user") == 2,
        Event::End { .. } => test.last_turn(id).state == State::Ended && count("end") == 1,
        _ => true,
    }
}

#[tokio::test]
async fn what_is_durable_is_told_after_it_was_written_and_in_its_order() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    for name in ["first", "second"] {
        test.tool(TestTool::new(name));
    }
    let mut work = test.begin();
    let (id, steering) = (work.id(), work.steering());
    let mut told: Vec<Event> = Vec::new();
    let mut observer = |event: Event| {
        assert!(is_recorded(&test, id, &event, &told), "told before it was written: {event:?}");
        if matches!(event, Event::ToolCall { .. }) && told.len() < 4 {
            steering.push(input("and wash up").content);
        }
        told.push(event);
    };
    let cancel = CancellationToken::new();
    let over = work.turn(&input("act"), &mut observer, &cancel).await.unwrap();
    assert_eq!(over.answer, "done");
    let kind = |event: &Event| {
        let event = serde_json::to_value(event).unwrap();
        event["type"].as_str().unwrap().to_owned()
    };
    let mut kinds: Vec<String> = told.iter().map(kind).collect();
    kinds.retain(|kind| kind != "text");
    assert_eq!(
        kinds.join(" "),
        "session turn answer tool_call tool_result tool_call tool_result steered answer end"
    );
}

/// Makes a write fail while `when` holds, on SQLite.
fn break_writes(test: &TestAgent, on: &str, when: &str) {
    let sql = format!(
        "CREATE TRIGGER broken BEFORE {on} WHEN {when} BEGIN SELECT RAISE(ABORT, 'broken'); END"
    );
    test.store.write(|tx| tx.execute(&sql, params![])).unwrap();
}

fn mend_writes(test: &TestAgent) {
    test.store.write(|tx| tx.execute("DROP TRIGGER broken", params![])).unwrap();
}

/// What there was when a write failed.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    /// The kinds of the entries.
    entries: String,
    /// The states of the calls.
    calls: String,
    /// The types of the events that tell of something durable.
    told: String,
    /// How often the tools had run.
    runs: usize,
}

fn left(entries: &str, calls: &str, told: &str, runs: usize) -> Left {
    Left { entries: entries.to_owned(), calls: calls.to_owned(), told: told.to_owned(), runs }
}

/// A turn in which one write fails, and which another process ends when writes are possible again.
async fn failed_at(on: &str, when: &str) -> Left {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let kept = |name| {
        let settled = Settled::Done(Outcome::said("done"));
        TestTool::new(name).replay(Replay::Kept).settled(settled)
    };
    let tools = ["first", "second"].map(|name| test.tool(kept(name)));
    let runs = || tools.iter().map(|tool| tool.runs()).sum();
    let mut work = test.begin();
    let id = work.id();
    break_writes(&test, on, when);
    let mut told = Vec::new();
    let mut observer = |event: Event| match event {
        Event::Answer { .. } => told.push("answer"),
        Event::ToolResult { .. } => told.push("result"),
        Event::End { .. } => told.push("end"),
        _ => {}
    };
    let cancel = CancellationToken::new();
    let error = work.turn(&input("act"), &mut observer, &cancel).await.unwrap_err();
    assert!(matches!(error, Error::Journal(_)) && error.to_string().contains("broken"), "{error}");
    let calls = call_states(&test.store).join(" ");
    let left = left(&test.kinds(id).join(" "), &calls, &told.join(" "), runs());
    mend_writes(&test);
    drop(work);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    let whole = ["user", "assistant", "result", "result", "assistant", "end"];
    assert_eq!(test.kinds(id), whole);
    assert_eq!(runs(), 2, "each ran once");
    test.model.assert_no_violations();
    left
}

#[tokio::test]
async fn without_its_message_no_call_is_written_or_run() {
    let failed = failed_at("INSERT ON entries", "NEW.kind = 'assistant'").await;
    assert_eq!(failed, left("user", "", "", 0));
}

#[tokio::test]
async fn without_all_its_calls_a_message_is_not_written_and_none_is_run() {
    let failed = failed_at("INSERT ON calls", "NEW.position = 1").await;
    assert_eq!(failed, left("user", "", "", 0));
}

#[tokio::test]
async fn without_the_next_question_reserved_no_call_is_started() {
    let failed = failed_at("INSERT ON model_calls", "EXISTS (SELECT 1 FROM calls)").await;
    assert_eq!(failed, left("user", "", "", 0));
}

#[tokio::test]
async fn without_the_result_before_it_no_call_is_started() {
    let failed = failed_at("INSERT ON entries", "NEW.kind = 'result'").await;
    assert_eq!(failed, left("user assistant", "started intended", "answer", 1));
}

#[tokio::test]
async fn a_result_is_written_with_the_end_of_its_call() {
    let failed = failed_at("UPDATE ON calls", "NEW.state = 'done'").await;
    assert_eq!(failed, left("user assistant", "started intended", "answer", 1));
}

#[tokio::test]
async fn a_result_is_written_with_the_start_of_the_call_after_it() {
    let second = "NEW.position = 1 AND NEW.state = 'started'";
    let failed = failed_at("UPDATE ON calls", second).await;
    assert_eq!(failed, left("user assistant", "started intended", "answer", 1));
}

/// Nothing of the last message is there. The last result may have been written while the model was asked.
fn nothing_of_the_answer(failed: &Left) {
    let without = left("user assistant result", "done started", "answer result", 2);
    let with = left("user assistant result result", "done done", "answer result result", 2);
    assert!(*failed == without || *failed == with, "{failed:?}");
}

#[tokio::test]
async fn without_its_answer_a_turn_does_not_end() {
    nothing_of_the_answer(
        &failed_at("INSERT ON entries", "NEW.kind = 'assistant' AND NEW.seq > 3").await,
    );
}

#[tokio::test]
async fn without_its_end_in_the_record_an_answer_is_not_written() {
    nothing_of_the_answer(&failed_at("INSERT ON entries", "NEW.kind = 'end'").await);
}

#[tokio::test]
async fn without_the_end_of_its_turn_an_answer_is_not_written() {
    nothing_of_the_answer(&failed_at("UPDATE ON turns", "NEW.state = 'ended'").await);
}

#[tokio::test]
async fn a_turn_whose_first_write_fails_leaves_no_session_and_no_question() {
    let mut test = TestAgent::replying([Reply::text("hello")]);
    test.settings.memory.recall = false;
    break_writes(&test, "INSERT ON entries", "NEW.kind = 'user'");
    let mut work = test.begin();
    let error = attempt(&mut work, &input("hello")).await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
    let sessions = test.store.read(|tx| session::list(tx, test.owner, 10)).unwrap();
    assert!(sessions.is_empty(), "{sessions:?}");
    assert_eq!(test.model.requests(), 0);
    // The same session begins as soon as it can.
    mend_writes(&test);
    assert_eq!(turn(&mut work, "hello").await.report.answer, "hello");
    assert_eq!(test.kinds(work.id()), ["user", "assistant", "end"]);
}
