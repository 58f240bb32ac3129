//! Many writers of memories in several processes that are killed at random.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_memory::MEMORY;
use mainstay_memory::facts::{self, List};
use mainstay_memory::notes::{self, Scope};
use mainstay_store::{Depth, Location, Options, Schema, Store};
use mainstay_testkit::process::{Running, example};

const PROCESSES: usize = 5;

/// How many writers a process has, how many memories each writes, and how often somebody is killed.
struct Load {
    writers: usize,
    each: usize,
    kills: usize,
}

#[test]
fn slow_fifty_writers_in_five_processes_killed_at_random_lose_nothing_and_double_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store.db").display().to_string();
    hurt(&store, directory.path(), &Load { writers: 10, each: 8, kills: 25 });
}

#[test]
fn slow_writers_in_five_processes_lose_nothing_in_postgresql() {
    let directory = tempfile::tempdir().unwrap();
    let store = mainstay_testkit::postgres::fresh();
    hurt(&store, directory.path(), &Load { writers: 3, each: 5, kills: 8 });
}

fn hurt(store: &str, directory: &Path, load: &Load) {
    // Who opens it first makes it; that is not what is tried here.
    let location: Location = store.parse().unwrap();
    let opened = Store::open(&location, Options::new(Schema::new(&[MEMORY]))).unwrap();
    let owner = opened.write(|tx| tx.owner("me")).unwrap();
    let acks = |process: usize| directory.join(format!("acks-{process}"));
    let start = |process: usize| {
        let mut command = Command::new(example("rememberer"));
        let numbers = [process * load.writers, load.writers, load.each];
        command.arg(store).arg(acks(process)).args(numbers.map(|number| number.to_string()));
        Running::spawn(command.stderr(Stdio::inherit()))
    };
    let mut random = fastrand::Rng::with_seed(50);
    let mut running: Vec<Option<Running>> = (0..PROCESSES).map(|one| Some(start(one))).collect();
    let (mut kills, deadline) = (0, Instant::now() + Duration::from_secs(120));
    while running.iter().any(Option::is_some) {
        assert!(Instant::now() < deadline, "somebody hangs");
        std::thread::sleep(Duration::from_millis(random.u64(5..40)));
        for slot in &mut running {
            if slot.as_mut().is_some_and(|child| !child.is_running())
                && let Some(mut child) = slot.take()
            {
                assert!(child.kill_and_wait().success(), "only the killer ends a writer");
            }
        }
        let victim = random.usize(..PROCESSES);
        if kills < load.kills
            && let Some(mut child) = running[victim].take()
        {
            kills += usize::from(!child.kill_and_wait().success());
            running[victim] = Some(start(victim));
        }
    }
    println!("{kills} kills");
    assert!(kills >= load.kills / 2, "the test must hurt: {kills}");

    let all = acks_of((0..PROCESSES).map(acks));
    let names: BTreeSet<String> = (0..PROCESSES * load.writers)
        .flat_map(|writer| (0..load.each).map(move |number| format!("{writer}.{number}")))
        .collect();
    let list = List { limit: 10_000, ..List::default() };
    let found = opened.read(|tx| facts::list(tx, owner, &list)).unwrap();
    let there: BTreeSet<String> =
        found.iter().map(|fact| fact.content.split(' ').nth(2).unwrap().to_owned()).collect();
    assert_eq!(there, names, "every fact is there");
    assert_eq!(found.len(), names.len(), "and once");
    assert!(found.iter().all(|fact| fact.helpful == 1), "trust moved once each");
    let notes = |scope: &str| {
        let notes = opened.read(|tx| notes::read(tx, owner, Scope::Workspace(scope))).unwrap();
        notes.into_iter().map(|note| note.text).collect::<Vec<String>>()
    };
    let wide = notes("wide");
    assert_eq!(wide.len(), names.len(), "no note is there twice");
    assert_eq!(wide.into_iter().collect::<BTreeSet<_>>(), names, "every note is there");
    let narrow = notes("narrow");
    assert!(notes::size(narrow.iter().map(String::as_str)) <= 200, "{narrow:?}");
    assert!(narrow.len() > 20, "{narrow:?}");
    for (what, name) in &all {
        assert!(what != "narrow" || narrow.contains(name), "{name} was acknowledged");
    }
    let problems = opened.read(|tx| facts::check(tx, Depth::Full)).unwrap();
    assert_eq!(problems, [""; 0]);
}

/// What was acknowledged. A torn last line was not, in full.
fn acks_of(files: impl Iterator<Item = std::path::PathBuf>) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for line in lines {
            let (what, name) = line.split_once(' ').unwrap();
            assert!(all.insert((what.to_owned(), name.to_owned())), "{line} acknowledged twice");
        }
    }
    all
}
