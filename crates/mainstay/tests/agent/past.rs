//! A store of every past version opens, and its sessions go on.
//!
//! A version's file is made once, by the program of that time, with `mainstay backup`, and never
//! changed. It holds a session whose turn was answered, and one that was killed, with its keeper, in
//! the second of three commands. The file of the newest version is made anew each time and left under
//! `target/tmp`: before a migration is added it is copied from there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_store::{Location, Options, Schema, Store, params};
use mainstay_testkit::model::rounds;
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::World;

/// What the program writes now.
const NEWEST: &str = "agent 6, journal 4, memory 1, search 1, skills 1, store 2";
const VERSIONS: [&str; 5] = [
    "store-1-journal-1-agent-1.db",
    "store-1-journal-2-agent-4.db",
    "store-1-journal-3-agent-4.db",
    "store-1-journal-4-agent-4.db",
    "store-2-journal-4-agent-5.db",
];

/// Puts the store of a version into a world.
fn put(world: &World, kept: &Path) {
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
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for version in VERSIONS.map(|version| fixtures.join(version)).into_iter().chain([made()]) {
        let world = World::new(
            rounds(3, |number| ("shell", json!({ "command": format!("echo {number} >> count") })))
                .finally("All counted."),
        );
        put(&world, &version);
        let list = world.run(&["sessions", "list", "--json"]).ended_with(0);
        let list: Value = serde_json::from_str(&list.stdout).unwrap();
        assert_eq!(
            (list[0]["title"].as_str(), list[1]["title"].as_str()),
            (Some("count again"), Some("count first"))
        );
        let told = world.run(&["resume", "--yes", "--json"]).ended_with(0);
        assert_eq!(told.session(), list[0]["id"].as_str().unwrap());
        assert_eq!(told.event("end")["answer"], "All counted.", "{version:?}: {told:#?}");
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

/// Makes the file of this version.
fn made() -> PathBuf {
    let world = World::new(
        rounds(3, |number| {
            let wait = if number == 1 { "test ! -e wait || sleep 60; " } else { "" };
            ("shell", json!({ "command": format!("{wait}echo {number} >> count") }))
        })
        .finally("All counted."),
    );
    world.run(&["run", "--yes", "count first"]).ended_with(0);
    std::fs::write(world.workspace().join("wait"), "").unwrap();
    let mut running = world.start(&["run", "--yes", "count again"]);
    let sleeps = || world.processes().iter().any(|line| line.ends_with("sleep 60 "));
    wait_for("the second command", Duration::from_secs(20), sleeps);
    running.kill_and_wait();
    for line in world.processes() {
        let pid = line.split(':').next().and_then(|pid| pid.parse().ok()).unwrap();
        // One may go by itself when another does.
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        );
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store-of-this-version.db");
    let _ = std::fs::remove_file(&made);
    world.run(&["backup", &made.display().to_string()]).ended_with(0);
    made
}
