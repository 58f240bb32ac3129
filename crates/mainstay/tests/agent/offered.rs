//! Which tools a model is told of, through the life of a session.

use std::time::Duration;

use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::process::wait_for;
use serde_json::json;

use crate::world::World;

const SMALL: &str = "[models.\"local/qwen\"]\nwindow = 8192";

#[test]
fn a_tool_that_was_asked_for_is_offered_from_then_on_also_after_a_kill() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("more_tools", json!({ "names": ["glob", "teleport"] })),
        1 => Reply::call_of("shell", json!({ "command": "touch begun; sleep 1" })),
        _ => Reply::text("done"),
    });
    world.configure_more(SMALL);
    let mut running = world.start(&["run", "--yes", "--json", "look"]);
    wait_for("the command", Duration::from_secs(20), || world.workspace().join("begun").exists());
    running.kill_and_wait();
    world.run(&["resume", "--yes"]).ended_with(0);
    let asked = world.model.asked();
    let first = asked[0].tool_names();
    assert!(!first.contains(&"glob".to_owned()), "{first:?}");
    assert!(first.contains(&"more_tools".to_owned()), "{first:?}");
    let mut later = first;
    later.push("glob".to_owned());
    for request in &asked[1..] {
        assert_eq!(request.tool_names(), later, "request {}", request.number);
    }
    assert_eq!(asked.len(), 3);
    let result = &asked[1].results()[0].1;
    assert!(result.contains("Loaded: glob. Not found: teleport."), "{result}");
    world.model.assert_no_violations();
}

#[test]
fn a_tool_that_was_not_asked_for_runs_when_its_name_is_called() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("glob", json!({ "pattern": "*.txt" })),
        _ => Reply::text("done"),
    });
    world.configure_more(SMALL);
    std::fs::write(world.workspace().join("here.txt"), "").unwrap();
    world.run(&["run", "look"]).ended_with(0);
    let asked = world.model.asked();
    assert!(asked[1].results()[0].1.contains("here.txt"), "{:?}", asked[1].results());
    world.model.assert_no_violations();
}
