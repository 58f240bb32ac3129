use std::time::Duration;

use mainstay_tools::keeper::{KillReason, Shown};
use serde_json::json;

use super::*;
use crate::hooks::matcher::Matcher;

fn hook(moment: Moment) -> Hook {
    Hook {
        moment,
        matcher: Matcher::All,
        command: "check".to_owned(),
        limit: Duration::from_secs(1),
        failure: Failure::Told,
    }
}

fn shown(bytes: &[u8]) -> Shown {
    Shown { head: bytes.to_vec(), total: bytes.len() as u64, ..Shown::default() }
}

fn heard(moment: Moment, how: Exit, output: &[u8], errors: &str) -> HookReply {
    let ended = Ended {
        how,
        took: Duration::ZERO,
        output: shown(output),
        errors: Some(Box::new(shown(errors.as_bytes()))),
        left: Vec::new(),
        rest: None,
    };
    HookReply::read(&hook(moment), &ended, Some(output))
}

fn said(moment: Moment, answer: &Value) -> HookReply {
    heard(moment, Exit::Code(0), answer.to_string().as_bytes(), "")
}

#[test]
fn exit_codes_mean_what_users_know() {
    let quiet = heard(Moment::PreToolUse, Exit::Code(0), b"looked at it\n", "debugging");
    assert_eq!(quiet, HookReply::default());
    let blocked = heard(Moment::PreToolUse, Exit::Code(2), b"{}", "no way\n");
    assert_eq!(blocked.block.as_deref(), Some("no way"));
    assert!(blocked.notices.is_empty());
    let bare = heard(Moment::Stop, Exit::Code(2), b"", "");
    assert_eq!(bare.block.as_deref(), Some("it gave no reason"));
    let start = heard(Moment::SessionStart, Exit::Code(2), b"", "broken");
    assert_eq!((start.block, start.notices), (None, vec!["broken".to_owned()]));
    for how in [
        Exit::Code(1),
        Exit::Code(127),
        Exit::Signal(11),
        Exit::Killed(KillReason::Wall(Duration::from_secs(1))),
        Exit::Failed("no such file".to_owned()),
    ] {
        let failed = heard(Moment::PreToolUse, how, br#"{"decision":"block"}"#, "\nbad\nthings");
        assert_eq!((failed.block, failed.notices.len()), (None, 1));
        assert!(
            failed.notices[0].contains("the PreToolUse hook `check` "),
            "{failed:?}",
            failed = failed.notices
        );
    }
}

#[test]
fn plain_words_are_context_where_context_is_wanted() {
    for moment in [Moment::SessionStart, Moment::UserPromptSubmit] {
        assert_eq!(heard(moment, Exit::Code(0), b" it rains\n", "").context, ["it rains"]);
    }
    for moment in [Moment::PreToolUse, Moment::PostToolUse, Moment::Stop] {
        assert!(heard(moment, Exit::Code(0), b"it rains", "").context.is_empty());
    }
    let long = heard(Moment::UserPromptSubmit, Exit::Code(0), &[b'x'; 50_000], "");
    assert!(long.context[0].len() < LONGEST + 100);
}

#[test]
fn nonsense_is_a_notice_and_nothing_else() {
    for garbage in [&b"{ not json"[..], b"\xff\xfe\x00", b"bin\0ary", br#"{"decision":"explode"}"#]
    {
        for moment in Moment::ALL {
            let heard = heard(moment, Exit::Code(0), garbage, "");
            assert_eq!(heard.notices.len(), 1, "{moment:?} {garbage:?} {heard:?}");
            assert_eq!(HookReply { notices: Vec::new(), ..heard }, HookReply::default());
        }
    }
    assert_eq!(
        said(Moment::PreToolUse, &json!({"hookSpecificOutput": 3, "continue": "no"})),
        HookReply::default()
    );
}

#[test]
fn answers_in_json_are_understood() {
    let denied = said(
        Moment::PreToolUse,
        &json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "use rg" } }),
    );
    assert_eq!(denied.block.as_deref(), Some("use rg"));
    let allowed = said(
        Moment::PreToolUse,
        &json!({ "hookSpecificOutput": { "permissionDecision": "allow",
            "updatedInput": { "command": "ls" }, "additionalContext": "short" }, "systemMessage": "hi" }),
    );
    assert_eq!(allowed.permission, Some(Permission::Allow));
    assert_eq!(allowed.input, Some(json!({ "command": "ls" })));
    assert_eq!((&allowed.context[0], &allowed.notices[0]), (&"short".to_owned(), &"hi".to_owned()));
    assert_eq!(
        said(Moment::PreToolUse, &json!({"decision": "approve"})).permission,
        Some(Permission::Allow)
    );
    let blocked = said(Moment::Stop, &json!({ "decision": "block", "reason": "test first" }));
    assert_eq!(blocked.block.as_deref(), Some("test first"));
    let halted = said(Moment::PostToolUse, &json!({ "continue": false, "stopReason": "enough" }));
    assert_eq!(halted.halt.as_deref(), Some("enough"));
    // Only a hook before a call can change it or let it through.
    let after = json!({ "decision": "approve", "hookSpecificOutput": { "permissionDecision": "allow",
        "updatedInput": {} } });
    assert_eq!(said(Moment::PostToolUse, &after), HookReply::default());
}

#[test]
fn the_strictest_of_several_holds_and_the_first_change() {
    let allow = || HookReply { permission: Some(Permission::Allow), ..HookReply::default() };
    let ask =
        || HookReply { permission: Some(Permission::Ask("?".to_owned())), ..HookReply::default() };
    for order in [[allow(), ask()], [ask(), allow()]] {
        let mut all = HookReply::default();
        order.into_iter().for_each(|one| all.join(one));
        assert_eq!(all.permission, ask().permission);
    }
    let mut all = HookReply::default();
    for command in ["a", "a", "b"] {
        all.join(HookReply { input: Some(json!({ "command": command })), ..HookReply::default() });
    }
    assert_eq!(all.input, Some(json!({ "command": "a" })));
    assert_eq!(all.notices.len(), 1);
}

#[test]
fn a_hook_that_has_to_agree_blocks_when_it_fails() {
    let hook = Hook { failure: Failure::Blocks, ..hook(Moment::PreToolUse) };
    let ended = Ended {
        how: Exit::Code(1),
        ..Ended {
            how: Exit::Code(1),
            took: Duration::ZERO,
            output: shown(b""),
            errors: None,
            left: Vec::new(),
            rest: None,
        }
    };
    let heard = HookReply::read(&hook, &ended, Some(b""));
    assert!(heard.block.unwrap().contains("has to agree"), "{:?}", heard.notices);
}
