//! A store of every past version opens, and its sessions go on.
//!
//! A version's file is made once, by the program of that time, with `mainstay backup`, and never
//! changed. It holds a session whose turn was answered, and one that was killed, with its keeper, in
//! the second of three commands.

use std::path::Path;

use mainstay_store::{Location, Options, Schema, Store, params};
use mainstay_testkit::model::rounds;
use serde_json::{Value, json};

use crate::world::World;

/// What the program writes now.
const NEWEST: &str = "agent 4, journal 2, store 1";
const VERSIONS: [&str; 1] = ["store-1-journal-1-agent-1.db"];

/// Puts the store of a past version into a world.
fn put(world: &World, version: &str) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    let path = world.home().join("store.db");
    std::fs::copy(kept, &path).unwrap();
    // The parts above the store are not told of, and so not changed.
    let store = Store::open(&Location::file(&path), Options::new(Schema::default())).unwrap();
    let workspace = world.workspace().display().to_string();
    store
        .write(|tx| {
            tx.execute("UPDATE sessions SET workspace = ?1", params![workspace])?;
            // Whoever held it is gone for long.
            tx.execute("UPDATE leases SET expires_at = 0", params![]).map(drop)
        })
        .unwrap();
}

#[test]
fn a_session_of_every_past_version_goes_on() {
    for version in VERSIONS {
        let world = World::new(
            rounds(3, |number| ("shell", json!({ "command": format!("echo {number} >> count") })))
                .finally("All counted."),
        );
        put(&world, version);
        let list = world.run(&["sessions", "list", "--json"]).ended_with(0);
        let list: Value = serde_json::from_str(&list.stdout).unwrap();
        assert_eq!(
            (list[0]["title"].as_str(), list[1]["title"].as_str()),
            (Some("count again"), Some("count first"))
        );
        let told = world.run(&["resume", "--yes", "--json"]).ended_with(0);
        assert_eq!(told.session(), list[0]["id"].as_str().unwrap());
        assert_eq!(told.event("end")["answer"], "All counted.", "{version}: {told:#?}");
        // The command that was killed is in doubt and not run again.
        assert!(told.stdout.contains("outcome unknown"), "{told:#?}");
        assert_eq!(world.file("count"), "2\n");
        let answered = list[1]["id"].as_str().unwrap();
        let told = world.run(&["resume", answered]).ended_with(0);
        assert_eq!(told.stdout.trim(), "All counted.");
        world.run(&["run", "--session", answered, "--yes", "more"]).ended_with(0);
        world.run(&["undo", answered]).ended_with(0);
        world.run(&["sessions", "fork", answered]).ended_with(0);
        world.run(&["sessions", "delete", answered, "--yes"]).ended_with(0);
        world.run(&["store", "check"]).ended_with(0);
        let info = world.run(&["store", "info"]).ended_with(0).stdout;
        assert!(info.contains(NEWEST), "keep a file of the version before this one: {info}");
        world.model.assert_no_violations();
    }
}
