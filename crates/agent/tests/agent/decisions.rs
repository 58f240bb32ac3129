//! What becomes of a call before it may have its effect: run, refused, withheld or asked about.

use std::sync::Arc;

use mainstay_agent::approvals::requests::{Effort, RequestFilter};
use mainstay_agent::loop_guard::Thresholds;
use mainstay_agent::policy::{Decision, Policy};
use mainstay_agent::{TurnEnding, Verdict};
use mainstay_journal::turn::Outcome;
use mainstay_message::redactor::Origin;
use mainstay_testkit::model::Reply;
use mainstay_tools::{Action, Replay};
use serde_json::json;

use crate::fixture::{Person, Says, TestAgent, TestTool, TestTurn, resume, turn};

/// A tool for each setting of the policy, under its name.
fn one_of_each(test: &mut TestAgent) -> Vec<(&'static str, Arc<TestTool>)> {
    let (inside, outside) = (test.workspace().join("a"), test.directory.path().join("a"));
    let actions = [
        ("read", Action::Read),
        ("write", Action::Write(inside)),
        ("write_outside", Action::Write(outside)),
        ("execute", Action::Execute("make".to_owned())),
        ("network", reaching("example.org")),
        ("persist", Action::Persist("that".to_owned())),
        ("destructive", Action::Execute("git push --force".to_owned())),
    ];
    let tool = |(name, action)| (name, test.tool(TestTool::new(name).action(action)));
    actions.map(tool).into()
}

fn reaching(host: &str) -> Action {
    Action::Network(vec![host.to_owned()])
}

/// Calls of all of them in one message, and an answer.
fn calling_each() -> [Reply; 2] {
    let names = ["read", "write", "write_outside", "execute", "network", "persist", "destructive"];
    let calls = names.iter().fold(Reply::empty(), |reply, name| reply.call(*name, json!({})));
    [calls, Reply::text("done")]
}

fn same_for_all(decision: Decision) -> Policy {
    Policy::default().each(|_| decision)
}

#[tokio::test]
async fn what_is_allowed_runs_once_and_nobody_is_asked() {
    let mut test = TestAgent::replying(calling_each());
    test.settings.policy = same_for_all(Decision::Allow);
    let tools = one_of_each(&mut test);
    assert_eq!(turn(&mut test.begin(), "do it").await.report.answer, "done");
    for (name, tool) in tools {
        assert_eq!(tool.steps(), ["plan 1", "run 1"], "{name}");
    }
    assert!(test.requests(RequestFilter::All).is_empty());
}

#[tokio::test]
async fn what_is_denied_is_not_even_planned_and_the_model_reads_why() {
    let mut test = TestAgent::replying(calling_each());
    test.settings.policy = same_for_all(Decision::Deny);
    let tools = one_of_each(&mut test);
    assert_eq!(turn(&mut test.begin(), "do it").await.report.answer, "done");
    let results = test.last_asked().results();
    assert_eq!(results.len(), tools.len());
    for ((name, tool), (_, text)) in tools.iter().zip(results) {
        assert!(tool.steps().is_empty(), "{name}");
        assert!(text.starts_with("Not allowed: the policy forbids to "), "{name}: {text}");
    }
    assert!(test.requests(RequestFilter::All).is_empty());
}

#[tokio::test]
async fn what_is_to_be_asked_about_waits_for_one_request_each() {
    let mut test = TestAgent::replying(calling_each());
    test.settings.policy = same_for_all(Decision::Ask);
    let tools = one_of_each(&mut test);
    let parked = turn(&mut test.begin(), "do it").await;
    assert_eq!(parked.parked_on().len(), tools.len(), "{parked:?}");
    let waiting = test.requests(RequestFilter::Waiting);
    let asked: Vec<&str> = waiting.iter().map(|waiting| waiting.request.tool.as_str()).collect();
    assert_eq!(asked, tools.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, tool) in tools {
        assert!(tool.steps().is_empty(), "{name}");
    }
}

/// Of one call for each setting of the policy, these are refused where one setting says no.
async fn refused_where(deny: fn(&mut Policy), names: &[&str]) {
    let mut test = TestAgent::replying(calling_each());
    test.settings.policy = same_for_all(Decision::Allow);
    deny(&mut test.settings.policy);
    let tools = one_of_each(&mut test);
    turn(&mut test.begin(), "do it").await;
    let refused = tools.iter().filter(|(_, tool)| tool.runs() == 0).map(|(name, _)| *name);
    assert_eq!(refused.collect::<Vec<_>>(), names);
}

#[tokio::test]
async fn where_nothing_may_be_read_no_command_runs_either() {
    let names = ["read", "execute", "destructive"];
    refused_where(|policy| policy.read = Decision::Deny, &names).await;
}

#[tokio::test]
async fn where_the_workspace_may_not_be_changed_the_rest_may() {
    refused_where(|policy| policy.write = Decision::Deny, &["write"]).await;
}

#[tokio::test]
async fn where_nothing_outside_may_be_changed_the_workspace_may() {
    refused_where(|policy| policy.write_outside = Decision::Deny, &["write_outside"]).await;
}

#[tokio::test]
async fn where_no_code_may_run_no_command_does() {
    refused_where(|policy| policy.execute = Decision::Deny, &["execute", "destructive"]).await;
}

#[tokio::test]
async fn where_the_network_is_closed_a_command_that_reaches_it_does_not_run() {
    // The other one pushes.
    refused_where(|policy| policy.network = Decision::Deny, &["network", "destructive"]).await;
}

#[tokio::test]
async fn where_nothing_may_be_kept_the_rest_may_be_done() {
    refused_where(|policy| policy.persist = Decision::Deny, &["persist"]).await;
}

#[tokio::test]
async fn where_nothing_may_be_destroyed_other_commands_run() {
    refused_where(|policy| policy.destructive = Decision::Deny, &["destructive"]).await;
}

#[tokio::test]
async fn an_agent_never_decides_about_itself() {
    let mut test = TestAgent::replying([Reply::call_of("approve", json!({})), Reply::text("done")]);
    test.settings.policy = same_for_all(Decision::Allow);
    let line = "mainstay approvals approve 01J".to_owned();
    let tool = test.tool(TestTool::new("approve").action(Action::Execute(line)));
    assert_eq!(turn(&mut test.begin(), "do it").await.report.answer, "done");
    assert_eq!(tool.runs(), 0);
    assert!(test.last_result().contains("It runs Mainstay itself"), "{}", test.last_result());
}

#[tokio::test]
async fn what_cannot_be_called_is_told_to_the_model_and_not_run() {
    let broken = Reply::call_of("missing", json!({}))
        .call_with_words("look", "{\"a\":")
        .call_with_words("look", "[1]");
    let mut test = TestAgent::replying([broken, Reply::text("done")]);
    let tool = test.tool(TestTool::new("look"));
    let mut work = test.begin();
    assert_eq!(turn(&mut work, "do it").await.report.answer, "done");
    let results = test.results(work.id());
    assert!(results[0].starts_with("There is no tool missing. The tools are: "), "{results:?}");
    for result in &results[1..] {
        assert!(result.starts_with("The arguments are not a JSON object"), "{results:?}");
    }
    assert!(tool.steps().is_empty());
}

#[tokio::test]
async fn a_mark_in_the_place_of_a_secret_is_read_and_never_written() {
    let arguments = json!({ "content": "key = [redacted: the key]" });
    let both = Reply::call_of("look", &arguments).call("change", &arguments);
    let mut test = TestAgent::replying([both, Reply::text("done")]);
    test.settings.redactor.add("the key", "sk-very-secret-0123456789", Origin::Configured);
    let look = test.tool(TestTool::new("look"));
    let inside = Action::Write(test.workspace().join("a"));
    let change = test.tool(TestTool::new("change").action(inside));
    turn(&mut test.begin(), "do it").await;
    assert_eq!((look.runs(), change.runs()), (1, 0));
    assert!(test.last_result().starts_with("Not done: [redacted: the key]"));
}

/// A turn that makes the same call six times with the same result.
async fn repeated(replay: Replay) -> (TestTurn, usize, Vec<String>) {
    let calls = (0..6).map(|_| Reply::call_of("look", json!({})));
    let mut test = TestAgent::replying(calls.chain([Reply::text("done")]));
    test.settings.guards.looking = Thresholds { nudge: 2, withhold: 3, end: 5 };
    let tool = test.tool(TestTool::new("look").replay(replay));
    let mut work = test.begin();
    (turn(&mut work, "look").await, tool.runs(), test.results(work.id()))
}

#[tokio::test]
async fn a_look_that_brings_nothing_new_is_withheld_and_then_ends_the_turn() {
    let (ended, runs, results) = repeated(Replay::Pure).await;
    let TurnEnding::Over(Outcome::Stuck, Some(reason)) = &ended.report.ending else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("look {} was asked for 5 times"), "{reason}");
    let kinds = results.iter().map(|text| match text {
        text if text.starts_with("[Mainstay: not run.") => "withheld",
        text if text.contains("this is result number") => "nudged",
        _ => "run",
    });
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["run", "nudged", "nudged", "withheld", "withheld"]);
    assert_eq!(runs, 3);
}

#[tokio::test]
async fn a_call_that_may_change_something_is_not_held_to_the_limits_of_looking() {
    let (ended, runs, results) = repeated(Replay::Idempotent).await;
    assert_eq!((ended.report.answer.as_str(), runs), ("done", 6));
    assert_eq!(results, ["done"; 6]);
}

#[tokio::test]
async fn what_was_always_allowed_is_not_asked_about_again_and_the_rest_is() {
    let calls = ["near", "near", "far"].map(|name| Reply::call_of(name, json!({})));
    let mut test = TestAgent::replying(calls.into_iter().chain([Reply::text("done")]));
    let near = test.tool(TestTool::new("near").action(reaching("near.example.org")));
    let far = test.tool(TestTool::new("far").action(reaching("far.example.org")));
    let mut work = test.begin();
    assert!(turn(&mut work, "reach out").await.is_parked());
    test.decide(&test.waiting(), &Verdict::Always, Effort::Key);
    assert!(resume(&mut work).await.is_parked());
    assert_eq!((near.runs(), far.runs()), (2, 0));
    assert_eq!(test.waiting().request.tool, "far");
    assert_eq!(test.requests(RequestFilter::All).len(), 2);
}

/// Somebody at hand says this to two calls of one kind: how often they are asked, how often it is done,
/// and what the model reads last.
async fn at_hand(verdict: Verdict) -> (usize, usize, String) {
    let call = || Reply::call_of("reach", json!({}));
    let mut test = TestAgent::replying([call(), call(), Reply::text("done")]);
    let tool = test.tool(TestTool::new("reach").action(reaching("example.org")));
    let mut work = test.begin();
    let person = Person::new(&test, Says::Verdict(Some(verdict)));
    work.ask_here(person.clone());
    assert_eq!(turn(&mut work, "reach out").await.report.answer, "done");
    (person.seen().len(), tool.runs(), test.last_result())
}

#[tokio::test]
async fn a_yes_at_hand_lets_one_call_through() {
    assert_eq!(at_hand(Verdict::Once).await, (2, 2, "done".to_owned()));
}

#[tokio::test]
async fn an_always_at_hand_lets_the_next_call_through_too() {
    assert_eq!(at_hand(Verdict::Always).await, (1, 2, "done".to_owned()));
}

#[tokio::test]
async fn a_no_at_hand_is_read_by_the_model_and_holds_for_one_call() {
    let deny = Verdict::Deny { reason: Some("not today".to_owned()) };
    let (asked, runs, result) = at_hand(deny).await;
    assert_eq!((asked, runs), (2, 0));
    assert!(result.contains("not today"), "{result}");
}

/// A message with a call that may run and one that is asked about. How often they had run when the turn
/// was parked.
async fn one_free_and_one_asked(shape: impl Fn(TestTool) -> TestTool) -> (usize, usize) {
    let message = Reply::call_of("free", json!({})).call("asked", json!({}));
    let mut test = TestAgent::replying([message, Reply::text("done")]);
    let tool = |name| shape(TestTool::new(name).replay(Replay::Unknown));
    let free = test.tool(tool("free"));
    let asked = test.tool(tool("asked").action(reaching("example.org")));
    let mut work = test.begin();
    assert!(turn(&mut work, "do both").await.is_parked());
    let before = (free.runs(), asked.runs());
    test.approve(&test.waiting());
    let id = work.id();
    drop(work);
    assert_eq!(resume(&mut test.open(id)).await.report.answer, "done");
    assert_eq!((free.runs(), asked.runs()), (1, 1));
    before
}

#[tokio::test]
async fn what_ran_before_a_question_does_not_run_again_after_it() {
    assert_eq!(one_free_and_one_asked(|tool| tool).await, (1, 0));
}

#[tokio::test]
async fn of_calls_side_by_side_none_begins_before_all_are_decided() {
    assert_eq!(one_free_and_one_asked(TestTool::beside_others).await, (0, 0));
}
