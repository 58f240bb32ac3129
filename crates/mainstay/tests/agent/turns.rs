//! Turns from beginning to end.

use mainstay_testkit::model::{Reply, Shape, rounds};
use serde_json::json;

use crate::world::World;

const SHAPES: [Shape; 4] = [Shape::Chat, Shape::Responses, Shape::Anthropic, Shape::Ollama];

fn counting(rounds_wanted: usize) -> impl mainstay_testkit::model::Script {
    rounds(rounds_wanted, |number| {
        ("shell", json!({ "command": format!("echo {number} >> count; echo did {number}") }))
    })
    .finally("All counted.")
}

#[test]
fn a_turn_of_tool_rounds_ends_with_the_answer_in_every_wire_format() {
    for shape in SHAPES {
        let world = World::speaking(shape, counting(3));
        let told = world.run(&["run", "--yes", "count to three"]).ended_with(0);
        assert_eq!(told.stdout, "All counted.\n", "{shape:?}");
        assert_eq!(world.file("count"), "0\n1\n2\n", "{shape:?}");
        world.model.assert_no_violations();
        world.nothing_runs();
    }
}

#[test]
fn events_are_one_line_each_from_the_session_to_the_end() {
    let world = World::new(counting(2));
    let told = world.run(&["run", "--yes", "--json", "count"]).ended_with(0);
    let events = told.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"session"));
    assert_eq!(kinds.get(1), Some(&"turn"));
    assert_eq!(kinds.last(), Some(&"end"));
    let calls = kinds.iter().filter(|kind| **kind == "tool_call").count();
    let results = kinds.iter().filter(|kind| **kind == "tool_result").count();
    assert_eq!((calls, results), (2, 2));
    let end = told.event("end");
    assert_eq!((&end["outcome"], &end["answer"]), (&json!("answered"), &json!("All counted.")));
    assert!(end["usage"]["output"].as_u64().unwrap() > 0, "{end}");
    assert!(end["cost"].is_number(), "{end}");
}

#[test]
fn the_first_request_is_lean() {
    let world = World::new(counting(0));
    world.run(&["run", "hello"]).ended_with(0);
    let asked = world.model.asked();
    assert!(asked[0].bytes < 12 * 1024, "{} bytes", asked[0].bytes);
    let names = asked[0].tool_names();
    for name in ["shell", "process", "read_file", "write_file", "edit_file", "list", "glob", "grep"]
    {
        assert!(names.iter().any(|offered| offered == name), "{name} is not in {names:?}");
    }
}

#[test]
fn the_same_key_is_the_same_turn() {
    let world = World::new(counting(1));
    let first = world.run(&["run", "--yes", "--key", "k1", "count"]).ended_with(0);
    let again = world.run(&["run", "--yes", "--key", "k1", "count"]).ended_with(0);
    assert_eq!(first.stdout, again.stdout);
    assert_eq!(world.file("count"), "0\n");
    assert_eq!(world.model.requests(), 2, "the model was asked again");
}

#[test]
fn a_session_goes_on_with_what_was_said_before() {
    let world = World::new(mainstay_testkit::model::Replies::new([
        Reply::text("first answer"),
        Reply::text("second answer"),
    ]));
    let first = world.run(&["run", "--json", "one"]).ended_with(0);
    let id = first.event("session")["id"].as_str().unwrap().to_owned();
    let second = world.run(&["run", "--session", &id[..12], "two"]).ended_with(0);
    assert_eq!(second.stdout, "second answer\n");
    let asked = world.model.asked();
    let body = asked[1].body.to_string();
    assert!(body.contains("first answer") && body.contains("one"), "{body}");
    assert_eq!(asked[0].system(), asked[1].system(), "the prompt changed within a session");
    world.model.assert_no_violations();
}

#[test]
fn without_yes_a_command_parks_the_turn_and_yes_lets_it_go_on() {
    let world = World::new(counting(1));
    world.configure_more("[policy]\nwrite = \"ask\"");
    let parked = world.run(&["run", "--json", "count"]).ended_with(3);
    assert!(parked.event("parked")["reason"].as_str().unwrap().contains("echo 0 >> count"));
    assert_eq!(parked.event("end")["outcome"], "parked");
    assert_eq!(world.file("count"), "", "it ran without being allowed");
    let again = world.run(&["resume"]).ended_with(3);
    assert!(again.stderr.contains("--yes"), "{}", again.stderr);
    let done = world.run(&["resume", "--yes"]).ended_with(0);
    assert_eq!(done.stdout, "All counted.\n");
    assert_eq!(world.file("count"), "0\n");
    world.model.assert_no_violations();
}

#[test]
fn a_failure_is_kept_told_to_the_model_and_can_be_resumed() {
    let world = World::new(mainstay_testkit::model::Replies::new([
        Reply::call_of("shell", json!({ "command": "echo 0 >> count" })),
        Reply::status(401, "that key is wrong"),
        Reply::text("done after all"),
    ]));
    let failed = world.run(&["run", "--yes", "count"]).ended_with(1);
    assert!(failed.stderr.contains("that key is wrong"), "{}", failed.stderr);
    assert!(failed.stderr.contains("mainstay resume "), "{}", failed.stderr);
    let words: Vec<&str> = failed.stderr.split('`').collect();
    let id = words[1].split_whitespace().last().unwrap();
    let done = world.run(&["resume", id]).ended_with(0);
    assert_eq!(done.stdout, "done after all\n");
    assert_eq!(world.file("count"), "0\n");
    let last = world.model.asked().pop().unwrap();
    assert!(last.body.to_string().contains("that key is wrong"), "the model was not told");
    world.model.assert_no_violations();
}

#[test]
fn going_in_circles_is_ended_with_a_report() {
    let world = World::new(|_: &mainstay_testkit::model::ModelRequest| {
        Reply::call_of("read_file", json!({ "path": "a.txt" }))
    });
    std::fs::write(world.workspace().join("a.txt"), "the same").unwrap();
    let told = world.run(&["run", "read"]).ended_with(1);
    assert!(told.stderr.contains("with the same result"), "{}", told.stderr);
    assert!(world.model.requests() <= 20, "{} requests", world.model.requests());
    world.model.assert_no_violations();
}

#[test]
fn a_budget_stops_the_turn_before_the_call_that_would_pass_it() {
    let world = World::new(counting(5));
    world.configure_more("[models.\"local/qwen\"]\ninput = 100.0\noutput = 100.0");
    let parked = world.run(&["run", "--yes", "--budget", "0.01", "count"]).ended_with(3);
    assert!(parked.stderr.contains("this turn's budget is spent"), "{}", parked.stderr);
    assert_eq!(world.model.requests(), 0, "a model was asked without a reservation");
    let done = world.run(&["resume", "--yes", "--budget", "100"]).ended_with(0);
    assert_eq!(done.stdout, "All counted.\n");
    let cost = world.run(&["cost", "--json"]).ended_with(0);
    let cost: serde_json::Value = serde_json::from_str(&cost.stdout).unwrap();
    assert!(cost["cost_usd"].as_f64().unwrap() > 0.0, "{cost}");
}
