//! Turns in which models, commands and people do what nobody expects.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mainstay_testkit::model::{ModelServer, Replies, Reply, Shape};
use mainstay_testkit::process::{Running, Signal, wait_for};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::world::{Told, World, configuration, program};

const PATIENCE: Duration = Duration::from_secs(10);

fn shell(command: &str) -> Reply {
    Reply::call_of("shell", json!({ "command": command }))
}

/// Panics unless every result in a stream has its call before it, and the end comes last.
fn assert_stream(told: &Told) {
    let events = told.events();
    let mut called = BTreeSet::new();
    for event in &events {
        match event["type"].as_str().unwrap() {
            "tool_call" => assert!(called.insert(event["id"].to_string()), "{event}"),
            "tool_result" => assert!(called.contains(&event["id"].to_string()), "{event}"),
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "end", "{told:#?}");
}

#[test]
fn an_output_above_the_largest_blob_is_kept_in_part() {
    let world = World::new(Replies::new([
        shell("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end"),
        Reply::text("done"),
    ]));
    world.run(&["run", "--yes", "write a lot"]).ended_with(0);
    let last = world.model.asked().pop().unwrap();
    assert!(last.results()[0].1.contains("the end"), "the tail is missing");
    world.model.assert_no_violations();
}

#[test]
fn any_bytes_may_come_out_of_a_command() {
    for shape in [Shape::Chat, Shape::Responses, Shape::Anthropic, Shape::Ollama] {
        let world = World::speaking(
            shape,
            Replies::new([
                shell("printf 'a\\000b\\377\\376c'; head -c 100000 /dev/urandom"),
                Reply::text("do\0ne"),
            ]),
        );
        world.run(&["run", "--yes", "x"]).ended_with(0);
        world.model.assert_no_violations();
    }
}

#[test]
fn calls_that_make_no_sense_are_answered_and_break_no_later_request() {
    for shape in [Shape::Chat, Shape::Responses, Shape::Anthropic, Shape::Ollama] {
        let mut odd = Reply::empty()
            .call("", json!({}))
            .call("shell\0x", json!({}))
            .call("functions.shell é", json!({}))
            .call("shell", json!({ "command": 5 }))
            .call("shell", json!({ "command": "echo a\0b" }))
            .call("shell", json!({ "command": "echo fine", "timeout": 1e300 }))
            .call("process", json!({ "action": "acknowledge", "process": "x\0y" }))
            .call("process", json!({ "action": "wait", "process": "x", "seconds": 1e308 }));
        if matches!(shape, Shape::Chat | Shape::Anthropic) {
            // The others have no place for words that are no JSON.
            odd = odd
                .call_with_words("shell", "{\"command\": 1e999}")
                .call_with_words("shell", "[1]")
                .call_with_words("shell", "{\"command\":");
        }
        let world =
            World::speaking(shape, Replies::new([odd.without_call_ids(), Reply::text("done")]));
        let told = world.run(&["run", "--yes", "--json", "x"]).ended_with(0);
        assert_stream(&told);
        let failed: Vec<bool> = told
            .events()
            .iter()
            .filter(|event| event["type"] == "tool_result")
            .map(|event| event["failed"].as_bool().unwrap())
            .collect();
        assert_eq!(failed.iter().filter(|failed| !**failed).count(), 1, "{told:#?}");
        world.model.assert_no_violations();
    }
}

#[test]
fn a_thousand_calls_in_one_message_are_too_many_of_the_same_and_not_too_many_to_record() {
    let calls = (0..1000)
        .fold(Reply::empty(), |reply, _| reply.call("read_file", json!({ "path": "a.txt" })));
    let world = World::new(Replies::new([calls, Reply::text("done")]));
    std::fs::write(world.workspace().join("a.txt"), "hello").unwrap();
    let told = world.run(&["run", "--json", "read"]).ended_with(1);
    assert_eq!(told.event("end")["outcome"], "stuck", "{}", told.stderr);
    assert_stream(&told);
    let id = told.event("session")["id"].as_str().unwrap().to_owned();
    world.run(&["run", "--session", &id, "and now?"]).ended_with(0);
    world.model.assert_no_violations();
}

#[test]
fn tokens_beyond_reason_break_neither_the_turn_nor_the_sums() {
    let beyond = 1 << 62;
    let world = World::new(Replies::new([
        shell("echo hi").usage(beyond, 0, beyond),
        Reply::text("done").usage(beyond, 0, beyond),
    ]));
    world.configure_more("[budget]\nturn_tokens = 9000000000000000000");
    world.run(&["run", "--yes", "x"]).ended_with(0);
    world.run(&["cost"]).ended_with(0);
}

#[test]
fn an_error_is_the_last_event_and_the_only_one() {
    let world = World::new(Replies::new([]));
    world.configure("");
    let told = world.run(&["run", "--json", "x"]).ended_with(2);
    assert_stream(&told);
    assert_eq!(
        told.event("end")["error"]["message"],
        "no model is configured, and no model server on this machine answers"
    );
    let told = world.run(&["resume", "--json", "nosuch"]).ended_with(2);
    assert_stream(&told);
    assert!(told.event("end")["error"]["hints"][0].as_str().unwrap().contains("sessions list"));
}

#[test]
fn a_session_does_not_move_to_another_workspace() {
    let world = World::new(Replies::new([Reply::text("one"), Reply::text("two")]));
    let told = world.run(&["run", "--json", "x"]).ended_with(0);
    let id = told.event("session")["id"].as_str().unwrap().to_owned();
    let home = world.home().display().to_string();
    let refused = world.run(&["run", "--session", &id, "--workspace", &home, "y"]).ended_with(2);
    assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
    let here = world.workspace().display().to_string();
    world.run(&["run", "--session", &id, "--workspace", &here, "y"]).ended_with(0);
}

#[test]
fn the_turns_time_parks_it_whatever_it_is_at() {
    let replies = [
        vec![shell("sleep 100"), Reply::text("done")],
        vec![Reply::text("never").stall_before_first_byte(), Reply::text("done")],
    ];
    for replies in replies {
        let world = World::new(Replies::new(replies));
        world.configure_more("[budget]\nturn_time = 0.5");
        let told = world.run(&["run", "--yes", "--json", "x"]).ended_with(3);
        assert!(
            told.event("parked")["reason"].as_str().unwrap().contains("reached its time limit of")
        );
        let results = |event: &Value| event["type"] == "tool_result";
        for result in told.events().iter().filter(|event| results(event)) {
            assert!(result["text"].as_str().unwrap().contains("killed"), "{result}");
        }
        assert_eq!(world.processes(), Vec::<String>::new());
        world.run(&["resume"]).ended_with(0);
        world.model.assert_no_violations();
    }
}

#[test]
fn a_command_that_is_cancelled_is_known_to_be_killed() {
    let world =
        World::new(Replies::new([shell("echo begun > begun; sleep 100"), Reply::text("ok")]));
    let mut running = Running::spawn(&mut world.command(&["run", "--yes", "--json", "x"]));
    wait_for("the command runs", PATIENCE, || world.file("begun") == "begun\n");
    running.signal(Signal::TERM);
    let result: Value = serde_json::from_str(&running.line_with("tool_result", PATIENCE)).unwrap();
    assert!(result["text"].as_str().unwrap().contains("killed: it was stopped"), "{result}");
    assert_eq!(running.wait(PATIENCE).code(), Some(130));
    assert_eq!(world.processes(), Vec::<String>::new());
}

/// What a person writes between a crash and the resume is kept, wherever the crash was.
#[test]
fn a_file_that_was_changed_after_a_crash_is_not_overwritten_by_the_resume() {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::new(HashMap::new());
    let overtaken = AtomicUsize::new(0);
    let prepare = |home: &Path| {
        let server = ModelServer::replies([
            Reply::call_of("write_file", json!({ "path": "a", "content": "the model's" })),
            Reply::text("done"),
            Reply::text("done"),
        ]);
        let workspace = home.with_file_name("work");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(workspace.join("a"), "old").unwrap();
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &server)).unwrap();
        servers.lock().unwrap().insert(home.to_owned(), server);
        program(home, &workspace, &["run", "--json", "write"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let (home, workspace) = (outcome.directory, outcome.directory.with_file_name("work"));
        let server = servers.lock().unwrap().remove(home).unwrap();
        if std::fs::read_to_string(workspace.join("a")).unwrap() == "the model's" {
            std::fs::write(workspace.join("a"), "a person's").unwrap();
            let told = Told::from(program(home, &workspace, &["resume"]).output().unwrap());
            assert_eq!(told.code, Some(0), "{told:#?}");
            let kept = std::fs::read_to_string(workspace.join("a")).unwrap();
            assert_eq!(kept, "a person's");
            overtaken.fetch_add(1, Ordering::Relaxed);
        }
        drop(server);
    };
    Sweep::of(Mode::Kill).only(&[Kind::Sync, Kind::Write]).run(prepare, verify);
    assert!(overtaken.into_inner() > 1, "no crash lay between the write and its record");
}

#[test]
fn a_command_that_new_input_cuts_short_is_known_to_be_killed() {
    let world =
        World::new(Replies::new([shell("echo begun > begun; sleep 100"), Reply::text("done")]));
    let mut running = Running::spawn(&mut world.command(&["run", "--yes", "--json", "x"]));
    let session: Value = serde_json::from_str(&running.line_with("session", PATIENCE)).unwrap();
    wait_for("the command runs", PATIENCE, || world.file("begun") == "begun\n");
    running.kill_and_wait();
    let id = session["id"].as_str().unwrap();
    world.run(&["run", "--session", id, "something else"]).ended_with(0);
    let last = world.model.asked().pop().unwrap();
    let result = &last.results()[0].1;
    assert!(result.contains("killed: it was stopped"), "{result}");
    assert_eq!(world.processes(), Vec::<String>::new());
    world.model.assert_no_violations();
}

#[test]
fn a_command_that_is_missing_is_told_to_the_model_and_asked_of_nobody() {
    let world = World::new(Replies::new([
        Reply::call_of("shell", json!({ "timeout": 5 })),
        Reply::call_of("process", json!({ "action": "start" })),
        Reply::text("I see"),
    ]));
    let told = world.run(&["run", "--json", "x"]).ended_with(0);
    let results: Vec<_> =
        told.events().into_iter().filter(|event| event["type"] == "tool_result").collect();
    assert_eq!(results.len(), 2, "{told:#?}");
    assert!(results.iter().all(|result| result["failed"] == true), "{results:#?}");
}
