//! A turn that was left in any state is taken up where it was, and nothing runs twice that must not.

use std::sync::Arc;

use mainstay_agent::approvals::requests::RequestFilter;
use mainstay_agent::policy::Decision;
use mainstay_agent::{Event, Opened, TurnEnding};
use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, State};
use mainstay_journal::{SessionId, call};
use mainstay_message::AssistantPart;
use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_tools::{Action, Outcome, Replay, Settled};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    Engine, TestAgent, TestTool, attempt, call_states, column, die_when, input, input_named,
    resume, turn, until,
};

/// Calls `act` until it has a result, then answers: a process that dies may ask again.
fn acting(asked: &ModelRequest) -> Reply {
    match asked.results().len() {
        0 => Reply::call_of("act", json!({})),
        _ => Reply::text("done"),
    }
}

/// How often a model was asked and nobody knows what came of it.
fn unknown_questions(test: &TestAgent) -> usize {
    column(&test.store, "SELECT model FROM model_calls WHERE state = 'unknown'").len()
}

/// A process that died in the middle of a call.
async fn died_in_call(tool: TestTool) -> (TestAgent, Arc<TestTool>, SessionId) {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(tool.hanging());
    let id = die_when(tool.begun(), test.begin(), &input("act")).await;
    assert_eq!(call_states(&test.store), ["started"]);
    (test, tool, id)
}

fn done(text: &str) -> Settled {
    Settled::Done(Outcome::said(text))
}

fn nobody_knows() -> Settled {
    Settled::Unknown(String::new())
}

/// A call of this class was started, and its tool finds this out: what the engine does with it when the
/// turn goes on, and what the model reads.
async fn resumed(replay: Replay, settled: Settled, steps: &[&str], result: &str) {
    let tool = TestTool::new("act").replay(replay).settled(settled);
    let (test, tool, id) = died_in_call(tool).await;
    let over = resume(&mut test.open(id)).await;
    assert_eq!(over.report.answer, "done");
    assert_eq!(tool.steps(), steps);
    let results = test.results(id);
    assert!(results.len() == 1 && results[0].contains(result), "{results:?}");
    let in_doubt = results[0].contains("outcome unknown");
    assert_eq!(over.notices("in_doubt").len(), usize::from(in_doubt), "{over:?}");
    assert_eq!(call_states(&test.store), ["done"]);
    assert_eq!(test.model.requests(), 2, "the question about its result is asked once");
    test.model.assert_no_violations();
}

#[tokio::test]
async fn a_started_call_that_changes_nothing_is_run_again() {
    resumed(Replay::Pure, nobody_knows(), &["plan 1", "run 1", "run 1"], "done").await;
}

#[tokio::test]
async fn a_started_call_that_may_be_repeated_is_run_again_with_the_plan_it_had() {
    resumed(Replay::Idempotent, nobody_knows(), &["plan 1", "run 1", "run 1"], "done").await;
}

#[tokio::test]
async fn a_started_call_that_the_keeper_knows_is_collected_and_not_run_again() {
    resumed(Replay::Kept, done("kept"), &["plan 1", "run 1", "settle 1"], "kept").await;
}

#[tokio::test]
async fn a_started_call_that_never_began_is_planned_and_run_anew() {
    let steps = ["plan 1", "run 1", "settle 1", "plan 2", "run 2"];
    resumed(Replay::Kept, Settled::NotStarted, &steps, "done").await;
}

#[tokio::test]
async fn a_started_call_that_the_keeper_lost_is_in_doubt_and_not_run_again() {
    let steps = ["plan 1", "run 1", "settle 1"];
    resumed(Replay::Kept, nobody_knows(), &steps, "[Mainstay: outcome unknown.").await;
}

#[tokio::test]
async fn a_started_call_whose_effect_is_found_is_told_and_not_run_again() {
    resumed(Replay::Unknown, done("found"), &["plan 1", "run 1", "settle 1"], "found").await;
}

#[tokio::test]
async fn a_started_call_that_nobody_can_tell_of_is_in_doubt_with_what_is_known() {
    let known = Settled::Unknown("Its file is there.".to_owned());
    resumed(Replay::Unknown, known, &["plan 1", "run 1", "settle 1"], "Its file is there.").await;
}

/// The same where the user says something new instead: the call is never run again.
async fn set_aside(replay: Replay, settled: Settled, result: &str) {
    let tool = TestTool::new("act").replay(replay).settled(settled);
    let (test, tool, id) = died_in_call(tool).await;
    let over = turn(&mut test.open(id), "something else").await;
    assert_eq!(over.report.answer, "done");
    assert_eq!(tool.runs(), 1);
    let results = test.results(id);
    assert!(results.len() == 1 && results[0].contains(result), "{results:?}");
    assert_eq!(over.notices("interrupted").len(), 1, "{over:?}");
    let kinds = ["user", "assistant", "result", "end", "user", "assistant", "end"];
    assert_eq!(test.kinds(id), kinds);
    test.model.assert_no_violations();
}

#[tokio::test]
async fn something_new_leaves_a_started_look_undone() {
    set_aside(Replay::Pure, nobody_knows(), "[Mainstay: not run: something new was asked").await;
}

#[tokio::test]
async fn something_new_leaves_a_call_undone_that_never_began() {
    set_aside(Replay::Kept, Settled::NotStarted, "[Mainstay: not run: something new").await;
}

#[tokio::test]
async fn something_new_still_collects_what_a_started_call_brought() {
    set_aside(Replay::Kept, done("kept"), "kept").await;
}

#[tokio::test]
async fn something_new_leaves_a_started_call_in_doubt_that_could_be_repeated() {
    set_aside(Replay::Idempotent, nobody_knows(), "[Mainstay: outcome unknown.").await;
}

#[tokio::test]
async fn something_new_leaves_a_started_call_in_doubt_that_nobody_can_tell_of() {
    set_aside(Replay::Unknown, nobody_knows(), "[Mainstay: outcome unknown.").await;
}

#[tokio::test]
async fn calls_that_were_only_intended_run_once_after_the_one_that_was_started() {
    let script = |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("first", json!({})).call("second", json!({})),
        _ => Reply::text("done"),
    };
    let mut test = TestAgent::on(Engine::Sqlite, script);
    let kept = TestTool::new("first").replay(Replay::Kept).settled(done("kept"));
    let first = test.tool(kept.hanging());
    let second = test.tool(TestTool::new("second").replay(Replay::Unknown));
    let id = die_when(first.begun(), test.begin(), &input("act")).await;
    assert_eq!(call_states(&test.store), ["started", "intended"]);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!(first.steps(), ["plan 1", "run 1", "settle 1"]);
    assert_eq!(second.steps(), ["plan 1", "run 1"]);
    assert_eq!(test.results(id), ["kept", "done"]);
}

#[tokio::test]
async fn what_a_process_left_is_taken_up_on_both_engines() {
    for engine in Engine::BOTH {
        println!("on {engine:?}");
        let mut test = TestAgent::on(engine, |asked: &ModelRequest| match asked.results().len() {
            0 => Reply::call_of("keep", json!({})).call("send", json!({})).call("ask", json!({})),
            _ => Reply::text("done"),
        });
        let kept = TestTool::new("keep").replay(Replay::Kept).settled(done("kept"));
        let reach = Action::Network(vec!["example.org".to_owned()]);
        let tools = [
            test.tool(kept.hanging()),
            test.tool(TestTool::new("send").replay(Replay::Unknown)),
            test.tool(TestTool::new("ask").replay(Replay::Unknown).action(reach)),
        ];
        let id = die_when(tools[0].begun(), test.begin(), &input("act")).await;
        assert_eq!(call_states(&test.store), ["started", "intended", "intended"]);
        assert!(resume(&mut test.open(id)).await.is_parked());
        assert_eq!(call_states(&test.store), ["done", "done", "intended"]);
        test.approve(&test.waiting());
        assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
        assert_eq!(test.results(id), ["kept", "done", "done"]);
        assert_eq!(tools.map(|tool| tool.runs()), [1, 1, 1]);
        test.model.assert_no_violations();
    }
}

#[tokio::test]
async fn a_session_that_somebody_works_on_is_held_and_its_turn_runs_once() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown));
    let mut work = test.begin();
    turn(&mut work, "act").await;
    let Opened::Held(holder) = test.agent().open(work.id()).unwrap() else { panic!("not held") };
    assert_eq!(holder.process.pid, std::process::id());
    let id = work.id();
    drop(work);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn calls_side_by_side_are_each_settled_by_their_own_class() {
    let script = |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("look", json!({})).call("send", json!({})).call("keep", json!({})),
        _ => Reply::text("done"),
    };
    let mut test = TestAgent::on(Engine::Sqlite, script);
    let tool = |name, replay| TestTool::new(name).replay(replay).beside_others().hanging();
    let look = test.tool(tool("look", Replay::Pure));
    let send = test.tool(tool("send", Replay::Unknown));
    let keep = test.tool(tool("keep", Replay::Kept).settled(done("kept")));
    let id = die_when(keep.begun(), test.begin(), &input("act")).await;
    assert_eq!(call_states(&test.store), ["started", "started", "started"]);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!((look.runs(), send.runs(), keep.runs()), (2, 1, 1));
    assert_eq!(call_states(&test.store), ["done", "done", "done"]);
    test.model.assert_no_violations();
}

#[tokio::test]
async fn a_result_that_is_written_down_is_not_made_again() {
    let never = Gate::new();
    let held = never.clone();
    let script = move |asked: &ModelRequest| match (asked.results().len(), asked.number) {
        (0, _) => Reply::call_of("act", json!({})),
        (_, 2) => Reply::text("too late").held_by(&held),
        _ => Reply::text("done"),
    };
    let mut test = TestAgent::on(Engine::Sqlite, script);
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown));
    let work = test.begin();
    let id = work.id();
    let written = until(|| test.kinds(id).contains(&"result") && test.model.requests() == 2);
    die_when(written, work, &input("act")).await;
    assert_eq!(test.last_turn(id).state, State::Open);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!(tool.runs(), 1);
    assert_eq!(unknown_questions(&test), 1, "it may have been answered and billed");
    never.open();
}

#[tokio::test]
async fn a_question_that_nobody_heard_the_answer_to_is_asked_again() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = move |asked: &ModelRequest| match asked.number {
        1 => Reply::text("too late").held_by(&held),
        _ => Reply::text("done"),
    };
    let test = TestAgent::on(Engine::Sqlite, script);
    let id =
        die_when(until(|| test.model.requests() == 1), test.begin(), &input("say something")).await;
    assert_eq!((test.kinds(id), unknown_questions(&test)), (vec!["user"], 0));
    let mut when_told = None;
    let mut observer = |event| {
        if matches!(event, Event::Turn { resumed: true, .. }) {
            when_told = Some(unknown_questions(&test));
        }
    };
    let cancel = CancellationToken::new();
    let over = test.open(id).resume(&mut observer, &cancel).await.unwrap().unwrap();
    assert_eq!(over.answer, "done");
    assert_eq!(when_told, Some(1), "it is closed before another one is asked");
    assert_eq!(test.kinds(id), ["user", "assistant", "end"]);
    assert_eq!((unknown_questions(&test), test.model.requests()), (1, 2));
    gate.open();
}

#[tokio::test]
async fn an_answer_that_is_written_down_ends_the_turn_without_a_question() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = move |_: &ModelRequest| Reply::text("another answer").held_by(&held);
    let test = TestAgent::on(Engine::Sqlite, script);
    let asked = until(|| test.model.requests() == 1);
    let id = die_when(asked, test.begin(), &input("say something")).await;
    let said = Body::Assistant {
        parts: vec![AssistantPart::Text("It is done.".to_owned())],
        model: "local/qwen".to_owned(),
    };
    let last = test.last_turn(id).id;
    test.store.write(|tx| entry::append(tx, id, last, &said)).unwrap();
    let over = resume(&mut test.open(id)).await;
    assert_eq!(over.report.answer, "It is done.");
    assert_eq!(over.report.ending, TurnEnding::Over(turn::Outcome::Answered, None));
    assert_eq!(test.kinds(id), ["user", "assistant", "end"]);
    assert_eq!(test.model.requests(), 1);
    gate.open();
}

#[tokio::test]
async fn a_turn_that_is_over_is_told_again_and_changes_nothing() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown));
    let mut work = test.begin();
    let over = turn(&mut work, "act").await;
    let (id, kinds) = (work.id(), test.kinds(work.id()));
    drop(work);
    let mut other = test.open(id);
    for _ in 0..2 {
        let again = resume(&mut other).await;
        assert_eq!(again.report.answer, over.report.answer);
        assert_eq!(again.report.ending, over.report.ending);
    }
    assert_eq!((test.kinds(id), tool.runs(), test.model.requests()), (kinds, 1, 2));
}

#[tokio::test]
async fn an_input_that_is_sent_twice_with_one_key_is_one_turn() {
    let kept = TestTool::new("act").replay(Replay::Kept).settled(done("kept"));
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(kept.hanging());
    let input = input_named("act", "monday");
    let id = die_when(tool.begun(), test.begin(), &input).await;
    for _ in 0..2 {
        let over = attempt(&mut test.open(id), &input).await.unwrap();
        assert_eq!(over.report.answer, "done");
        assert_eq!(test.kinds(id), ["user", "assistant", "result", "assistant", "end"]);
    }
    assert_eq!((tool.runs(), test.model.requests()), (1, 2));
}

#[tokio::test]
async fn a_call_that_waits_parks_the_turn_and_is_settled_when_it_goes_on() {
    let waits = |settled| {
        TestTool::new("act").replay(Replay::Kept).waits("the tide is out").settled(settled)
    };
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(waits(done("the tide is in")));
    let mut work = test.begin();
    let parked = turn(&mut work, "act").await;
    assert_eq!(parked.parked_because(), Some("the tide is out"));
    let id = work.id();
    assert_eq!(
        (call_states(&test.store), test.last_turn(id).state),
        (vec!["started".into()], State::Parked)
    );
    drop(work);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!(test.results(id), ["the tide is in"]);
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn a_parked_turn_asks_the_same_again_and_runs_nothing_however_often_it_is_taken_up() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let inside = Action::Write(test.workspace().join("a"));
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown).action(inside));
    test.settings.policy.write = Decision::Ask;
    let mut work = test.begin();
    let (id, parked) = (work.id(), turn(&mut work, "act").await);
    drop(work);
    for _ in 0..2 {
        let again = resume(&mut test.open(id)).await;
        assert_eq!(again.report.ending, parked.report.ending);
        assert_eq!(again.parked_on(), parked.parked_on());
    }
    assert_eq!((call_states(&test.store), tool.runs()), (vec!["intended".to_owned()], 0));
    test.approve(&test.waiting());
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!((tool.runs(), test.model.requests()), (1, 2));
    assert_eq!(test.requests(RequestFilter::All).len(), 1);
}

#[tokio::test]
async fn a_failed_turn_goes_on_where_it_failed() {
    let script = |asked: &ModelRequest| match (asked.results().len(), asked.number) {
        (0, _) => Reply::call_of("act", json!({})),
        (_, 2) => Reply::status(400, "not today"),
        _ => Reply::text("done"),
    };
    let mut test = TestAgent::on(Engine::Sqlite, script);
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown));
    let mut work = test.begin();
    let failed = turn(&mut work, "act").await;
    assert!(failed.failed_because().unwrap().contains("not today"), "{failed:?}");
    let id = work.id();
    drop(work);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!((tool.runs(), test.results(id).len()), (1, 1));
}

#[tokio::test]
async fn a_cancelled_call_is_given_up_settled_and_never_run_again() {
    let mut test = TestAgent::on(Engine::Sqlite, acting);
    let tool = test.tool(TestTool::new("act").replay(Replay::Unknown).hanging());
    let mut work = test.begin();
    let (cancel, input) = (CancellationToken::new(), input("act"));
    let mut observer = |_| {};
    let working = work.turn(&input, &mut observer, &cancel);
    let stopping = async {
        tool.begun().await;
        cancel.cancel();
    };
    let (over, ()) = futures_util::future::join(working, stopping).await;
    assert_eq!(over.unwrap().ending, TurnEnding::Over(turn::Outcome::Cancelled, None));
    assert_eq!(tool.steps(), ["plan 1", "run 1", "abandon", "settle 1"]);
    let id = work.id();
    assert!(test.store.read(|tx| call::open(tx, id)).unwrap().is_empty());
    assert_eq!(
        resume(&mut work).await.report.ending,
        TurnEnding::Over(turn::Outcome::Cancelled, None)
    );
    assert_eq!((tool.runs(), test.model.requests()), (1, 1));
}
