//! Long outputs are kept whole, packed, in one place.

use std::path::Path;
use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_testkit::postgres;
use mainstay_testkit::process::wait_for;
use serde_json::{Value, json};

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes of all files below a directory.
fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn a_long_output_is_packed_in_the_store_and_leaves_the_spool_when_it_is_there() {
    for store in [None, Some(postgres::fresh())] {
        let gate = Gate::new();
        let held = gate.clone();
        let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
            0 => Reply::call_of("shell", json!({ "command": "seq 1 1300000" })),
            _ => Reply::text("done").held_by(&held),
        });
        let at = |words: &[&str]| -> Vec<String> {
            let place = store.iter().flat_map(|store| ["--store", store.as_str()]);
            place.chain(words.iter().copied()).map(str::to_owned).collect()
        };
        let told = |words: &[&str]| {
            let words = at(words);
            world.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).ended_with(0).stdout
        };
        let words = at(&["run", "--yes", "--json", "go"]);
        let running = world.start(&words.iter().map(String::as_str).collect::<Vec<_>>());
        world.model.wait_for_requests(2, PATIENCE);
        // The keeper lives as long as its agent, which waits for the model.
        let keepers = world.home().join("keepers");
        wait_for("the spool to shrink", PATIENCE, || bytes_below(&keepers) < 1 << 20);
        assert!(bytes_below(&keepers) > 0, "the keeper is gone");
        gate.open();
        world.ended(running, PATIENCE).ended_with(0);
        let info: Value = serde_json::from_str(&told(&["store", "info", "--json"])).unwrap();
        let bytes = info["bytes"].as_u64().unwrap();
        println!("{bytes} bytes in {}", info["engine"]);
        // Some 8 MB as they are.
        assert!(bytes < 5 << 20, "the store has {bytes} bytes");
        // All of it comes along with the session.
        let list: Value = serde_json::from_str(&told(&["sessions", "list", "--json"])).unwrap();
        let exported = told(&["sessions", "export", list[0]["id"].as_str().unwrap()]);
        assert!(exported.len() > 8 << 20, "{} bytes exported", exported.len());
        told(&["store", "check"]);
    }
}
