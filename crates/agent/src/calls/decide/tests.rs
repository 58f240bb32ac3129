use mainstay_message::redactor;
use mainstay_tools::Fact;
use serde_json::json;

use super::*;
use crate::hooks::HookVerdict;
use crate::loop_guard::Thresholds;
use crate::policy::Policy;
use crate::settings::Guards;
use crate::test_session::TestSession;

/// A decision in a line: what is to be done, and the words that a model or a person would read.
fn outline(decision: &CallDecision) -> String {
    match decision {
        CallDecision::Run(_) => "run".to_owned(),
        CallDecision::Settle(_) => "settle".to_owned(),
        CallDecision::Refuse(outcome) => format!("refuse: {:?}", outcome.pieces),
        CallDecision::Withhold(times) => format!("withhold after {times}"),
        CallDecision::AskApproval(needed) => {
            let reason = needed.judged.reason.as_deref().unwrap_or_default();
            format!("ask {}: {} ({reason})", needed.judged.class.as_str(), needed.action)
        }
        CallDecision::AskQuestion { text, choices } => format!("question: {text} {choices:?}"),
        CallDecision::EndTurn(reason) => format!("end: {reason}"),
    }
}

fn check(case: &str, call: &ToolCall, test: &TestSession, expected: &str) {
    let decision = outline(&decide_call(call, &test.session, &LoopGuard::default()));
    let fits = match expected {
        "run" | "settle" => decision == expected,
        begins => decision.starts_with(begins.split(" … ").next().unwrap_or_default()),
    };
    let ends = expected.split(" … ").skip(1).all(|part| decision.contains(part));
    assert!(fits && ends, "{case}: {decision}\nexpected: {expected}");
}

fn policy(change: impl FnOnce(&mut Policy)) -> Settings {
    let mut policy = Policy::default();
    change(&mut policy);
    Settings { policy, ..Settings::default() }
}

fn with_hooks(mut call: ToolCall, verdict: HookVerdict) -> ToolCall {
    call.hooks = Some(verdict);
    call
}

#[test]
fn a_call_that_cannot_be_run_is_refused_with_what_is_wrong() {
    let test = TestSession::new(Settings::default());
    let cases = [
        ("no such tool", test.call("nope", &json!({})), "refuse: … no tool nope … read_file"),
        ("no JSON", test.call_as_written("shell", "{ \"command\""), "refuse: … not a JSON object"),
        ("a list", test.call_as_written("shell", "[]"), "refuse: … not a JSON object"),
    ];
    for (case, call, expected) in cases {
        check(case, &call, &test, expected);
    }
}

#[test]
fn the_policy_decides_by_what_a_call_would_do() {
    let test = TestSession::new(Settings::default());
    let write = |path: &str| test.call("write_file", &json!({ "path": path, "content": "x" }));
    let shell = |line: &str| test.call("shell", &json!({ "command": line }));
    let cases = [
        ("a look", test.call("read_file", &json!({ "path": "a" })), "run"),
        ("no arguments", test.call_as_written("list", " "), "run"),
        ("a write inside", write("a"), "run"),
        ("a write outside", write("/etc/a"), "ask write_outside: to change /etc/a"),
        ("a harmless command", shell("ls"), "run"),
        ("a command", shell("make"), "ask execute: to run `make` (it runs code)"),
        ("a destructive command", shell("rm -rf /"), "ask destructive: to run `rm -rf /`"),
        ("the agent itself", shell("mainstay approve 1"), "refuse: … runs Mainstay itself"),
        (
            "a question",
            test.call("ask_user", &json!({ "question": "Which?", "choices": ["a", "b"] })),
            "question: Which? [\"a\", \"b\"]",
        ),
    ];
    for (case, call, expected) in cases {
        check(case, &call, &test, expected);
    }
    let denied = TestSession::new(policy(|policy| policy.execute = Decision::Deny));
    let call = denied.call("shell", &json!({ "command": "make" }));
    check("a command that is denied", &call, &denied, "refuse: … Not allowed … to run `make`");
}

#[test]
fn a_call_that_was_started_is_run_again_only_if_that_does_no_harm() {
    // Neither the policy nor a hook is asked again: both were before it was started.
    let test = TestSession::new(policy(|policy| policy.read = Decision::Deny));
    let refused = HookVerdict { refused: Some("no".to_owned()), ..HookVerdict::default() };
    let cases = [
        ("pure", "read_file", json!({ "path": "a" }), "run"),
        ("idempotent", "write_file", json!({ "path": "/etc/a", "content": "" }), "run"),
        ("kept", "shell", json!({ "command": "make" }), "settle"),
        ("unknown", "edit_file", json!({ "path": "a", "old": "x", "new": "y" }), "settle"),
    ];
    for (case, tool, arguments, expected) in cases {
        let mut call = with_hooks(test.call(tool, &arguments), refused.clone());
        call.started_at = Some(1);
        check(case, &call, &test, expected);
    }
}

#[test]
fn hooks_answer_questions_and_ask_their_own_and_lift_no_ban() {
    let allow = || HookVerdict { permission: Some(Permission::Allow), ..HookVerdict::default() };
    let ask = || HookVerdict {
        permission: Some(Permission::Ask("sure?".to_owned())),
        ..HookVerdict::default()
    };
    let refuse = || HookVerdict { refused: Some("not on Fridays".to_owned()), ..allow() };
    let shell = |test: &TestSession| test.call("shell", &json!({ "command": "make" }));
    let read = |test: &TestSession| test.call("read_file", &json!({ "path": "a" }));

    let test = TestSession::new(Settings::default());
    check("a hook allows", &with_hooks(shell(&test), allow()), &test, "run");
    let asked = "ask read: … a hook asks: sure?";
    check("a hook asks about a look", &with_hooks(read(&test), ask()), &test, asked);
    let asked = "ask execute: … a hook asks: sure?";
    check("a hook asks as well", &with_hooks(shell(&test), ask()), &test, asked);
    let refused = "refuse: … A hook refused it: not on Fridays";
    check("a hook refuses", &with_hooks(read(&test), refuse()), &test, refused);

    let denied = TestSession::new(policy(|policy| policy.execute = Decision::Deny));
    for verdict in [allow(), ask()] {
        check("a ban", &with_hooks(shell(&denied), verdict), &denied, "refuse: … Not allowed");
    }
    let yes = TestSession::new(Settings { yes: true, ..Settings::default() });
    check("yes to all", &with_hooks(read(&yes), ask()), &yes, "run");
}

#[test]
fn what_a_hook_asks_cannot_be_answered_with_always() {
    let test = TestSession::new(Settings::default());
    let permission = Some(Permission::Ask("sure?".to_owned()));
    let verdict = HookVerdict { permission, ..HookVerdict::default() };
    let call = with_hooks(test.call("shell", &json!({ "command": "make" })), verdict);
    match decide_call(&call, &test.session, &LoopGuard::default()) {
        CallDecision::AskApproval(needed) => assert_eq!(needed.judged.needs, None),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_call_is_withheld_and_then_ends_the_turn() {
    let looking = Thresholds { nudge: 1, withhold: 2, end: 4 };
    let guards = Guards { looking, ..Guards::default() };
    let test = TestSession::new(Settings { guards, ..Settings::default() });
    let read = test.call("read_file", &json!({ "path": "a" }));
    let write = test.call("write_file", &json!({ "path": "a", "content": "x" }));
    let mut guard = LoopGuard::default();
    let mut decisions = Vec::new();
    for _ in 0..5 {
        decisions.push(outline(&decide_call(&read, &test.session, &guard)));
        for call in [&read, &write] {
            let thresholds = call.thresholds(test.session.agent.settings());
            guard.after(&call.asked.name, &call.asked.arguments, Some("same"), thresholds);
        }
    }
    let expected = ["run", "run", "withhold after 2", "withhold after 3"];
    assert_eq!(decisions[..4], expected, "{decisions:?}");
    assert!(decisions[4].starts_with("end: ") && decisions[4].contains("4 times"), "{decisions:?}");
    let write = outline(&decide_call(&write, &test.session, &guard));
    assert_eq!(write, "run", "a call that changes something has limits of its own");
}

#[test]
fn a_tainted_session_asks_before_it_leaves_something_for_later_ones() {
    let mut test = TestSession::new(policy(|policy| policy.persist = Decision::Allow));
    let call = |test: &TestSession| test.call("memory", &json!({ "action": "add", "text": "x" }));
    check("not tainted", &call(&test), &test, "run");
    test.session.trust.origins.note(&Fact::Outside { origin: "example.org".to_owned() });
    let expected = "ask persist: to remember “x” … has read text from example.org";
    check("tainted", &call(&test), &test, expected);
}

#[test]
fn a_mark_in_place_of_a_secret_is_not_written() {
    const SECRET: &str = "q7Zx2Lm9tR4vB8nK1wYc";
    let settings = Settings::default();
    settings.redactor.add("TOKEN", SECRET, redactor::Origin::Configured);
    let text = settings.redactor.text(SECRET).into_owned();
    assert_ne!(text, SECRET, "it is known as a secret");
    let test = TestSession::new(settings);
    let write = test.call("write_file", &json!({ "path": "a", "content": text }));
    check("a mark", &write, &test, "refuse: … stands for a secret");
    let read = test.call("grep", &json!({ "pattern": text }));
    check("a look", &read, &test, "run");
}

#[test]
fn a_decision_changes_nothing() {
    let test = TestSession::new(Settings::default());
    let call = test.call("write_file", &json!({ "path": "a", "content": "x" }));
    for _ in 0..2 {
        check("twice", &call, &test, "run");
    }
    assert!(matches!(call.state, CallState::Undecided) && call.approval.is_none());
    assert!(!test.directory.path().join("a").exists());
}
