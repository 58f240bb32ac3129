//! Hooks of users: what they see, what they may decide, and what a kill does to them.

use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::{Signal, wait_for};
use serde_json::{Value, json};

use crate::world::{Told, World};

const PATIENCE: Duration = Duration::from_secs(20);

/// A world with these hooks, whose model follows these replies.
fn world(hooks: &Value, replies: impl IntoIterator<Item = Reply>) -> World {
    let mut replies = replies.into_iter().collect::<Vec<_>>().into_iter();
    let world = World::new(move |_: &ModelRequest| {
        replies.next().unwrap_or_else(|| Reply::text("nothing more to say"))
    });
    write_hooks(&world, hooks);
    world
}

pub(crate) fn write_hooks(world: &World, hooks: &Value) {
    std::fs::write(world.home().join("hooks.json"), hooks.to_string()).unwrap();
}

fn command(line: &str) -> Value {
    json!([{ "hooks": [{ "type": "command", "command": line, "timeout": 10 }] }])
}

fn results(world: &World) -> Vec<String> {
    let asked = world.model.asked().pop().unwrap();
    asked.results().into_iter().map(|(_, text)| text).collect()
}

/// Runs with a home directory of the user, as hooks expect it.
fn run(world: &World, words: &[&str]) -> Told {
    world.command(words).env("HOME", world.workspace()).output().unwrap().into()
}

#[test]
fn the_usual_hooks_of_claude_code_run() {
    let validator = "import json, re, sys\n\
        told = json.load(sys.stdin)\n\
        if told.get('tool_name') != 'Bash': sys.exit(1)\n\
        command = told['tool_input'].get('command', '')\n\
        if re.search(r'\\bgrep\\b(?!.*\\|)', command):\n    \
            print('Use rg instead of grep', file=sys.stderr)\n    sys.exit(2)\n";
    let settings = json!({
        "permissions": { "allow": ["Bash(ls)"] },
        "hooks": {
            "PreToolUse": [
                { "matcher": "Bash", "hooks": [
                    { "type": "command", "command": "jq -r '\"\\(.tool_input.command) - \\(.tool_input.description // \"no description\")\"' >> ~/bash-log.txt" },
                    { "type": "command", "command": "python3 \"$CLAUDE_PROJECT_DIR\"/validator.py" },
                ]},
                { "matcher": "Edit|MultiEdit|Write", "hooks": [{ "type": "command", "command":
                    "python3 -c \"import json, sys; path = json.load(sys.stdin)['tool_input'].get('file_path', ''); sys.exit(2 if any(part in path for part in ['.env', 'package-lock.json', '.git/']) else 0)\"" }]},
            ],
            "PostToolUse": [{ "matcher": "Edit|Write", "hooks": [{ "type": "command", "command":
                "jq -r '.tool_input.file_path' | { read path; if echo \"$path\" | grep -q '\\.ts$'; then sed -i 's/  */ /g' \"$path\"; fi; }" }]}],
            "UserPromptSubmit": [{ "hooks": [{ "type": "command", "command": "echo \"The branch is $(basename \"$CLAUDE_PROJECT_DIR\").\"" }]}],
            "SessionStart": [{ "matcher": "startup", "hooks": [{ "type": "command", "command": "echo 'Mind the style guide.'" }]},
                             { "matcher": "resume", "hooks": [{ "type": "command", "command": "echo 'Never said.'" }]}],
            "Stop": [{ "matcher": "", "hooks": [{ "type": "command", "command": "jq -r .hook_event_name >> notified" }]}],
        },
    });
    let world = world(
        &settings,
        [
            Reply::empty()
                .call("shell", json!({ "command": "grep x y" }))
                .call("shell", json!({ "command": "echo fine" }))
                .call("write_file", json!({ "path": "a.ts", "content": "let   x  = 1;\n" }))
                .call("write_file", json!({ "path": "conf/.env", "content": "KEY=1" })),
            Reply::call_of("edit_file", json!({ "path": "a.ts", "old": "1", "new": "2   +   3" })),
            Reply::text("done"),
        ],
    );
    std::fs::write(world.workspace().join("validator.py"), validator).unwrap();
    let told = run(&world, &["run", "--yes", "--json", "go"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "done");
    let first = &world.model.asked()[0];
    let words = first.last_user_text();
    assert!(words.contains("The branch is work.") && words.contains("style guide"), "{words}");
    assert!(!words.contains("Never said"), "{words}");
    let results = results(&world);
    assert!(results[0].contains("Use rg instead of grep"), "{results:?}");
    assert!(results[1].contains("fine"), "{results:?}");
    assert!(results[3].contains("A hook refused it"), "{results:?}");
    assert_eq!(
        world.file("bash-log.txt"),
        "grep x y - no description\necho fine - no description\n"
    );
    assert_eq!(world.file("a.ts"), "let x = 2 + 3;\n", "{results:?}");
    assert!(!world.workspace().join("conf").exists());
    assert_eq!(world.file("notified"), "Stop\n");
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn payloads_have_the_fields_that_hooks_read() {
    let keep = "cat >> told; echo >> told";
    let all = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
    ];
    let hooks: serde_json::Map<String, Value> =
        all.iter().map(|moment| ((*moment).to_owned(), command(keep))).collect();
    let world = world(
        &Value::Object(hooks),
        [
            Reply::call_of("shell", json!({ "command": "echo out" })),
            Reply::call_of("shell", json!({ "command": "exit 3" })),
            Reply::call_of("write_file", json!({ "path": "./a", "content": "c" })),
            Reply::text("done"),
        ],
    );
    let told = world.run(&["run", "--yes", "--json", "the input"]).ended_with(0);
    let text = world.file("told");
    let told_hooks: Vec<Value> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let moments: Vec<&str> =
        told_hooks.iter().map(|told| told["hook_event_name"].as_str().unwrap()).collect();
    let expected = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreToolUse",
        "PostToolUseFailure",
        "PreToolUse",
        "PostToolUse",
        "Stop",
    ];
    assert_eq!(moments, expected);
    let workspace = world.workspace().canonicalize().unwrap();
    for hook in &told_hooks {
        assert_eq!(hook["session_id"], told.session().as_str());
        assert_eq!(hook["cwd"], workspace.to_str().unwrap());
        assert_eq!(hook["permission_mode"], "default");
        assert_eq!(std::fs::read(hook["transcript_path"].as_str().unwrap()).unwrap(), b"");
    }
    assert_eq!(told_hooks[0]["source"], "startup");
    assert_eq!(told_hooks[1]["prompt"], "the input");
    assert_eq!(told_hooks[2]["tool_name"], "Bash");
    assert_eq!(told_hooks[2]["tool_input"], json!({ "command": "echo out" }));
    assert_eq!(told_hooks[3]["tool_response"]["stdout"], "out\n");
    assert_eq!(told_hooks[3]["tool_use_id"], told_hooks[2]["tool_use_id"]);
    assert!(told_hooks[5]["error"].as_str().unwrap().contains("exit code 3"), "{text}");
    let path = workspace.join("a");
    assert_eq!(told_hooks[6]["tool_name"], "Write");
    assert_eq!(told_hooks[6]["tool_input"], json!({ "file_path": path, "content": "c" }));
    assert_eq!(told_hooks[7]["tool_response"]["filePath"], path.to_str().unwrap());
    assert_eq!(told_hooks[8]["stop_hook_active"], false);
    assert_eq!(told_hooks[8]["last_assistant_message"], "done");
}

#[test]
fn a_hook_answers_the_policys_question_and_lifts_no_ban() {
    let decide = |word: &str| {
        let answer = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": word, "permissionDecisionReason": "because" } });
        json!({ "PreToolUse": command(&format!("echo '{answer}'")) })
    };
    let cases = [
        // the policy, the hook, more words, the exit code, whether it ran
        ("ask", "allow", "", 0, true),
        ("deny", "allow", "", 0, false),
        ("deny", "allow", "--yes", 0, false),
        ("allow", "deny", "", 0, false),
        ("allow", "ask", "", 3, false),
        ("allow", "ask", "--yes", 0, true),
    ];
    for (policy, hook, more, code, ran) in cases {
        let replies =
            [Reply::call_of("shell", json!({ "command": "sh ./code" })), Reply::text("done")];
        let world = world(&decide(hook), replies);
        std::fs::write(world.workspace().join("code"), "touch ran").unwrap();
        world.configure_more(&format!("[policy]\nexecute = \"{policy}\""));
        let mut words = vec!["run", "go"];
        words.extend(Some(more).filter(|more| !more.is_empty()));
        let told = world.run(&words).ended_with(code);
        let case = (policy, hook, more);
        assert_eq!(world.workspace().join("ran").exists(), ran, "{case:?} {told:#?}");
        if hook == "ask" && code == 3 {
            let asked = world.run(&["approvals", "--json"]).ended_with(0);
            assert!(asked.stdout.contains("a hook asks: because"), "{asked:#?}");
            world.run(&["resume", "--yes"]).ended_with(0);
            assert!(world.workspace().join("ran").exists());
        }
    }
}

#[test]
fn a_changed_call_is_what_is_recorded_run_and_settled_after_a_kill() {
    let change = "jq '{hookSpecificOutput: {hookEventName: \"PreToolUse\", updatedInput: \
                  (.tool_input | .command = \"echo \" + .command + \" >> count; sleep 1; cat count\")}}'";
    let replies =
        || [Reply::call_of("shell", json!({ "command": "changed" })), Reply::text("done")];
    let world = world(&json!({ "PreToolUse": command(change) }), replies());
    let mut running = world.start(&["run", "--yes", "--json", "go"]);
    wait_for("the changed command", PATIENCE, || !world.file("count").is_empty());
    running.kill_and_wait();
    world.run(&["resume", "--yes"]).ended_with(0);
    assert_eq!(world.file("count"), "changed\n", "it ran once, as it was changed");
    let results = results(&world);
    assert!(results[0].contains("<data") && results[0].contains("changed"), "{results:?}");
    assert!(results[0].contains("a hook changed this call"), "{results:?}");
    world.model.assert_no_violations();
    world.nothing_runs();
}

#[test]
fn what_a_hook_refuses_is_never_begun() {
    let refuse = "jq -e '.prompt | contains(\"secret\")' > /dev/null && { echo 'No secrets, please' >&2; exit 2; }; exit 0";
    let world = world(&json!({ "UserPromptSubmit": command(refuse) }), [Reply::text("hello")]);
    let told = world.run(&["run", "tell me a secret"]).ended_with(1);
    assert!(told.stderr.contains("a hook refused this: No secrets, please"), "{told:#?}");
    assert_eq!(world.model.requests(), 0);
    let list = world.run(&["sessions", "list", "--json"]).ended_with(0);
    assert_eq!(list.stdout.trim(), "[]", "{list:#?}");
    world.run(&["run", "hello"]).ended_with(0);
    let told = world.run(&["run", "--json", "a secret again"]).ended_with(1);
    assert!(told.event("end")["reason"].as_str().unwrap().contains("No secrets"), "{told:#?}");
}

#[test]
fn a_hook_at_the_end_sends_the_turn_on_a_few_times_at_most() {
    let until_tested =
        "jq -e '.stop_hook_active' > /dev/null && exit 0; echo 'Run the tests first' >&2; exit 2";
    let once = world(
        &json!({ "Stop": command(until_tested) }),
        [Reply::text("finished"), Reply::text("tested")],
    );
    let told = once.run(&["run", "go"]).ended_with(0);
    assert_eq!(told.stdout, "tested\n");
    assert_eq!(once.model.requests(), 2);
    assert!(once.model.asked()[1].last_user_text().contains("Run the tests first"));
    once.model.assert_no_violations();

    let stubborn = world(&json!({ "Stop": command("exit 2") }), []);
    let told = stubborn.run(&["run", "--json", "go"]).ended_with(0);
    assert_eq!(stubborn.model.requests(), 6, "{told:#?}");
    assert!(told.stdout.contains("more than 5 times"), "{told:#?}");
    stubborn.model.assert_no_violations();
}

#[test]
fn an_answer_outlives_a_kill_while_hooks_look_at_it() {
    let world = world(
        &json!({ "Stop": command("touch looking; [ -e free ] || sleep 30") }),
        [Reply::text("paid for")],
    );
    let mut running = world.start(&["run", "--json", "go"]);
    wait_for("the hook", PATIENCE, || world.workspace().join("looking").exists());
    running.kill_and_wait();
    std::fs::write(world.workspace().join("free"), "").unwrap();
    let told = world.run(&["resume", "--json"]).ended_with(0);
    assert_eq!(told.event("end")["answer"], "paid for");
    assert_eq!(world.model.requests(), 1, "the model was asked again");
}

#[test]
fn a_result_that_is_there_is_told_though_the_turn_is_stopped_while_hooks_look_at_it() {
    let world = world(
        &json!({ "PostToolUse": command("touch looking; sleep 30") }),
        [Reply::call_of("write_file", json!({ "path": "a", "content": "x" })), Reply::text("done")],
    );
    let running = world.start(&["run", "--json", "go"]);
    wait_for("the hook", PATIENCE, || world.workspace().join("looking").exists());
    running.signal(Signal::INT);
    let told = world.ended(running, PATIENCE);
    assert_eq!(told.code, Some(130), "{told:#?}");
    let result = told.event("tool_result");
    assert_eq!(result["failed"], false, "{result}");
    world.nothing_runs();
}

#[test]
fn a_hook_stops_the_turn() {
    let stop = r#"echo '{"continue": false, "stopReason": "enough for today"}'"#;
    let world = world(
        &json!({ "PostToolUse": command(stop) }),
        [Reply::call_of("glob", json!({ "pattern": "*" })), Reply::text("never asked")],
    );
    let told = world.run(&["run", "go"]);
    assert!(told.stderr.contains("enough for today"), "{told:#?}");
    assert_eq!(world.model.requests(), 1);
}

#[test]
fn hooks_are_written_in_toml_too_and_a_workspace_brings_none() {
    let world =
        world(&json!({}), [Reply::call_of("glob", json!({ "pattern": "*" })), Reply::text("done")]);
    world.configure_more(
        "[[hooks.PreToolUse]]\nmatcher = \"glob\"\ncommand = \"touch ours\"\n\
         [[hooks.PreToolUse]]\nmatcher = \"Glob\"\nhooks = [{ type = \"command\", command = \"touch theirs\", timeout = 5 }]\n\
         [[hooks.Notification]]\ncommand = \"x\"",
    );
    let brought = "[[hooks.PreToolUse]]\ncommand = \"touch brought\"\n";
    std::fs::write(world.workspace().join(".mainstay.toml"), brought).unwrap();
    std::fs::write(
        world.workspace().join("hooks.json"),
        r#"{"PreToolUse":[{"command":"touch brought"}]}"#,
    )
    .unwrap();
    let told = world.run(&["run", "go"]).ended_with(0);
    assert!(told.stderr.contains("unknown hook event `Notification`"), "{told:#?}");
    assert!(told.stderr.contains("a workspace cannot set `hooks`"), "{told:#?}");
    for (name, there) in [("ours", true), ("theirs", true), ("brought", false)] {
        assert_eq!(world.workspace().join(name).exists(), there, "{name}");
    }
    write_hooks(&world, &json!({ "Stop": [{ "hooks": [{ "type": "command" }] }] }));
    let told = world.run(&["run", "go"]).ended_with(2);
    assert!(told.stderr.contains("hooks.json: hooks.Stop: a hook has no command"), "{told:#?}");
}

#[test]
fn a_call_is_judged_by_the_workspace_as_hooks_left_it() {
    let copy = json!({ "command": "cp a out/b" });
    for (hook, code) in [("true", 0), ("rmdir out; ln -s /proc out", 3)] {
        let replies = [Reply::call_of("shell", copy.clone()), Reply::text("done")];
        let world = world(&json!({ "PreToolUse": command(hook) }), replies);
        std::fs::create_dir(world.workspace().join("out")).unwrap();
        std::fs::write(world.workspace().join("a"), "x").unwrap();
        world.run(&["run", "go"]).ended_with(code);
    }
}

#[test]
fn a_yes_is_for_the_call_as_a_hook_left_it() {
    let change =
        "jq --arg line \"$(cat wanted)\" '{hookSpecificOutput: {updatedInput: {command: $line}}}'";
    let replies = [Reply::call_of("shell", json!({ "command": "ls" })), Reply::text("done")];
    let world = world(&json!({ "PreToolUse": command(change) }), replies);
    std::fs::write(world.workspace().join("code"), "echo $1 >> ran").unwrap();
    let want = |line: &str| std::fs::write(world.workspace().join("wanted"), line).unwrap();
    want("sh ./code one");
    world.run(&["run", "go"]).ended_with(3);
    let request = |world: &World| {
        let asked = world.run(&["approvals", "--json"]).ended_with(0);
        let list: Value = serde_json::from_str(&asked.stdout).unwrap();
        let open = list["requests"].as_array().unwrap().last().unwrap().clone();
        (open["id"].as_str().unwrap().to_owned(), open["action"].as_str().unwrap().to_owned())
    };
    let (first, action) = request(&world);
    assert!(action.contains("sh ./code one"), "{action}");
    world.run(&["approve", &first]).ended_with(0);
    // The hook changes its mind, and so it is another call.
    want("sh ./code two");
    world.run(&["resume"]).ended_with(3);
    assert_eq!(world.file("ran"), "");
    let (second, action) = request(&world);
    assert!(second != first && action.contains("sh ./code two"), "{action}");
    world.run(&["approve", &second]).ended_with(0);
    world.run(&["resume"]).ended_with(0);
    assert_eq!(world.file("ran"), "two\n");
}
