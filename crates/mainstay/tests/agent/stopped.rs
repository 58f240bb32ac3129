//! Whoever is waited for is stopped: the model, the keeper's worker, a file system.

use std::net::TcpListener;
use std::time::Duration;

use mainstay_testkit::freezer::Freezer;
use mainstay_testkit::model::{ModelRequest, Reply, Shape};
use mainstay_testkit::process::{Running, Signal, wait_for};
use rustix::process::{Pid, kill_process};
use serde_json::json;

use crate::world::{Told, World, configuration, processes_of, program};

const PATIENCE: Duration = Duration::from_secs(30);
/// For what has limits of its own, up to half a minute; only a hang takes longer.
const LONG: Duration = Duration::from_secs(90);

#[test]
fn a_stopped_model_is_left_for_the_fallback() {
    let world = World::new(|_: &ModelRequest| Reply::text("well"));
    // The kernel takes connections for a process that is stopped, and nobody reads them.
    let stopped = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stopped.local_addr().unwrap().port();
    let url = world.model.base_url(Shape::Chat);
    world.configure(&format!(
        "model = \"one/a\"\nfallback = [\"two/b\"]\n\
         [providers.one]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         [providers.two]\napi = \"openai-chat\"\nbase_url = \"{url}\"\n\
         [limits]\nfirst_byte = \"700ms\"\n"
    ));
    let running = world.start(&["run", "hello"]);
    let told = world.ended(running, LONG).ended_with(0);
    assert_eq!(told.stdout, "well\n");
}

/// The worker of the one keeper of a home: the process of the two whose parent is the other.
fn worker(world: &World) -> Pid {
    let keepers: Vec<i32> = processes_of(&world.home())
        .iter()
        .filter(|line| line.contains(" keeper "))
        .map(|line| line.split(':').next().unwrap().parse().unwrap())
        .collect();
    let parent = |pid: &i32| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let worker = keepers.iter().find(|pid| keepers.contains(&parent(pid)));
    Pid::from_raw(*worker.expect("a worker")).unwrap()
}

#[test]
fn slow_a_command_whose_worker_is_stopped_is_in_doubt_after_its_limit_and_nothing_is_left() {
    let command = json!({ "command": "touch begun; sleep 60; touch late", "timeout": 2 });
    let world = World::new(move |asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", &command),
        1 => Reply::call_of("shell", json!({ "command": "echo well" })),
        _ => Reply::text("done"),
    });
    let running = world.start(&["run", "--yes", "--json", "begin"]);
    wait_for("the command", PATIENCE, || world.workspace().join("begun").exists());
    kill_process(worker(&world), Signal::STOP).unwrap();
    let told = world.ended(running, LONG).ended_with(0);
    let results: Vec<_> = told
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(results[0].contains("the process keeper does not answer"), "{results:?}");
    assert!(results[1].contains("well"), "{results:?}");
    let notice = |about: &str| told.events().iter().any(|event| event["about"] == about);
    assert!(notice("in_doubt"), "{told:#?}");
    world.nothing_runs();
    assert!(!world.workspace().join("late").exists());
}

/// Runs in a workspace or a home of the test's own.
fn start(
    world: &World,
    home: &std::path::Path,
    workspace: &std::path::Path,
    words: &[&str],
) -> Running {
    world.started(&mut program(home, workspace, words))
}

#[test]
fn slow_a_command_in_a_frozen_workspace_is_given_up_after_its_limit() {
    let Some(disk) = Freezer::mounted() else { return };
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo x > file", "timeout": 2 })),
        _ => Reply::text("done"),
    });
    disk.freeze();
    let running = start(&world, &world.home(), &disk.path(), &["run", "--yes", "--json", "begin"]);
    let told = world.ended(running, LONG);
    disk.thaw();
    let told = told.ended_with(0);
    assert_eq!(told.event("end")["answer"], "done");
    let result = told.event("tool_result")["text"].as_str().unwrap().to_owned();
    assert!(result.contains("2 s") || result.contains("limit"), "{result}");
}

#[test]
fn a_run_whose_store_is_frozen_hears_a_signal_and_ends_when_it_is_thawed() {
    let Some(disk) = Freezer::mounted() else { return };
    let world = World::new(|asked: &ModelRequest| match asked.last_user_text().contains("go on") {
        true => Reply::text("went on"),
        false => Reply::text("never").stall_before_first_byte(),
    });
    let home = disk.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &world.model)).unwrap();
    let mut running =
        start(&world, &home, &world.workspace(), &["run", "--yes", "--json", "begin"]);
    let line = running.line_with("\"session\"", PATIENCE);
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let session = event["id"].as_str().unwrap().to_owned();
    world.model.wait_for_requests(1, PATIENCE);
    disk.freeze();
    running.signal(Signal::TERM);
    // Whoever writes sleeps in the kernel, which lets nobody go before the disk is thawed, not even for
    // SIGKILL. The second signal is heard meanwhile, and there is no third.
    std::thread::sleep(Duration::from_secs(1));
    let asleep = running.is_running();
    running.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    disk.thaw();
    let code = running.wait(PATIENCE).code();
    assert!(asleep, "the store was written to a frozen disk");
    assert_eq!(code, Some(130));
    let mut again = program(&home, &world.workspace(), &["run", "--session", &session, "go on"]);
    let told = Told::from(again.output().unwrap()).ended_with(0);
    assert_eq!(told.stdout, "went on\n");
}
