//! What a person is asked, decided from another process.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply, Script, rounds};
use mainstay_testkit::postgres;
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::{Told, World};

/// Puts a program into the workspace of which nobody can know what it does: it adds a line to a file.
pub(crate) fn put_counter(workspace: &Path) {
    put_script(workspace, "count.sh", "echo \"$1\" >> count");
}

pub(crate) fn put_script(workspace: &Path, name: &str, text: &str) {
    let path = workspace.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Calls of that program, one a round.
pub(crate) fn counting(times: usize) -> impl Script {
    rounds(times, |number| ("shell", json!({ "command": format!("./count.sh {number}") })))
        .finally("All counted.")
}

/// Requests that wait, oldest first.
pub(crate) fn waiting(told: &Told) -> Vec<String> {
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    let requests = list["requests"].as_array().unwrap();
    requests.iter().map(|request| request["id"].as_str().unwrap().to_owned()).collect()
}

fn world(times: usize) -> World {
    let world = World::new(counting(times));
    put_counter(&world.workspace());
    world
}

#[test]
fn a_parked_turn_is_approved_by_another_process_and_its_command_runs_once() {
    for store in [None, Some(postgres::fresh())] {
        let world = world(1);
        let with_store = |words: &[&str]| -> Told {
            let place = store.iter().flat_map(|store| ["--store", store.as_str()]);
            world.run(&place.chain(words.iter().copied()).collect::<Vec<_>>())
        };
        let parked = with_store(&["run", "--json", "count"]).ended_with(3);
        let session = parked.session();
        let request = parked.event("parked")["requests"][0].clone();
        let id = request["id"].as_str().unwrap();
        assert!(parked.event("parked")["reason"].as_str().unwrap().contains(id));
        assert_eq!(request["action"], "to run `./count.sh 0`");
        assert_eq!(waiting(&with_store(&["approvals", "--json"])), [id]);
        assert_eq!(world.file("count"), "");

        let approved = with_store(&["approve", id, "--sure"]).ended_with(0);
        assert!(approved.stdout.contains(&format!("resume {session}`")), "{approved:#?}");
        let again = with_store(&["deny", id]).ended_with(1);
        assert!(again.stderr.contains("already approved by `mainstay approve`"), "{again:#?}");
        let over = with_store(&["resume", &session, "--json"]).ended_with(0);
        assert_eq!(over.event("end")["answer"], "All counted.");
        with_store(&["resume", &session]).ended_with(0);
        assert_eq!(world.file("count"), "0\n");
        let all = with_store(&["approvals", "--all", "--json"]).ended_with(0);
        let all: Value = serde_json::from_str(&all.stdout).unwrap();
        assert_eq!(all["requests"][0]["standing"], "approved");
        assert!(all["requests"][0]["used_at"].is_i64(), "{all}");
        world.model.assert_no_violations();
    }
}

#[test]
fn a_parked_turn_says_in_words_what_to_do() {
    let world = world(1);
    let parked = world.run(&["run", "count"]).ended_with(3);
    let id = &waiting(&world.run(&["approvals", "--json"]))[0];
    let hint = format!("Allow it: `mainstay approve {id}`; refuse it: `mainstay deny {id}`.");
    assert!(parked.stderr.contains("shell wants to run `./count.sh 0`"), "{}", parked.stderr);
    assert!(parked.stderr.contains(&hint), "{}", parked.stderr);
    let listed = world.run(&["approvals"]).ended_with(0);
    assert!(listed.stdout.contains(id.as_str()) && listed.stdout.contains("./count.sh 0"));
    let session = listed.stdout.split("session ").nth(1).unwrap().split(';').next().unwrap();
    assert!(parked.stderr.contains(&format!("`mainstay resume {session}`")), "{}", parked.stderr);
}

#[test]
fn an_approval_can_go_on_at_once_and_covers_no_other_call() {
    let world = world(2);
    world.run(&["run", "count"]).ended_with(3);
    let first = waiting(&world.run(&["approvals", "--json"])).remove(0);
    let parked = world.run(&["approve", &first, "--sure", "--resume"]).ended_with(3);
    assert!(parked.stderr.contains("Approved, once"), "{parked:#?}");
    assert_eq!(world.file("count"), "0\n");
    let second = waiting(&world.run(&["approvals", "--json"])).remove(0);
    assert_ne!(first, second);
    let over = world.run(&["approve", &second, "--sure", "--resume"]).ended_with(0);
    assert_eq!(over.stdout, "All counted.\n");
    assert_eq!(world.file("count"), "0\n1\n");
}

#[test]
fn a_denied_command_does_not_run_and_the_model_reads_why() {
    let world = world(1);
    world.run(&["run", "count"]).ended_with(3);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    let words = ["deny", &id, "--reason", "count by hand", "--resume"];
    assert_eq!(world.run(&words).ended_with(0).stdout, "All counted.\n");
    assert_eq!(world.file("count"), "");
    let read = world.model.asked().pop().unwrap().results().pop().unwrap().1;
    assert!(read.contains("said no") && read.contains("count by hand"), "{read}");
}

#[test]
fn an_expired_request_is_refused_and_asked_anew() {
    let world = world(1);
    world.configure_more("[policy]\nrequest_time = 1");
    let parked = world.run(&["run", "--json", "count"]).ended_with(3);
    let first = parked.event("parked")["requests"][0]["id"].as_str().unwrap().to_owned();
    wait_for("the end of the request's time", Duration::from_secs(10), || {
        waiting(&world.run(&["approvals", "--json"])).is_empty()
    });
    let refused = world.run(&["approve", &first, "--sure"]).ended_with(1);
    assert!(refused.stderr.contains("it has expired"), "{refused:#?}");
    let again = world.run(&["resume", "--json"]).ended_with(3);
    let second = again.event("parked")["requests"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    assert_eq!(world.file("count"), "");
    assert_eq!(world.run(&["resume", "--yes"]).ended_with(0).stdout, "All counted.\n");
    assert_eq!(world.file("count"), "0\n");
}

#[test]
fn an_unknown_request_is_told_with_the_next_step() {
    let world = world(1);
    let none = world.run(&["approvals"]).ended_with(1);
    assert!(none.stderr.contains("there is no store"), "{none:#?}");
    world.run(&["run", "count"]).ended_with(3);
    for words in [["approve", "0000000"], ["deny", "0000000"]] {
        let told = world.run(&words).ended_with(2);
        assert!(told.stderr.contains("`mainstay approvals`"), "{told:#?}");
    }
    let told = world.run(&["approvals", "forget", "0000000"]).ended_with(2);
    assert!(told.stderr.contains("`mainstay approvals rules`"), "{told:#?}");
}

#[test]
fn always_is_listed_holds_and_is_forgotten() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        number @ 0..3 => {
            let path = format!("../near/{number}");
            Reply::call_of("write_file", json!({ "path": path, "content": "x" }))
        }
        _ => Reply::text("done"),
    });
    std::fs::create_dir(world.workspace().with_file_name("near")).unwrap();
    world.run(&["run", "write"]).ended_with(3);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    let approved = world.run(&["approve", &id, "--always"]).ended_with(0);
    assert!(approved.stdout.contains("always: changes in "), "{approved:#?}");
    world.run(&["resume"]).ended_with(0);
    let rules = world.run(&["approvals", "rules", "--json"]).ended_with(0);
    let rules: Value = serde_json::from_str(&rules.stdout).unwrap();
    assert_eq!(rules.as_array().unwrap().len(), 1);
    world.run(&["approvals", "forget", rules[0]["id"].as_str().unwrap()]).ended_with(0);
    assert_eq!(world.run(&["approvals", "rules", "--json"]).ended_with(0).stdout, "[]\n");
    world.run(&["run", "again"]).ended_with(3);
}

#[test]
fn always_remembers_the_first_words_of_a_command() {
    let world = World::new(
        rounds(3, |number| {
            let command = ["make all", "make all 2>&1; ls", "make all && ./other.sh"][number];
            ("shell", json!({ "command": command }))
        })
        .finally("made"),
    );
    world.run(&["run", "make"]).ended_with(3);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    // The second is covered, what the third does besides is not.
    world.run(&["approve", &id, "--always", "--resume"]).ended_with(3);
    assert_eq!(world.model.asked().pop().unwrap().results().len(), 2);
    let rest = world.run(&["approvals"]).ended_with(0);
    assert!(rest.stdout.contains("./other.sh"), "{rest:#?}");
    let rules = world.run(&["approvals", "rules"]).ended_with(0);
    assert!(rules.stdout.contains("the command `make"), "{rules:#?}");
}

#[test]
fn the_fourth_approval_in_a_minute_has_to_be_meant() {
    let world = world(4);
    world.run(&["run", "count"]).ended_with(3);
    let next = || waiting(&world.run(&["approvals", "--json"])).remove(0);
    for _ in 0..3 {
        world.run(&["approve", &next(), "--resume"]).ended_with(3);
    }
    let fourth = next();
    let refused = world.run(&["approve", &fourth]).ended_with(1);
    assert!(refused.stderr.contains("3 of this kind"), "{refused:#?}");
    assert!(refused.stderr.contains(&format!("`mainstay approve {fourth} --sure`")));
    assert_eq!(world.file("count"), "0\n1\n2\n");
    let over = world.run(&["approve", &fourth, "--sure", "--resume"]).ended_with(0);
    assert_eq!(over.stdout, "All counted.\n");
    assert_eq!(world.file("count"), "0\n1\n2\n3\n");
}

#[test]
fn a_destructive_command_has_no_always_and_takes_more_than_a_plain_yes() {
    let world = World::new(
        rounds(1, |_| ("shell", json!({ "command": "git push --force" }))).finally("gone"),
    );
    world.run(&["run", "go"]).ended_with(3);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    let refused = world.run(&["approve", &id, "--always", "--sure"]).ended_with(2);
    assert!(refused.stderr.contains("cannot be allowed always"), "{refused:#?}");
    let refused = world.run(&["approve", &id]).ended_with(1);
    assert!(refused.stderr.contains("cannot be restored"), "{refused:#?}");
    assert!(refused.stderr.contains("git push --force"), "{refused:#?}");
    world.run(&["approve", &id, "--sure", "--resume"]).ended_with(0);
}

#[test]
fn a_line_that_calls_mainstay_is_never_run() {
    let world = World::new(
        rounds(1, |_| ("shell", json!({ "command": "ls; mainstay approve 0" }))).finally("no"),
    );
    world.run(&["run", "--yes", "go"]).ended_with(0);
    let read = world.model.asked().pop().unwrap().results().pop().unwrap().1;
    assert!(read.contains("Not allowed") && read.contains("Mainstay itself"), "{read}");
}

#[test]
fn a_command_of_the_agent_cannot_decide_about_the_agent() {
    let world = World::new(rounds(1, |_| ("shell", json!({ "command": "./sneak.sh" }))));
    let program = env!("CARGO_BIN_EXE_mainstay");
    let home = world.home();
    let call = |words: &str| format!("{program} --home {} {words}", home.display());
    // With the marks and without, from a group of its own, and orphaned.
    let script = [
        call("approve 0"),
        format!("env -i {}", call("deny 0")),
        format!("env -i setsid -w {}", call("answer 0 yes")),
        format!("env -i {}", call("approvals forget 0")),
        format!("env -i {}", call("run --yes x")),
        format!("env -i {}", call("resume --yes")),
        format!("( (sleep 0.1; env -i setsid -w {} 2> orphan; touch over) & )", call("approve 0")),
        "while [ ! -e over ]; do sleep 0.02; done".to_owned(),
    ];
    put_script(&world.workspace(), "sneak.sh", &script.join(" 2>&1\n"));
    let kinds = ["execute", "destructive", "network", "write_outside"];
    let lines: Vec<String> = kinds.iter().map(|kind| format!("{kind} = \"allow\"")).collect();
    world.configure_more(&format!("[policy]\n{}", lines.join("\n")));
    world.run(&["run", "sneak"]).ended_with(0);
    let read = world.model.asked().pop().unwrap().results().pop().unwrap().1;
    assert_eq!(read.matches("is for humans only").count(), 6, "{read}");
    assert!(world.file("orphan").contains("is for humans only"), "{}", world.file("orphan"));
}

#[test]
fn a_question_is_answered_from_another_process() {
    let world = World::new(|asked: &ModelRequest| match asked.results().first() {
        None => {
            let arguments = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
            Reply::call_of("ask_user", arguments)
        }
        Some((_, answer)) => Reply::text(format!("painted {answer}")),
    });
    let parked = world.run(&["run", "--json", "paint"]).ended_with(3);
    let question = parked.event("parked")["questions"][0].clone();
    assert_eq!(question["text"], "Which colour?");
    let id = question["id"].as_str().unwrap();
    let listed = world.run(&["approvals"]).ended_with(0);
    assert!(listed.stdout.contains("Which colour?") && listed.stdout.contains("2. blue"));
    assert_eq!(world.run(&["resume"]).code, Some(3), "it went on without an answer");
    let answered = world.run(&["answer", id, "2"]).ended_with(0);
    assert!(answered.stdout.contains("Answered: blue"), "{answered:#?}");
    let late = world.run(&["answer", id, "1"]).ended_with(1);
    assert!(late.stderr.contains("already answered by `mainstay answer`"), "{late:#?}");
    assert_eq!(world.run(&["resume"]).ended_with(0).stdout, "painted blue\n");
    world.model.assert_no_violations();
}
