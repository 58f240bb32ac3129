//! Several processes want one session, or one input.

use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_testkit::process::{Signal, wait_for};
use serde_json::json;

use crate::world::{Told, World};

const PATIENCE: Duration = Duration::from_secs(20);

/// A world whose first turn was killed while the model was silent; it answers once the gate is open.
fn interrupted(gate: &Gate) -> (World, String) {
    let held = gate.clone();
    let world = World::new(move |_: &ModelRequest| Reply::text("answered").held_by(&held));
    let mut running = world.start(&["run", "--json", "begin"]);
    let line = running.line_with("\"session\"", PATIENCE);
    world.model.wait_for_requests(1, PATIENCE);
    running.kill_and_wait();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap().to_owned();
    (world, session)
}

#[test]
fn of_two_who_resume_one_works_and_the_other_says_who() {
    let gate = Gate::new();
    let (world, session) = interrupted(&gate);
    let one = world.start(&["resume", &session]);
    world.model.wait_for_requests(2, PATIENCE);
    let holder = format!("{}@", one.pid());
    for words in [
        vec!["resume", &session],
        vec!["resume"],
        vec!["run", "--session", &session, "something else"],
    ] {
        let other = world.run(&words).ended_with(4);
        assert!(other.stderr.contains(&holder), "{words:?}: {}", other.stderr);
        assert!(other.stderr.contains("--wait"), "{words:?}: {}", other.stderr);
        assert_eq!(other.stdout, "");
    }
    let other = world.run(&["resume", &session, "--json"]).ended_with(4);
    assert_eq!(other.events().last().unwrap()["error"]["kind"], "in-use", "{other:#?}");
    gate.open();
    assert_eq!(world.ended(one, PATIENCE).ended_with(0).stdout, "answered\n");
    assert_eq!(world.model.requests(), 2);
}

#[test]
fn who_waits_takes_over_when_the_holder_is_killed_and_nothing_runs_twice() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        number @ 0..2 => {
            let command = format!("echo {number} >> count; touch begun{number}; sleep 1");
            Reply::call_of("shell", json!({ "command": command }))
        }
        _ => Reply::text("All counted."),
    });
    let mut holder = world.start(&["run", "--yes", "--json", "count"]);
    let line = holder.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap();
    wait_for("the second command", PATIENCE, || world.workspace().join("begun1").exists());
    let standby = world.start(&["resume", session, "--wait", "--yes"]);
    wait_for("the standby to wait", PATIENCE, || {
        let said = std::fs::read_to_string(world.stderr()).unwrap();
        said.contains(&format!("waiting for {}@", holder.pid()))
    });
    holder.signal(Signal::KILL);
    holder.kill_and_wait();
    let told = world.ended(standby, PATIENCE).ended_with(0);
    assert_eq!(told.stdout, "All counted.\n");
    assert_eq!(world.file("count"), "0\n1\n");
    world.nothing_runs();
    world.model.assert_no_violations();
}

#[test]
fn who_waits_is_told_the_answer_when_the_holder_finishes() {
    let gate = Gate::new();
    let (world, session) = interrupted(&gate);
    let mut holder = world.start(&["resume", &session]);
    world.model.wait_for_requests(2, PATIENCE);
    let standby = world.start(&["resume", &session, "--wait"]);
    wait_for("the standby to wait", PATIENCE, || {
        std::fs::read_to_string(world.stderr()).unwrap().contains("waiting for")
    });
    gate.open();
    assert_eq!(holder.wait(PATIENCE).code(), Some(0));
    assert_eq!(world.ended(standby, PATIENCE).ended_with(0).stdout, "answered\n");
    assert_eq!(world.model.requests(), 2, "the model was asked again");
}

#[test]
fn who_waits_can_be_stopped() {
    let gate = Gate::new();
    let (world, session) = interrupted(&gate);
    let _holder = world.start(&["resume", &session]);
    world.model.wait_for_requests(2, PATIENCE);
    let standby = world.start(&["resume", &session, "--wait", "--json"]);
    wait_for("the standby to wait", PATIENCE, || is_sleeping(standby.pid()));
    standby.signal(Signal::INT);
    let told = world.ended(standby, PATIENCE).ended_with(130);
    assert_eq!(told.events().last().unwrap()["type"], "end", "{told:#?}");
}

/// Whether it has made itself at home with signals: it hears SIGINT.
fn is_sleeping(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}

#[test]
fn an_input_sent_by_many_at_once_is_one_turn() {
    let gate = Gate::new();
    let held = gate.clone();
    let world = World::new(move |_: &ModelRequest| Reply::text("once").held_by(&held));
    let words = ["run", "--key", "letter-7", "read the letter"];
    let one = world.start(&words);
    world.model.wait_for_requests(1, PATIENCE);
    let other = world.run(&words).ended_with(4);
    assert!(other.stderr.contains(&format!("{}@", one.pid())), "{}", other.stderr);
    gate.open();
    assert_eq!(world.ended(one, PATIENCE).ended_with(0).stdout, "once\n");
    assert_eq!(world.run(&words).ended_with(0).stdout, "once\n");

    let crowd: Vec<_> = (0..6)
        .map(|_| {
            let mut command = world.command(&["run", "--key", "letter-8", "read the next letter"]);
            std::thread::spawn(move || Told::from(command.output().unwrap()))
        })
        .collect();
    let told: Vec<Told> = crowd.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(told.iter().any(|one| one.code == Some(0)), "{told:#?}");
    for one in &told {
        match one.code {
            Some(0) => assert_eq!(one.stdout, "once\n"),
            code => assert_eq!(code, Some(4), "{one:#?}"),
        }
    }
    assert_eq!(world.model.requests(), 2, "one request for each letter");
    let list = world.run(&["sessions", "list", "--json"]).ended_with(0).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
}

#[test]
fn a_key_whose_turn_was_killed_goes_on_with_that_turn() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo x >> count; touch begun; sleep 1" })),
        _ => Reply::text("done"),
    });
    let words = ["run", "--yes", "--key", "k", "count"];
    let mut running = world.start(&words);
    wait_for("the command", PATIENCE, || world.workspace().join("begun").exists());
    running.kill_and_wait();
    assert_eq!(world.run(&words).ended_with(0).stdout, "done\n");
    assert_eq!(world.file("count"), "x\n");
    world.nothing_runs();
    world.model.assert_no_violations();
}
