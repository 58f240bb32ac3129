//! Small limits: a sentence and an exit code, never a panic, and nothing lost or done twice.

use std::process::Command;
use std::time::Duration;

use mainstay_testkit::limits::{Resource, limit};
use mainstay_testkit::model::{ModelRequest, Reply};
use mainstay_testkit::{seccomp, thorough};
use serde_json::json;

use crate::world::{Told, World};

/// A hang guard, and nothing that a loaded machine could miss.
const SOON: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
enum Scarce {
    Descriptors(u64),
    /// The size of files, in KiB.
    FileSize(u64),
    /// Memory beyond what the bare program takes, in KiB.
    Memory(u64),
    /// No thread and no process can be begun.
    Threads,
}

impl Scarce {
    fn apply(self, command: &mut Command, bare: u64) {
        match self {
            Self::Descriptors(most) => limit(command, Resource::Nofile, most),
            Self::FileSize(most) => limit(command, Resource::Fsize, most << 10),
            Self::Memory(more) => limit(command, Resource::As, bare + (more << 10)),
            Self::Threads => {
                seccomp::answer(command, &[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN);
            }
        }
    }
}

/// Forty limits, from those that nothing works with to those that everything does.
fn scarcities() -> Vec<Scarce> {
    let descriptors = (4..=23).map(Scarce::Descriptors);
    let sizes = [0, 1, 4, 16, 32, 64, 96, 128, 256].map(Scarce::FileSize);
    let memory = [0, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384].map(Scarce::Memory);
    descriptors.chain(sizes).chain(memory).chain([Scarce::Threads]).collect()
}

/// The memory with which the program can say its version.
fn bare(world: &World) -> u64 {
    const STEP: u64 = 1 << 20;
    let works = |most: &u64| {
        let mut command = world.command(&["--version"]);
        limit(&mut command, Resource::As, *most);
        command.output().is_ok_and(|output| output.status.success())
    };
    (1..4096).map(|steps| steps * STEP).find(works).expect("a limit with which it starts")
}

/// A world whose model has a line written to a file, then answers.
fn world() -> World {
    let world = World::new(|asked: &ModelRequest| match asked.results().len() {
        0 => Reply::call_of("shell", json!({ "command": "echo once >> count" })),
        _ => Reply::text("done"),
    });
    world.configure_more("[limits]\nattempts = 1");
    world
}

/// Runs a turn with a tool under a limit, and what may follow without it.
fn judge(scarce: Scarce, bare: u64) -> Option<i32> {
    let world = world();
    let mut command = world.command(&["run", "--yes", "--json", "go"]);
    scarce.apply(&mut command, bare);
    let told = world.ended(world.started(&mut command), SOON);
    let said = &told.stderr;
    assert!(!said.contains("panicked") && !said.contains("bug of its own:"), "{scarce:?}: {said}");
    assert!(matches!(told.code, Some(0..=2)), "{scarce:?}: {told:#?}");
    let done = told.stdout.contains("\"answer\":\"done\"");
    // One that has answered and has no memory left to leave with says so, and ends with 1.
    assert!(told.code != Some(0) || done, "{scarce:?}: {told:#?}");
    if told.code != Some(0) {
        // Before the turn, or as its end.
        let ended = told.stdout.lines().last().is_some_and(|line| line.contains("\"reason\":\""));
        assert!(said.contains("error: ") || ended, "{scarce:?}: {told:#?}");
    }
    // Where there is a store it is sound, and what was begun can be finished.
    if world.home().join("store.db").exists() {
        world.run(&["store", "check"]).ended_with(0);
        let resumed: Told = world.run(&["resume"]);
        assert!(resumed.code.is_some(), "{scarce:?}: {resumed:#?}");
    }
    let count = world.file("count");
    assert!(count.is_empty() || count == "once\n", "{scarce:?}: {count}");
    told.code
}

#[test]
fn slow_under_forty_small_limits_there_is_a_sentence_and_never_a_panic() {
    let all = scarcities();
    assert_eq!(all.len(), 40);
    let step = usize::try_from(thorough::size(3, 1)).unwrap();
    let bare = bare(&world());
    // The last one, and those that once ended in a panic, are always among them.
    let often = |scarce: &Scarce| matches!(scarce, Scarce::Threads | Scarce::Descriptors(13 | 14));
    let chosen = all.iter().enumerate().filter(|(at, one)| at % step == 0 || often(one));
    let mut codes = std::collections::BTreeMap::new();
    for (_, scarce) in chosen {
        let code = judge(*scarce, bare);
        println!("{scarce:?}: {code:?}");
        *codes.entry(code).or_insert(0) += 1;
    }
    println!("{codes:?}");
    assert!(codes.len() > 1, "some work and some do not: {codes:?}");
}

/// Random bytes that the kernel refuses are the one thing that nothing here can do without.
#[test]
fn a_panic_that_is_left_is_told_in_sentences_and_leaves_its_details() {
    let world = world();
    world.run(&["run", "--yes", "first"]).ended_with(0);
    let mut command = world.command(&["run", "--yes", "--json", "second"]);
    command.env("SOME_API_KEY", "a-key-that-nobody-may-see");
    seccomp::answer(&mut command, &[libc::SYS_getrandom], libc::EIO);
    let told = Told::from(command.output().unwrap()).ended_with(1);
    let said = &told.stderr;
    for words in ["bug of its own", "Nothing that was acknowledged is lost", "`mainstay doctor`"] {
        assert!(said.contains(words), "{words}: {told:#?}");
    }
    assert!(!said.contains("panicked at"), "{told:#?}");
    assert!(!format!("{told:?}").contains("nobody-may-see"), "{told:#?}");
    world.run(&["store", "check"]).ended_with(0);
    let text = std::fs::read_to_string(world.home().join("last-panic.txt")).unwrap();
    assert!(said.contains("last-panic.txt"), "{told:#?}");
    assert!(text.contains("random") && text.len() < 70_000, "{text}");
    assert!(!text.contains("nobody-may-see"), "{text}");
}
