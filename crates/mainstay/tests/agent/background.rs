//! Processes in the background: owned, reached, and their ends told until somebody takes note.

use std::process::Command;
use std::time::Duration;

use mainstay_testkit::model::{Gate, ModelRequest, Reply};
use mainstay_testkit::process::{Running, wait_for};
use serde_json::{Value, json};

use crate::killed::keepers_of;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// The name of the process that the first result tells of.
fn name(asked: &ModelRequest) -> String {
    let results = asked.results();
    let text = results.iter().find_map(|(_, text)| text.split("Started process ").nth(1));
    text.expect("a process was started").split('.').next().unwrap().to_owned()
}

fn process(action: &str, more: &Value) -> Reply {
    let mut arguments = json!({ "action": action });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Reply::call_of("process", &arguments)
}

/// How often the last request tells of an end.
fn notices(world: &World) -> usize {
    let body = world.model.asked().pop().unwrap().body.to_string();
    body.matches("[Mainstay: the background process").count()
}

fn results(world: &World) -> Vec<String> {
    let asked = world.model.asked().pop().unwrap();
    asked.results().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn what_a_command_leaves_running_is_listed_and_goes_with_the_agent() {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "sleep 300 & echo started" })),
        1 => process("list", &json!({})),
        _ => Reply::text("done"),
    });
    let start = std::time::Instant::now();
    world.run(&["run", "--yes", "go"]).ended_with(0);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let results = results(&world);
    assert!(results[0].contains("started") && results[0].contains("sleep 300"), "{}", results[0]);
    assert!(results[1].contains("left 1 running"), "{}", results[1]);
    world.nothing_runs();
}

#[test]
fn a_process_is_started_polled_written_to_read_waited_for_and_acknowledged() {
    let command = "echo ready; read line; echo \"got $line\"; exit 3";
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => process("start", &json!({ "command": command })),
        1 => process("poll", &json!({ "process": name(asked) })),
        2 => process("write", &json!({ "process": name(asked), "text": "a word\n" })),
        3 => process("wait", &json!({ "process": name(asked), "seconds": 20 })),
        4 => process("read", &json!({ "process": name(asked), "offset": 6 })),
        5 => process("poll", &json!({ "process": name(asked) })),
        6 => process("acknowledge", &json!({ "process": name(asked) })),
        7 => process("start", &json!({ "command": "exec sleep 300" })),
        8 => {
            let second = asked.results()[7].1.split("process ").nth(1).unwrap().to_owned();
            process("stop", &json!({ "process": second.split('.').next().unwrap() }))
        }
        9 => process("poll", &json!({ "process": "no-such-process" })),
        _ => Reply::text("done"),
    });
    world.run(&["run", "--yes", "go"]).ended_with(0);
    let results = results(&world);
    assert!(results[1].contains("running for"), "{}", results[1]);
    assert!(results[2].contains("Written"), "{}", results[2]);
    assert!(results[3].contains("exit code 3") || results[3].contains("code 3"), "{}", results[3]);
    assert!(results[4].contains("got a word") && !results[4].contains("ready"), "{}", results[4]);
    assert!(results[5].contains("code 3"), "{}", results[5]);
    assert!(results[6].contains("Acknowledged"), "{}", results[6]);
    assert!(results[8].contains("ended"), "{}", results[8]);
    assert!(results[9].contains("no-such-process"), "{}", results[9]);
    world.nothing_runs();
    world.model.assert_no_violations();
}

/// A model that starts a process, then does what the last input names.
fn obeying(command: &'static str) -> impl Fn(&ModelRequest) -> Reply + Send + 'static {
    move |asked: &ModelRequest| {
        let said = asked.last_user_text();
        let fresh = |action: &str| {
            let wanted =
                asked.calls().iter().filter(|call| call.arguments["action"] == action).count();
            wanted < said_so_far(asked, action)
        };
        if asked.results().is_empty() {
            process("start", &json!({ "command": command }))
        } else if said.contains("be silent") && !said.contains("hello again")
            || asked.calls().len() == 1 && said.contains("start")
        {
            Reply::text("never heard").stall_before_first_byte()
        } else if fresh("poll") {
            process("poll", &json!({ "process": name(asked) }))
        } else if fresh("acknowledge") {
            process("acknowledge", &json!({ "process": name(asked) }))
        } else {
            Reply::text("heard")
        }
    }
}

/// How often the user asked for this in the whole conversation.
fn said_so_far(asked: &ModelRequest, action: &str) -> usize {
    let messages = asked.body["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["role"] == "user");
    said.map(|message| message["content"].to_string().matches(&format!("please {action}")).count())
        .sum()
}

/// Starts a turn and kills the agent once the model is silent.
fn killed_in_silence(world: &World, words: &[&str], grace: &str) {
    let before = world.model.requests();
    let mut command = world.command(words);
    let mut running: Running = world.started(command.env("MAINSTAY_KEEPER_GRACE", grace));
    wait_for("a silent model", PATIENCE, || {
        let asked = world.model.asked();
        asked.len() > before && !asked.last().unwrap().results().is_empty()
    });
    running.kill_and_wait();
}

fn only_session(world: &World) -> String {
    let list = world.run(&["sessions", "list", "--json"]).ended_with(0).stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    list[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_end_that_no_agent_saw_is_told_once_a_turn_until_it_is_acknowledged() {
    let world = World::new(obeying("until [ -e end ]; do sleep 0.05; done; echo bye; exit 7"));
    killed_in_silence(&world, &["run", "--yes", "start"], "60");
    let session = only_session(&world);
    std::fs::write(world.workspace().join("end"), "").unwrap();
    wait_for("the end of the process", PATIENCE, || {
        !world.processes().iter().any(|line| line.contains("until"))
    });
    let turn = |words: &str| {
        world.run(&["run", "--yes", "--session", &session, words]).ended_with(0);
        world.model.assert_no_violations();
        notices(&world)
    };
    assert_eq!(turn("hello"), 1);
    let body = world.model.asked().pop().unwrap().body.to_string();
    assert!(body.contains("code 7"), "{body}");
    // To look at it does not consume it.
    assert_eq!(turn("please poll"), 2);
    assert!(results(&world).last().unwrap().contains("code 7"), "{:?}", results(&world));
    // Nor does another death.
    killed_in_silence(&world, &["run", "--yes", "--session", &session, "be silent"], "60");
    assert_eq!(notices(&world), 3);
    assert_eq!(turn("hello again"), 4);
    assert_eq!(turn("please acknowledge"), 5);
    assert_eq!(turn("and now"), 5);
    world.nothing_runs();
}

#[test]
fn a_process_that_outlives_the_grace_time_is_killed_and_that_is_told() {
    let world = World::new(obeying("exec sleep 300"));
    killed_in_silence(&world, &["run", "--yes", "start"], "1");
    wait_for("the end of the grace time", PATIENCE, || world.processes().is_empty());
    let session = only_session(&world);
    world.run(&["run", "--session", &session, "hello"]).ended_with(0);
    assert_eq!(notices(&world), 1);
    let body = world.model.asked().pop().unwrap().body.to_string();
    let notice = body.split("[Mainstay: the background process").nth(1).unwrap();
    assert!(notice.contains("killed"), "{notice}");
    world.model.assert_no_violations();
}

#[test]
fn a_process_that_runs_on_is_there_for_the_agent_that_resumes() {
    let world = World::new(obeying("until [ -e end ]; do sleep 0.05; done; exit 9"));
    killed_in_silence(&world, &["run", "--yes", "start"], "60");
    let session = only_session(&world);
    let told = world.run(&["run", "--yes", "--session", &session, "please poll"]).ended_with(0);
    assert_eq!(told.stdout, "heard\n");
    assert!(results(&world).last().unwrap().contains("running for"), "{:?}", results(&world));
    assert_eq!(notices(&world), 0);
    // It went with the agent that had taken it over, and that is told.
    world.nothing_runs();
    world.run(&["run", "--session", &session, "hello"]).ended_with(0);
    assert_eq!(notices(&world), 1);
    world.model.assert_no_violations();
}

#[test]
fn a_process_goes_with_its_keeper_when_that_is_killed_whoever_started_it() {
    for taken_over in [false, true] {
        let gate = Gate::new();
        let held = gate.clone();
        let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
            0 => process("start", &json!({ "command": "exec sleep 300" })),
            _ => Reply::text("heard").held_by(&held),
        });
        let mut running = world.start(&["run", "--yes", "start"]);
        world.model.wait_for_requests(2, PATIENCE);
        if taken_over {
            running.kill_and_wait();
            running = world.start(&["resume", "--yes"]);
            world.model.wait_for_requests(3, PATIENCE);
        }
        let keepers = keepers_of(&world.home());
        assert!(!keepers.is_empty());
        Command::new("kill").arg("-9").args(&keepers).status().unwrap();
        // Nobody asks for it any more.
        wait_for("the end of the process", PATIENCE, || {
            !world.processes().iter().any(|line| line.contains("sleep 300"))
        });
        gate.open();
        assert_eq!(world.ended(running, PATIENCE).ended_with(0).stdout, "heard\n");
        world.nothing_runs();
        let session = only_session(&world);
        world.run(&["run", "--session", &session, "hello"]).ended_with(0);
        assert_eq!(notices(&world), 1, "{taken_over}");
        world.model.assert_no_violations();
    }
}
