//! A home on a read-only disk: what only looks works, what changes something is refused in a sentence.

use std::path::{Path, PathBuf};

use mainstay_store::{Location, Options, Store};
use mainstay_testkit::disk::on_read_only_disk;
use mainstay_testkit::model::{ModelRequest, Reply};

use crate::world::{Told, World};

/// What of SQLite's own lies beside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing: the last process left in good order.
    Nothing,
    /// A log with commits that are nowhere else, and its index, as after a power cut.
    LogAndIndex,
    /// The log alone, as in a copy of the home.
    LogAlone,
}

/// A world with two sessions, of which the second is in the log where there is one.
fn world(left: Left) -> (World, String) {
    let world = World::new(|asked: &ModelRequest| {
        Reply::text(format!("answer to {}", asked.last_user_text()))
    });
    world.run(&["run", "early"]).ended_with(0);
    let database = world.home().join("store.db");
    let open = || {
        let options = Options::new(mainstay_agent::schema());
        Store::open(&Location::file(&database), options).unwrap()
    };
    // Somebody who has it open keeps the log from being folded in.
    let held = (left != Left::Nothing).then(open);
    let late = world.run(&["run", "--json", "late"]).ended_with(0).session();
    let beside = |ending: &str| PathBuf::from(format!("{}{ending}", database.display()));
    let kept: &[&str] = match left {
        Left::Nothing => &[],
        Left::LogAndIndex => &["", "-wal", "-shm"],
        Left::LogAlone => &["", "-wal"],
    };
    let bytes: Vec<Vec<u8>> =
        kept.iter().map(|ending| std::fs::read(beside(ending)).unwrap()).collect();
    match left {
        // A process may end before it has folded the log in; whoever closes the store next does.
        Left::Nothing => drop(open()),
        Left::LogAndIndex | Left::LogAlone => drop(held),
    }
    for (ending, bytes) in kept.iter().zip(bytes) {
        std::fs::write(beside(ending), bytes).unwrap();
    }
    assert_eq!(beside("-wal").exists(), left != Left::Nothing);
    assert_eq!(beside("-shm").exists(), left == Left::LogAndIndex);
    (world, late)
}

/// Runs a command for which the home is read-only, with a temporary directory of its own.
fn run(world: &World, temporary: &Path, words: &[&str]) -> Told {
    let mut command = world.command(words);
    command.env("TMPDIR", temporary);
    Told::from(on_read_only_disk(&world.home(), &command).output().unwrap())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn looks_and_changes_nothing(left: Left) {
    let (world, late) = world(left);
    let temporary = tempfile::tempdir().unwrap();
    let before = (names(&world.home()), std::fs::read(world.home().join("store.db")).unwrap());
    let backup = temporary.path().join("backup.db").display().to_string();
    for (words, expected) in [
        (vec!["sessions", "list"], "late"),
        (vec!["sessions", "show", &late], "answer to late"),
        (vec!["sessions", "export", &late], "answer to late"),
        (vec!["store", "check"], "no problems"),
        (vec!["store", "info"], "store.db"),
        (vec!["cost"], ""),
        (vec!["backup", &backup], "backup.db"),
    ] {
        let told = run(&world, temporary.path(), &words).ended_with(0);
        assert!(told.stdout.contains(expected), "{left:?} {words:?}: {told:#?}");
        assert!(told.stderr.contains("is read-only: it can be looked at"), "{words:?}: {told:#?}");
    }
    // The backup holds what was only in the log.
    let shown = world.run(&["--store", &backup, "sessions", "show", &late]).ended_with(0);
    assert!(shown.stdout.contains("answer to late"), "{shown:#?}");
    for words in [vec!["sessions", "rename", &late, "other"], vec!["run", "more"]] {
        let told = run(&world, temporary.path(), &words).ended_with(1);
        assert!(told.stderr.contains("read-only"), "{words:?}: {told:#?}");
    }
    let mut left_there = names(temporary.path());
    left_there.retain(|name| !name.starts_with("backup.db"));
    assert_eq!(left_there, Vec::<String>::new(), "{left:?}");
    assert_eq!(names(&world.home()), before.0, "{left:?}");
    assert!(std::fs::read(world.home().join("store.db")).unwrap() == before.1, "{left:?}");
}

#[test]
fn a_read_only_store_can_be_looked_at() {
    looks_and_changes_nothing(Left::Nothing);
}

#[test]
fn a_read_only_store_with_a_log_is_read_with_it() {
    looks_and_changes_nothing(Left::LogAndIndex);
}

#[test]
fn a_read_only_store_with_a_log_and_no_index_is_read_with_it() {
    looks_and_changes_nothing(Left::LogAlone);
}
