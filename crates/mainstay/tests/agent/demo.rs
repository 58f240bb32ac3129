//! The demonstration: what it promises, and what it leaves.

use std::process::{Command, Stdio};
use std::time::Duration;

use mainstay_testkit::capability::Capability;
use mainstay_testkit::process::{Running, Signal};
use rustix::process::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{Told, processes_of};

const BINARY: &str = env!("CARGO_BIN_EXE_mainstay");
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const LONG: Duration = Duration::from_secs(60);

/// A directory for what is temporary, where a leftover shows.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A command with an environment that has nothing but this place.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", PATH).env("TMPDIR", self.0.path());
        command
    }

    fn nothing_is_left(&self, when: &str) {
        assert_eq!(processes_of(self.0.path()), Vec::<String>::new(), "{when}");
        let left: Vec<_> = std::fs::read_dir(self.0.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{when}: {left:?}");
    }
}

fn assert_good(told: &Told) {
    assert_eq!(told.code, Some(0), "{told:#?}");
    let verdict: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(verdict["good"], true, "{verdict:#}");
    let steps = verdict["steps"].as_array().unwrap();
    assert!(steps.len() >= 5, "{verdict:#}");
    for step in steps {
        let traces = usize::from(!step["trace"].is_null());
        assert_eq!((&step["outcomes"], &step["traces"]), (&json!(1), &json!(traces)), "{step}");
    }
    assert_eq!(verdict["left_behind"], json!([]));
    assert!(verdict["answer"].as_str().unwrap().contains("together 100"), "{verdict:#}");
    assert!(verdict["millis"].as_u64().unwrap() < 15_000, "{verdict:#}");
}

#[test]
fn every_step_ran_once_without_a_home_and_nothing_is_left() {
    let place = Place::new();
    let told = Told::from(place.command(BINARY).args(["demo", "--json"]).output().unwrap());
    assert_good(&told);
    assert_eq!(told.stderr, "");
    place.nothing_is_left("after the end");
}

#[test]
fn it_is_said_that_the_model_is_a_script_and_the_users_own_things_are_not_touched() {
    let (place, home) = (Place::new(), tempfile::tempdir().unwrap());
    let mut command = place.command(BINARY);
    command.arg("demo").env("HOME", home.path()).env("MAINSTAY_HOME", home.path().join("mine"));
    command.env("MAINSTAY_STORE", home.path().join("mine.db")).env("MAINSTAY_MODEL", "no/such");
    command.env("MAINSTAY_KEEPER_GRACE", "0");
    let told = Told::from(command.output().unwrap()).ended_with(0);
    let first = told.stdout.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.contains("The model is a script"), "{first}");
    assert!(first.contains("nothing leaves this machine"), "{first}");
    for words in ["SIGKILL to the agent", "not started again", "Yes. Every step ran once, in "] {
        assert!(told.stdout.contains(words), "no {words:?} in {}", told.stdout);
    }
    let widest = told.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}: {}", told.stdout);
    assert!(!told.stdout.contains('\u{1b}'), "colours where nobody sees them");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "the user's home was touched");
    place.nothing_is_left("after the end");
}

#[test]
fn it_needs_no_network() {
    let place = Place::new();
    let alone = |line: &str| {
        let mut command = place.command("unshare");
        command.args(["-rn", "sh", "-c", &format!("ip link set lo up && {line}")]);
        command
    };
    let able = alone("true").stderr(Stdio::null()).status();
    if !Capability::NetworkNamespace.require(able.is_ok_and(|status| status.success())) {
        return;
    }
    let told = Told::from(alone(&format!("exec {BINARY} demo --json")).output().unwrap());
    assert_good(&told);
    place.nothing_is_left("after the end");
}

#[test]
fn interrupted_at_any_moment_it_ends_with_130_and_leaves_nothing() {
    let working = ["Directory:", "1/6", "runs as process", "SIGKILL", "not started again"];
    for moment in working {
        assert_eq!(interrupted(Signal::INT, moment), Some(130), "{moment:?}");
    }
    for signal in [Signal::TERM, Signal::HUP] {
        assert_eq!(interrupted(signal, "runs as process"), Some(130), "{signal:?}");
    }
    // The verdict is told when everything is done.
    assert_eq!(interrupted(Signal::INT, "once"), Some(0));
}

/// Interrupts it when it says something; answers its exit code.
fn interrupted(signal: Signal, moment: &str) -> Option<i32> {
    let place = Place::new();
    let mut command = place.command(BINARY);
    let mut demo = Running::spawn(command.arg("demo").stderr(Stdio::null()));
    demo.line_with(moment, LONG);
    demo.signal(signal);
    // Somebody is impatient.
    demo.signal(signal);
    let code = demo.wait(LONG).code();
    place.nothing_is_left(&format!("{signal:?} at {moment:?}"));
    code
}

#[test]
fn where_nothing_can_be_kept_it_says_what_to_do() {
    let place = Place::new();
    let mut command = place.command(BINARY);
    let told = Told::from(
        command.arg("demo").env("TMPDIR", place.0.path().join("nowhere")).output().unwrap(),
    )
    .ended_with(1);
    assert!(told.stderr.contains("could not use"), "{}", told.stderr);
    assert!(told.stderr.contains("hint: Use a directory"), "{}", told.stderr);
    place.nothing_is_left("after a refusal");
}

#[test]
fn a_step_in_doubt_makes_the_verdict_no_and_nothing_is_left_either() {
    let place = Place::new();
    let mut demo = Running::spawn(place.command(BINARY).args(["demo"]));
    demo.line_with("runs as process", LONG);
    demo.line_with("not started again", LONG);
    let keepers: Vec<String> = processes_of(place.0.path())
        .into_iter()
        .filter(|process| process.contains(" keeper "))
        .collect();
    // A guard, a worker and, where there is a process namespace, its first process.
    assert!((2..=3).contains(&keepers.len()), "{keepers:?}");
    for keeper in keepers {
        let pid = keeper.split(':').next().and_then(|pid| pid.parse().ok());
        // One of them may have gone with another.
        let _ = rustix::process::kill_process(pid.and_then(Pid::from_raw).unwrap(), Signal::KILL);
    }
    let found = demo.line_with("WRONG 3/6", LONG);
    assert!(found.contains("in doubt"), "{found}");
    assert_eq!(demo.wait(LONG).code(), Some(1));
    place.nothing_is_left("after a lost keeper");
}
