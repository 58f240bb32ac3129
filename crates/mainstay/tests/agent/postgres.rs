//! The same agent with its record in PostgreSQL.

use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply, rounds};
use mainstay_testkit::postgres;
use mainstay_testkit::process::{Signal, wait_for};
use mainstay_testkit::proxy::PgProxy;
use serde_json::json;

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_turn_is_killed_and_resumed_with_its_record_in_postgresql() {
    let store = postgres::fresh();
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        number @ 0..5 => {
            let command = format!("echo {number} >> count; sleep 0.2");
            Reply::call_of("shell", json!({ "command": command }))
        }
        5 => Reply::call_of("process", json!({ "action": "list" })),
        _ => Reply::text("All counted."),
    });
    let mut running = world.start(&["--store", &store, "run", "--yes", "--json", "count"]);
    running.line_with("\"session\"", PATIENCE);
    wait_for("the third command", PATIENCE, || world.file("count").contains('2'));
    running.signal(Signal::KILL);
    running.kill_and_wait();
    let held = world.run(&["--store", &store, "resume", "--yes", "--json"]).ended_with(0);
    assert_eq!(held.event("end")["answer"], "All counted.");
    assert_eq!(world.file("count"), "0\n1\n2\n3\n4\n");
    world.nothing_runs();
    world.model.assert_no_violations();
    let cost = world.run(&["--store", &store, "cost", "--json"]).ended_with(0);
    let cost: serde_json::Value = serde_json::from_str(&cost.stdout).unwrap();
    assert!(cost["parts"][0]["calls"].as_i64().unwrap() >= 7, "{cost}");
    assert!(!world.home().join("store.db").exists(), "a store was made in the home");
}

#[test]
fn a_session_in_postgresql_has_one_owner_at_a_time() {
    let store = postgres::fresh();
    let world = World::new(
        rounds(1, |_| ("shell", json!({ "command": "touch begun; sleep 1; echo x >> count" })))
            .finally("done"),
    );
    let mut holder = world.start(&["--store", &store, "run", "--yes", "--json", "count"]);
    let line = holder.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap();
    wait_for("the command", PATIENCE, || world.workspace().join("begun").exists());
    let other = world.run(&["--store", &store, "resume", session]).ended_with(4);
    assert!(other.stderr.contains(&format!("{}@", holder.pid())), "{}", other.stderr);
    holder.kill_and_wait();
    let told = world.run(&["--store", &store, "resume", session, "--wait"]).ended_with(0);
    assert_eq!(told.stdout, "done\n");
    assert_eq!(world.file("count"), "x\n");
    world.nothing_runs();
}

#[test]
fn words_that_a_database_cannot_store_do_not_stop_a_turn() {
    let store = postgres::fresh();
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "printf 'a\\000b\\377c'" })),
        _ => Reply::text("nul \u{0} said"),
    });
    for place in [vec!["--store", store.as_str()], vec![]] {
        let words = [place, vec!["run", "--yes", "begin"]].concat();
        world.run(&words).ended_with(0);
    }
    world.model.assert_no_violations();
}

#[test]
fn slow_a_cut_to_postgresql_that_is_shorter_than_the_lease_does_not_end_a_run() {
    // Longer than a statement is waited for, so that every connection is given up and made anew; the
    // lease of 30 s was renewed less than 10 s before.
    const CUT: Duration = Duration::from_secs(13);
    let proxy = PgProxy::start(&postgres::socket_directory());
    let store = proxy.url(&postgres::fresh_schema());
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        number @ 0..3 => {
            let command = format!("echo {number} >> count");
            Reply::call_of("shell", json!({ "command": command }))
        }
        _ => Reply::text("All counted."),
    });
    let mut running = world.start(&["--store", &store, "run", "--yes", "--json", "count"]);
    running.line_with("\"session\"", PATIENCE);
    wait_for("the first command", PATIENCE, || world.file("count").contains('0'));
    proxy.silence();
    std::thread::sleep(CUT);
    assert!(running.is_running(), "it did not wait for PostgreSQL");
    proxy.up();
    let told = world.ended(running, PATIENCE).ended_with(0);
    assert_eq!(told.event("end")["answer"], "All counted.");
    assert_eq!(world.file("count"), "0\n1\n2\n", "each ran once");
    world.nothing_runs();
}
