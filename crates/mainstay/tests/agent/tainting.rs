//! Words from outside: what they change for a session, and how it can be looked at afterwards.

use mainstay_testkit::model::rounds;
use serde_json::{Value, json};

use crate::approving::waiting;
use crate::world::World;

/// A command that asks the network, as far as its words tell, and needs none.
const OUTSIDE: &str = "getent hosts localhost || true";

/// Reads a file, asks the network twice, and writes a file. All of it is allowed.
fn world() -> World {
    let steps = |number| match number {
        0 => ("read_file", json!({ "path": "notes.txt" })),
        1 | 2 => ("shell", json!({ "command": format!("{OUTSIDE} # {number}") })),
        _ => ("write_file", json!({ "path": "out.txt", "content": "done\n" })),
    };
    let world = World::new(rounds(4, steps).finally("All done."));
    std::fs::write(world.workspace().join("notes.txt"), "curl https://example.org\n").unwrap();
    world
}

fn audit(world: &World, session: &str) -> Value {
    serde_json::from_str(&world.run(&["audit", session, "--json"]).ended_with(0).stdout).unwrap()
}

fn items(audit: &Value) -> Vec<(String, bool)> {
    let items = audit["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let kind = item["kind"].as_str().unwrap();
            let words = format!("{} {kind}", item["tool"].as_str().unwrap());
            (words, item["tainted"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn a_tainted_session_asks_before_new_places_in_every_process_and_the_audit_shows_it() {
    let world = world();
    world.configure_more("[policy]\nexecute = \"allow\"\nnetwork = \"allow\"");
    let parked = world.run(&["run", "--json", "look around"]).ended_with(3);
    let session = parked.session();
    let request = parked.event("parked")["requests"][0].clone();
    let reason = request["reason"].as_str().unwrap();
    assert!(reason.contains("has read text from `getent hosts localhost`"), "{reason}");

    let before = audit(&world, &session);
    assert_eq!(before["tainted_by"], "`getent hosts localhost`");
    let expected = [
        ("read_file came".to_owned(), false),
        ("shell ran".to_owned(), false),
        ("shell came".to_owned(), false),
        ("shell asked".to_owned(), true),
    ];
    assert_eq!(items(&before), expected, "{before:#}");
    assert_eq!(before["items"][0]["outside"], false);
    assert_eq!(before["items"][2]["outside"], true);

    // Another process finds the taint in the journal: what was not decided is asked anew.
    world.run(&["resume", &session]).ended_with(3);
    let id = waiting(&world.run(&["approvals", "--json"])).remove(0);
    world.run(&["approve", &id, "--sure", "--resume"]).ended_with(0);
    assert_eq!(world.file("out.txt"), "done\n");
    let after = audit(&world, &session);
    let marked: Vec<String> =
        items(&after).into_iter().filter(|item| item.1).map(|item| item.0).collect();
    assert_eq!(marked, ["shell asked", "shell ran", "shell came", "write_file changed"]);

    let text = world.run(&["audit", &session]).ended_with(0).stdout;
    assert!(text.contains("tainted since"), "{text}");
    let line = text.lines().find(|line| line.contains("changed out.txt")).unwrap();
    assert!(line.starts_with('!'), "{text}");
    let line = text.lines().find(|line| line.contains("from notes.txt")).unwrap();
    assert!(line.starts_with(' '), "{text}");
}

#[test]
fn who_said_yes_to_everything_is_not_asked_and_what_a_file_says_taints_nothing() {
    let world = world();
    let ran = world.run(&["run", "--yes", "--json", "look around"]).ended_with(0);
    let seen = audit(&world, &ran.session());
    assert_eq!(items(&seen).last().unwrap(), &("write_file changed".to_owned(), true));
    let read =
        World::new(rounds(1, |_| ("read_file", json!({ "path": "notes.txt" }))).finally("Read."));
    std::fs::write(read.workspace().join("notes.txt"), "words\n").unwrap();
    let session = read.run(&["run", "--json", "read"]).ended_with(0).session();
    assert_eq!(audit(&read, &session)["tainted_since"], Value::Null);
    let text = read.run(&["audit", &session]).ended_with(0).stdout;
    assert!(text.contains("not tainted"), "{text}");
    read.run(&["audit", "nothing"]).ended_with(2);
}
