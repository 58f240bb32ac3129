//! Sessions as a whole: forked, renamed, taken along, deleted, pruned; and where their tokens go.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::{Told, World};

/// A world whose model runs a command with a long output in the first turn and then repeats what it
/// was told.
fn world() -> World {
    World::new(|asked: &ModelRequest| {
        if asked.results().is_empty() {
            let command = "seq 1 40000; echo made > made";
            return Reply::call_of("shell", json!({ "command": command })).usage(1_000, 0, 10);
        }
        let messages = asked.body["messages"].as_array().unwrap().len();
        Reply::text(format!("{messages} messages")).usage(3_000, 0, 10)
    })
}

fn data(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
}

fn begun(world: &World) -> String {
    world.run(&["run", "--yes", "--json", "first question"]).ended_with(0).session()
}

fn list(world: &World) -> Vec<String> {
    let list = data(&world.run(&["sessions", "list", "--json"]).ended_with(0));
    let ids = list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// Rows of the tables that hold something of sessions.
fn rows(world: &World) -> Value {
    let info = data(&world.run(&["store", "info", "--json"]).ended_with(0));
    let mut rows = info["tables"].clone();
    for table in ["model_calls", "leases", "budgets", "topics", "events", "writers"] {
        rows.as_object_mut().unwrap().remove(table);
    }
    rows
}

#[test]
fn a_fork_goes_its_own_way() {
    let world = world();
    let parent = begun(&world);
    world.run(&["run", "--session", &parent, "second"]).ended_with(0);
    let forked =
        data(&world.run(&["sessions", "fork", &parent, "--at", "1", "--json"]).ended_with(0));
    let id = forked["id"].as_str().unwrap().to_owned();
    assert_eq!((&forked["parent"], &forked["turns"]), (&json!(parent), &json!(1)));
    let heard = world.run(&["run", "--session", &id, "another second"]).ended_with(0);
    let also = world.run(&["run", "--session", &parent, "third"]).ended_with(0);
    assert_ne!(heard.stdout, also.stdout, "they share more than their beginning");
    let shown = world.run(&["sessions", "show", &id]).ended_with(0).stdout;
    assert!(shown.contains(&format!("forked from {parent}")), "{shown}");
    assert!(shown.contains("first question") && shown.contains("another second"), "{shown}");
    assert!(!shown.contains("third"), "{shown}");
    let wrong = world.run(&["sessions", "fork", &parent, "--at", "9"]).ended_with(2);
    assert!(wrong.stderr.contains("has no turn 9"), "{wrong:#?}");
    world.model.assert_no_violations();
}

#[test]
fn a_session_is_renamed() {
    let world = world();
    let id = begun(&world);
    world.run(&["sessions", "rename", &id, "a better name"]).ended_with(0);
    assert!(world.run(&["sessions", "list"]).ended_with(0).stdout.contains("a better name"));
    world.run(&["sessions", "rename", &id, "two\nlines"]).ended_with(2);
}

#[test]
fn a_session_is_taken_along_to_another_home_and_goes_on_there() {
    let world = world();
    let id = begun(&world);
    world.run(&["sessions", "export", &id, "--to", "file.jsonl"]).ended_with(0);
    world.run(&["sessions", "export", &id, "--to", "file.jsonl"]).ended_with(2);
    let told = world.run(&["sessions", "export", &id]).ended_with(0).stdout;
    assert_eq!(told, world.file("file.jsonl"));

    let elsewhere = self::world();
    let file = world.workspace().join("file.jsonl");
    let workspace = elsewhere.workspace();
    let (file, workspace) = (file.to_str().unwrap(), workspace.to_str().unwrap());
    let words = ["sessions", "import", file, "--workspace", workspace, "--json"];
    let new = data(&elsewhere.run(&words).ended_with(0))["id"].as_str().unwrap().to_owned();
    assert_ne!(new, id);
    let told = elsewhere.run(&["run", "--session", &new, "go on"]).ended_with(0);
    assert!(told.stdout.contains("messages"), "{told:#?}");
    let asked = elsewhere.model.asked().pop().unwrap();
    assert_eq!(asked.results().len(), 1, "what was done there is not known here");
    elsewhere.model.assert_no_violations();

    // It brings words, and they are from outside: neither its prompt nor its directory come along.
    let before = &world.model.asked().pop().unwrap().system();
    assert!(before.contains(world.workspace().to_str().unwrap()), "{before}");
    assert!(!asked.system().contains(world.workspace().to_str().unwrap()), "{}", asked.system());
    assert!(asked.system().contains(workspace), "{}", asked.system());
    let audit = elsewhere.run(&["audit", &new]).ended_with(0);
    assert!(audit.stdout.contains("an imported session"), "{audit:#?}");
    let again = elsewhere.run(&["run", "--session", &new, "and on"]).ended_with(0);
    assert!(again.stdout.contains("messages"), "{again:#?}");
    assert_eq!(elsewhere.model.asked().pop().unwrap().system(), asked.system(), "a prompt stays");
    let here = data(&elsewhere.run(&["sessions", "import", file, "--json"]).ended_with(0));
    assert_eq!(here["workspace"], workspace, "without --workspace it is this directory");

    std::fs::write(file, told.stdout).unwrap();
    let refused = elsewhere.run(&["sessions", "import", file]).ended_with(1);
    assert!(refused.stderr.contains("not a session that Mainstay wrote"), "{refused:#?}");
}

#[test]
fn what_is_deleted_leaves_only_its_costs() {
    let world = world();
    let first = begun(&world);
    world.run(&["sessions", "delete", &first, "--yes"]).ended_with(0);
    let before = rows(&world);
    assert_eq!(before["sessions"], 0, "{before}");
    assert_eq!(before["snapshot_objects"], 0, "{before}");
    assert_eq!(before["blobs"], 0, "{before}");
    let cost = data(&world.run(&["cost", "--json"]).ended_with(0));
    assert_eq!(cost["parts"][0]["calls"], 2, "{cost}");

    let (second, third) = (begun(&world), begun(&world));
    let deleted = world.run(&["sessions", "delete", &second, &third, &second, "--yes", "--json"]);
    assert_eq!(data(&deleted.ended_with(0))["deleted"].as_array().unwrap().len(), 2);
    assert_eq!(rows(&world), before);
    let unknown = world.run(&["sessions", "delete", &second, "--yes"]).ended_with(2);
    assert!(unknown.stderr.contains("sessions list"), "{unknown:#?}");
}

#[test]
fn nobody_is_asked_where_nobody_is() {
    let world = world();
    let id = begun(&world);
    let mut command = world.command(&["sessions", "delete", &id]);
    let told = Told::from(command.stdin(std::process::Stdio::null()).output().unwrap());
    assert!(told.ended_with(2).stderr.contains("--yes"));
    assert_eq!(list(&world), [id]);
}

#[test]
fn pruning_spares_what_is_in_use_or_waits() {
    let world = World::new(|asked: &ModelRequest| {
        if asked.last_user_text().contains("wait") && asked.results().is_empty() {
            return Reply::call_of("shell", json!({ "command": "./wait.sh" }));
        }
        Reply::text("done")
    });
    let script = world.workspace().join("wait.sh");
    std::fs::write(&script, "#!/bin/sh\ntouch begun; sleep 60\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |text: &str| world.run(&["run", "--json", text]);
    let old = run("old").ended_with(0).session();
    let parked = run("wait").ended_with(3).session();
    let newest = run("new").ended_with(0).session();
    let mut running = world.start(&["run", "--yes", "--json", "wait"]);
    wait_for("the command", Duration::from_secs(10), || world.workspace().join("begun").exists());
    let used = list(&world)[0].clone();

    let prune = |more: &[&str]| {
        let mut words = vec!["sessions", "prune", "--older-than", "0h", "--json"];
        words.extend(more);
        data(&world.run(&words).ended_with(0))
    };
    let would = prune(&["--dry-run"]);
    assert_eq!(would["would_delete"], json!([newest, old]), "{would}");
    let done = prune(&["--yes", "--keep", "2"]);
    assert_eq!(done["deleted"], json!([old]), "{done}");
    assert_eq!(done["unfinished"], json!([parked]), "{done}");
    let done = prune(&["--yes", "--unfinished"]);
    assert_eq!(done["deleted"], json!([newest, parked]), "{done}");
    assert_eq!(done["in_use"][0]["id"], json!(used), "{done}");
    assert_eq!(list(&world), [used]);
    running.kill_and_wait();
}

#[test]
fn the_context_says_where_the_tokens_go() {
    let world = world();
    std::fs::write(world.workspace().join("AGENTS.md"), "Be kind. ".repeat(200)).unwrap();
    let id = begun(&world);
    let window = data(&world.run(&["context", &id, "--json"]).ended_with(0));
    let part = |name: &str| {
        let parts = window["parts"].as_array().unwrap();
        let found = parts.iter().find(|part| part["name"].as_str().unwrap().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {window}"))["tokens"].as_u64().unwrap()
    };
    for name in ["system prompt", "instructions from /", "tools", "your messages", "answers"] {
        assert!(part(name) > 0, "{name}: {window}");
    }
    // The provider counted 3000 tokens for all but its last answer.
    let all = window["tokens"].as_u64().unwrap();
    assert!((2_950..3_050).contains(&all), "{window}");
    assert_eq!(window["counted"]["tokens"], 3_000);
    assert_eq!(window["largest"][0]["tool"], "shell");
    let text = world.run(&["context"]).ended_with(0).stdout;
    assert!(text.contains("tool results") && text.contains("Scaled to the last count"), "{text}");
}
