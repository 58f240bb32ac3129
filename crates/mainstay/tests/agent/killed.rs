//! The agent is killed, and everything is there once it is resumed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mainstay_testkit::model::{ModelServer, Script, Shape, rounds};
use mainstay_testkit::process::{Running, Signal};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::{Value, json};

use crate::world::{Told, World, configuration, processes_of, program};

const ROUNDS: usize = 20;

/// Counters that append to a file, so that a repeat shows.
fn counters() -> impl Script {
    rounds(ROUNDS, |number| ("shell", json!({ "command": format!("echo {number} >> count") })))
        .finally("All counted.")
}

/// What must hold after a kill: it is resumed, and every command ran exactly once.
struct Aftermath {
    home: PathBuf,
    workspace: PathBuf,
}

impl Aftermath {
    /// Resumes, and answers whether something is in doubt.
    fn resumed(&self, before: &Told) -> Doubt {
        let Some(session) = self.session() else {
            // Killed before the input was taken: nothing was acknowledged, nothing was done.
            assert_eq!(self.count(), "", "something was done for an input that is not recorded");
            assert!(!before.stdout.contains("\"session\""), "{before:#?}");
            return Doubt::None;
        };
        let told = self.run(&["resume", &session, "--yes", "--json"]).ended_with(0);
        let end = told.event("end");
        assert_eq!(end["answer"], "All counted.", "{told:#?}");
        // It is over: to resume it again changes nothing.
        let again = self.run(&["resume", &session, "--json"]).ended_with(0);
        assert_eq!(again.event("end")["answer"], "All counted.");
        let log = self.run(&["sessions", "show", &session, "--json"]).ended_with(0).stdout;
        // An agent that lives a moment longer than its keeper tells that nothing was started.
        let told =
            ["\"in_doubt\"", "Nothing was done; try again.", "Nothing was started; try again."];
        let doubts = told.iter().map(|words| log.matches(words).count()).sum();
        if doubts == 0 { Doubt::None } else { Doubt::Told(doubts) }
    }

    fn session(&self) -> Option<String> {
        let told = self.run(&["sessions", "list", "--json"]);
        if told.code != Some(0) {
            assert!(told.stderr.contains("there is no store"), "{told:#?}");
            return None;
        }
        let list: Value = serde_json::from_str(&told.stdout).unwrap();
        list[0]["id"].as_str().map(str::to_owned)
    }

    fn count(&self) -> String {
        std::fs::read_to_string(self.workspace.join("count")).unwrap_or_default()
    }

    fn ran_exactly_once(&self) {
        let expected: String = (0..ROUNDS).map(|number| format!("{number}\n")).collect();
        assert_eq!(self.count(), expected);
    }

    fn nothing_is_left(&self) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let left = processes_of(&self.home);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn run(&self, words: &[&str]) -> Told {
        program(&self.home, &self.workspace, words).output().unwrap().into()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Doubt {
    None,
    Told(usize),
}

/// Kills the agent before every call that changes or syncs a file of the store.
fn sweep(shape: Shape, kinds: &[Kind], step: u64) {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::new(HashMap::new());
    let prepare = |home: &Path| -> Command {
        let server = ModelServer::start(counters());
        let workspace = home.with_file_name("work");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(home.join("config.toml"), configuration(shape, &server)).unwrap();
        servers.lock().unwrap().insert(home.to_owned(), server);
        program(home, &workspace, &["run", "--yes", "--json", "count"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let home = outcome.directory.to_owned();
        let server = servers.lock().unwrap().remove(&home).unwrap();
        let before = Told {
            code: outcome.status.code(),
            stdout: String::from_utf8_lossy(&outcome.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&outcome.stderr).into_owned(),
        };
        let workspace = home.with_file_name("work");
        let aftermath = Aftermath { home, workspace };
        assert_eq!(aftermath.resumed(&before), Doubt::None, "the keeper lived");
        if aftermath.session().is_some() {
            aftermath.ran_exactly_once();
        }
        aftermath.nothing_is_left();
        server.assert_no_violations();
    };
    let swept = Sweep::of(Mode::Kill).only(kinds).every(step).run(prepare, verify);
    println!("{shape:?}: {} points, {} kills", swept.points, swept.struck);
    // A round is one commit at least; how many share one depends on how fast the model answers.
    assert!(swept.points > ROUNDS as u64, "{swept:?}");
}

#[test]
fn slow_heavy_killed_at_every_sync_each_command_runs_once() {
    for shape in [Shape::Chat, Shape::Anthropic] {
        sweep(shape, &[Kind::Sync], 1);
    }
}

#[test]
fn slow_heavy_killed_at_writes_and_locks_each_command_runs_once() {
    sweep(Shape::Anthropic, &[], 7);
}

/// Kills a run after `delay`; answers what it had printed.
fn killed_after(world: &World, delay: Duration, also_keeper: bool) -> Told {
    let mut command = world.command(&["run", "--yes", "--json", "count"]);
    let mut running = Running::spawn(command.stdin(Stdio::null()).stderr(Stdio::null()));
    let start = Instant::now();
    let mut stdout = String::new();
    while start.elapsed() < delay && running.is_running() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let keepers = if also_keeper { keepers_of(&world.home()) } else { Vec::new() };
    for pid in keepers {
        // One that has just gone is as good as killed.
        let _ = Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status();
    }
    let status = running.kill_and_wait();
    while let Some(line) = running.next_line(Duration::from_secs(5)) {
        stdout.push_str(&line);
        stdout.push('\n');
    }
    Told { code: status.code(), stdout, stderr: String::new() }
}

/// The keepers of a home, guards and workers alike.
pub(crate) fn keepers_of(home: &Path) -> Vec<String> {
    let keepers = processes_of(home).into_iter().filter(|line| line.contains(" keeper "));
    keepers.filter_map(|line| line.split(':').next().map(str::to_owned)).collect()
}

/// How long an undisturbed run takes, at best: most kills must not come too late.
fn usual_time() -> Duration {
    let time = |_| {
        let world = World::new(counters());
        let start = Instant::now();
        world.run(&["run", "--yes", "count"]).ended_with(0);
        start.elapsed()
    };
    (0..3).map(time).min().unwrap()
}

fn at_random(times: usize, also_keeper: bool) -> (usize, usize) {
    let usual = usual_time();
    let (mut killed, mut doubts) = (0, 0);
    for number in 0..times {
        let shape = if number % 2 == 0 { Shape::Chat } else { Shape::Anthropic };
        let world = World::speaking(shape, counters());
        let delay = usual.mul_f64(fastrand::f64() * 1.1);
        let before = killed_after(&world, delay, also_keeper);
        killed += usize::from(before.code.is_none());
        let aftermath = Aftermath { home: world.home(), workspace: world.workspace() };
        let doubt = aftermath.resumed(&before);
        if aftermath.session().is_some() {
            match doubt {
                Doubt::None => aftermath.ran_exactly_once(),
                Doubt::Told(number) => {
                    assert!(also_keeper, "in doubt although the keeper lived");
                    doubts += number;
                    in_doubt_or_once(&aftermath.count(), number);
                }
            }
        }
        aftermath.nothing_is_left();
        world.model.assert_no_violations();
    }
    (killed, doubts)
}

/// Every command ran once, but for as many as are told to be in doubt, which ran once or not at all.
fn in_doubt_or_once(count: &str, doubts: usize) {
    let ran: Vec<usize> = count.lines().map(|line| line.parse().unwrap()).collect();
    assert!(ran.windows(2).all(|pair| pair[0] < pair[1]), "something ran twice: {ran:?}");
    assert!(ran.len() + doubts >= ROUNDS, "{doubts} in doubt, yet only {ran:?} ran");
}

#[test]
fn slow_heavy_killed_at_two_hundred_random_times_each_command_runs_once() {
    let (killed, doubts) = at_random(200, false);
    println!("{killed} of 200 runs were killed, {doubts} calls in doubt");
    assert!(killed > 60, "only {killed} runs were killed in time");
    assert_eq!(doubts, 0);
}

#[test]
fn slow_heavy_killed_together_with_its_keeper_what_is_in_doubt_is_said() {
    let (killed, doubts) = at_random(60, true);
    println!("{killed} of 60 runs were killed with their keeper, {doubts} calls in doubt");
    assert!(killed > 15, "only {killed} runs were killed in time");
}

#[test]
fn a_command_that_runs_on_while_the_agent_is_dead_is_collected() {
    let world = World::new(rounds(1, |_| {
        (
            "shell",
            json!({ "command": "echo begun >> count; sleep 1; echo ended >> count; echo told" }),
        )
    }));
    let mut command = world.command(&["run", "--yes", "--json", "go"]);
    let mut running = Running::spawn(command.stdin(Stdio::null()));
    running.line_with("\"tool_call\"", Duration::from_secs(10));
    mainstay_testkit::process::wait_for("the command", Duration::from_secs(10), || {
        world.file("count") == "begun\n"
    });
    running.signal(Signal::KILL);
    running.kill_and_wait();
    let told = world.run(&["resume", "--json"]).ended_with(0);
    assert!(told.event("tool_result")["text"].as_str().unwrap().contains("told"), "{told:#?}");
    assert_eq!(world.file("count"), "begun\nended\n");
    world.model.assert_no_violations();
}

#[test]
fn a_keeper_that_is_killed_while_its_command_is_taken_over_leaves_it_in_doubt() {
    for number in 0..12 {
        let world = World::new(rounds(1, |_| {
            ("shell", json!({ "command": "echo begun >> count; touch begun; sleep 300" }))
        }));
        let mut running = world.start(&["run", "--yes", "go"]);
        mainstay_testkit::process::wait_for("the command", Duration::from_secs(10), || {
            world.workspace().join("begun").exists()
        });
        running.kill_and_wait();
        let keepers = keepers_of(&world.home());
        let mut resumed = world.start(&["resume", "--yes", "--json"]);
        resumed.line_with("\"tool_call\"", Duration::from_secs(10));
        // Somewhere between the first word to the keeper and the wait for its command.
        std::thread::sleep(Duration::from_micros(100 * number));
        Command::new("kill").arg("-9").args(&keepers).status().unwrap();
        let told = world.ended(resumed, Duration::from_secs(20)).ended_with(0);
        assert!(told.stdout.contains("\"in_doubt\""), "{told:#?}");
        assert_eq!(world.file("count"), "begun\n", "it was started again");
        world.nothing_runs();
        world.model.assert_no_violations();
    }
}
