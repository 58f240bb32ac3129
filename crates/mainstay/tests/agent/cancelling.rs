//! Somebody stops the agent: it ends soon, nothing is left running, and the session goes on.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, Reply, Script};
use mainstay_testkit::process::{Running, Signal, wait_for};
use serde_json::json;

use crate::world::World;

const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
const SOON: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Says this to the first input, and goes on at the second.
fn first(reply: impl Fn() -> Reply + Send + 'static) -> impl Script {
    move |asked: &ModelRequest| match asked.last_user_text().contains("go on") {
        true => Reply::text("went on"),
        false => reply(),
    }
}

/// Runs the first turn until it stands where it is to be stopped.
fn begun(world: &World) -> (Running, String) {
    let mut running = world.start(&["run", "--yes", "--json", "begin"]);
    let line = running.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    (running, event["id"].as_str().unwrap().to_owned())
}

/// Stops it, and sees that it ended, is recorded, left nothing and can go on.
fn stopped(world: &World, running: Running, session: &str, signal: Signal) {
    running.signal(signal);
    let told = world.ended(running, SOON).ended_with(130);
    assert_eq!(told.event("end")["outcome"], "cancelled", "{told:#?}");
    world.nothing_runs();
    let shown = world.run(&["sessions", "show", session, "--json"]).ended_with(0).stdout;
    assert!(shown.contains("\"cancelled\""), "{shown}");

    let more = world.run(&["run", "--session", session, "go on"]).ended_with(0);
    assert_eq!(more.stdout, "went on\n");
    let last = world.model.asked().pop().unwrap();
    assert!(last.body.to_string().contains("the user stopped the turn"), "the model is not told");
    world.model.assert_no_violations();
}

#[test]
fn a_silent_model_is_not_waited_for() {
    for signal in SIGNALS {
        let world = World::new(first(|| Reply::text("never").stall_before_first_byte()));
        let (running, session) = begun(&world);
        world.model.wait_for_requests(1, PATIENCE);
        stopped(&world, running, &session, signal);
    }
}

#[test]
fn a_streaming_model_is_not_heard_out() {
    for signal in SIGNALS {
        let world =
            World::new(first(|| Reply::text("some words that do not end").stall_after_events(3)));
        let (mut running, session) = begun(&world);
        running.line_with("\"text\"", PATIENCE);
        stopped(&world, running, &session, signal);
    }
}

#[test]
fn a_wait_before_another_try_ends_and_the_tries_are_counted() {
    for signal in SIGNALS {
        let world =
            World::new(first(|| Reply::status(503, "busy now").header("retry-after", "30")));
        let (mut running, session) = begun(&world);
        running.line_with("waiting", PATIENCE);
        stopped(&world, running, &session, signal);
        let cost = world.run(&["cost", "--json"]).ended_with(0);
        let cost: serde_json::Value = serde_json::from_str(&cost.stdout).unwrap();
        assert_eq!(cost["parts"][0]["calls"], 2, "{cost}");
        assert_eq!(cost["parts"][0]["failed"], 1, "{cost}");
    }
}

#[test]
fn whatever_a_command_does_to_escape_it_is_gone() {
    let escapes = [
        "touch ready; sleep 300 | cat",
        "setsid sleep 300 & touch ready; sleep 300",
        "(setsid sh -c 'sleep 300 & sleep 300' &); touch ready; sleep 300",
        "trap '' TERM INT HUP; touch ready; while :; do sleep 1; done",
    ];
    for (number, escape) in escapes.into_iter().enumerate() {
        let world =
            World::new(first(move || Reply::call_of("shell", json!({ "command": escape }))));
        let (running, session) = begun(&world);
        wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
        stopped(&world, running, &session, SIGNALS[number % 3]);
        let asked = world.model.asked().pop().unwrap();
        let (_, result) = asked.results().pop().unwrap();
        assert!(result.contains("stopped"), "{escape}: {result}");
        assert!(!result.contains("outcome unknown"), "{escape}: {result}");
    }
}

#[test]
fn a_key_press_that_reaches_the_whole_group_stops_it_in_good_order() {
    let command = json!({ "command": "touch ready; sleep 300" });
    let world = World::new(first(move || Reply::call_of("shell", &command)));
    let mut command = world.command(&["run", "--yes", "--json", "begin"]);
    let mut running = world.started(command.process_group(0));
    let line = running.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap().to_owned();
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    let group = format!("-{}", running.pid());
    Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    let told = world.ended(running, SOON).ended_with(130);
    assert_eq!(told.event("end")["outcome"], "cancelled", "{told:#?}");
    world.nothing_runs();
    world.run(&["run", "--session", &session, "go on"]).ended_with(0);
    world.model.assert_no_violations();
}

#[test]
fn a_background_process_goes_with_a_cancelled_turn_and_its_end_is_told() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        _ if asked.last_user_text().contains("go on") => Reply::text("went on"),
        0 => Reply::call_of("process", json!({ "action": "start", "command": "sleep 300" })),
        _ => Reply::call_of("shell", json!({ "command": "touch ready; sleep 300" })),
    });
    let (running, session) = begun(&world);
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    stopped(&world, running, &session, Signal::INT);
    let last = world.model.asked().pop().unwrap().body.to_string();
    assert_eq!(last.matches("the background process").count(), 1, "{last}");
}

#[test]
fn a_turn_started_under_nohup_survives_the_end_of_its_terminal() {
    let gate = Gate::new();
    let held = gate.clone();
    let world = World::new(move |_: &ModelRequest| Reply::text("still here").held_by(&held));
    let program = world.command(&["run", "hello"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program.get_program());
    command.args(program.get_args()).current_dir(world.workspace()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = world.started(&mut command);
    world.model.wait_for_requests(1, PATIENCE);
    running.signal(Signal::HUP);
    gate.open();
    let told = world.ended(running, PATIENCE).ended_with(0);
    assert_eq!(told.stdout, "still here\n");
}

#[test]
fn a_second_key_press_ends_at_once_and_the_session_still_goes_on() {
    let command = json!({ "command": "touch ready; sleep 300" });
    let world = World::new(first(move || Reply::call_of("shell", &command)));
    let mut command = world.command(&["run", "--yes", "--json", "begin"]);
    let mut running = world.started(command.env("MAINSTAY_KEEPER_GRACE", "1"));
    let line = running.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap().to_owned();
    wait_for("the command", PATIENCE, || world.workspace().join("ready").exists());
    // A keeper that does not answer is what the first key press would wait for.
    let keepers: Vec<String> = world
        .processes()
        .iter()
        .filter(|line| line.contains(" keeper "))
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    assert!(!keepers.is_empty());
    Command::new("kill").arg("-STOP").args(&keepers).status().unwrap();
    // Pressed again and again, as people do: two that come at once may be heard as one.
    wait_for("the end", SOON, || {
        running.signal(Signal::INT);
        !running.is_running()
    });
    let status = running.kill_and_wait();
    Command::new("kill").arg("-CONT").args(&keepers).status().unwrap();
    assert_eq!(status.code(), Some(130));
    wait_for("the end of what was left", PATIENCE, || world.processes().is_empty());
    let more = world.run(&["run", "--session", &session, "go on"]).ended_with(0);
    assert_eq!(more.stdout, "went on\n");
    world.model.assert_no_violations();
}
