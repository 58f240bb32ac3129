//! A restore that is killed, or meets a failing disk, at every call that changes a file.

use std::path::Path;
use std::process::Command;

use mainstay_store::{Error, Location, Store};
use mainstay_testkit::shim::Mode;
use mainstay_testkit::sweep::{Outcome, Sweep};

use super::home::{fill, mainstay, mark, options};

/// Puts a store that is marked `old` into the directory, and a backup marked `new` beside it.
fn prepare(directory: &Path) -> Command {
    let old = Store::open(&Location::file(directory.join("store.db")), options()).unwrap();
    fill(&old, "old");
    drop(old);
    let source = directory.with_file_name("source.db");
    let source = Store::open(&Location::file(source), options()).unwrap();
    fill(&source, "new");
    source.backup_to(&directory.with_file_name("backup"), &mut |_| {}).unwrap();
    restore(directory)
}

fn restore(directory: &Path) -> Command {
    let mut command = mainstay(directory);
    command.arg("restore").arg(directory.with_file_name("backup"));
    command
}

/// The old data or the new is there, or the next restore completes; never an empty store.
fn verify(outcome: &Outcome<'_>) {
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(!said.contains("panicked"), "{said}");
    let place = Location::file(outcome.directory.join("store.db"));
    // Opened as by a command that may create.
    let found = match Store::open(&place, options()) {
        Ok(store) => mark(&store),
        Err(Error::RestoreInterrupted { .. }) => {
            let again = restore(outcome.directory).arg("--json").output().unwrap();
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
            let answer: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
            let aside = answer["aside"].as_str().unwrap();
            assert!(Path::new(aside).exists(), "{aside} is named but not there");
            mark(&Store::open(&place, options().existing()).unwrap())
        }
        Err(error) => panic!("the store is neither old nor new: {error}; it said: {said}"),
    };
    match found.as_str() {
        "old" => assert!(!outcome.status.success(), "it said that it was done"),
        "new" => {
            let kept = aside(outcome.directory);
            assert!(kept.iter().any(|mark| mark == "old"), "the old data is gone: {kept:?}");
        }
        other => panic!("the store holds {other}"),
    }
    if outcome.mode == Mode::Count {
        assert!(outcome.status.success() && found == "new", "{said}");
    }
    if matches!(outcome.mode, Mode::Eio | Mode::Enospc) && !outcome.status.success() {
        assert_eq!(outcome.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{said}");
    }
}

/// The marks of the stores that were moved aside.
fn aside(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    names
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let beside = ["-wal", "-shm", "-journal", ".side"];
            name.contains(".before-restore-") && !beside.iter().any(|end| name.ends_with(end))
        })
        .map(|path| mark(&Store::open(&Location::file(path), options().existing()).unwrap()))
        .collect()
}

#[test]
fn slow_a_restore_killed_at_any_call_never_leaves_an_empty_store() {
    let swept = Sweep::of(Mode::Kill).run(prepare, verify);
    assert!(swept.struck > 0, "{swept:?}");
}

#[test]
fn slow_a_restore_whose_disk_fails_at_any_call_keeps_the_old_data_or_has_the_new() {
    let swept = Sweep::of(Mode::Eio).run(prepare, verify);
    assert!(swept.struck > 0, "{swept:?}");
}

#[test]
fn slow_a_restore_whose_disk_fills_up_keeps_the_old_data_or_has_the_new() {
    let swept = Sweep::of(Mode::Enospc).forever().run(prepare, verify);
    assert!(swept.struck > 0, "{swept:?}");
}
