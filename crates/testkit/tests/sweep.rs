//! The fault shim strikes where it is told to, and the sweep sees what is left.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mainstay_testkit::process::{Running, example};
use mainstay_testkit::shim::{Kind, Mode, Shim};
use mainstay_testkit::sweep::{Outcome, Sweep, Swept};

const SIGKILL: i32 = 9;

/// The file of acknowledgements lies outside the watched directory, as a client does.
fn acks_of(directory: &Path) -> std::path::PathBuf {
    directory.with_file_name("acks")
}

/// A directory to watch, with room for the acknowledgements beside it.
fn watched(place: &tempfile::TempDir) -> std::path::PathBuf {
    let directory = place.path().join("watched");
    fs::create_dir(&directory).unwrap();
    directory
}

fn writer(directory: &Path) -> Command {
    let mut command = Command::new(example("file_writer"));
    command.arg(directory).arg(acks_of(directory)).arg("careful");
    command
}

/// Every acknowledged item is whole, and so is every item that has its name.
fn check_items(outcome: &Outcome<'_>) {
    let acked = fs::read(acks_of(outcome.directory)).unwrap_or_default();
    for number in 0..4_u8 {
        let item = fs::read(outcome.directory.join(format!("item-{number}"))).ok();
        assert!(item.is_some() || !acked.contains(&number), "item {number} is lost");
        let whole = [&[number; 3000][..], b"end"].concat();
        assert!(item.is_none_or(|item| item == whole), "item {number} is damaged");
    }
    if outcome.mode == Mode::Count {
        assert!(outcome.status.success());
        assert_eq!(acked, [0, 1, 2, 3]);
    }
}

fn check(mode: Mode) -> Swept {
    let swept = Sweep::of(mode).run(writer, |outcome| {
        check_items(outcome);
        match mode {
            Mode::Kill | Mode::Torn if outcome.struck => {
                assert_eq!(outcome.status.signal(), Some(SIGKILL));
            }
            Mode::Eio | Mode::Enospc if outcome.struck => {
                assert_eq!(outcome.status.code(), Some(1), "the error was swallowed");
                let said = String::from_utf8_lossy(&outcome.stderr);
                let number = if mode == Mode::Eio { "code: 5" } else { "code: 28" };
                assert!(said.contains(number), "{said}");
            }
            _ => {}
        }
    });
    assert_eq!(swept.struck, swept.points);
    swept
}

// Create the lock file, lock; four items of create, write, write, sync, rename, sync; unlock.
const POINTS: u64 = 2 + 4 * 6 + 1;

#[test]
fn a_kill_at_every_point_loses_nothing() {
    assert_eq!(check(Mode::Kill).points, POINTS);
}

#[test]
fn a_torn_write_at_every_point_loses_nothing() {
    assert_eq!(check(Mode::Torn).points, POINTS);
}

#[test]
fn an_input_output_error_at_every_point_is_seen() {
    assert_eq!(check(Mode::Eio).points, POINTS);
}

#[test]
fn a_full_disk_at_every_point_is_seen_and_syncs_and_locks_are_no_points_of_it() {
    assert_eq!(check(Mode::Enospc).points, 1 + 4 * 4);
}

#[test]
fn a_torn_write_leaves_whole_sectors_of_its_first_half() {
    let place = tempfile::tempdir().unwrap();
    let directory = watched(&place);
    // The first write has 3000 bytes; of its half, 1500, two sectors are whole.
    let shim = Shim::under(&directory).mode(Mode::Torn).only(&[Kind::Write]).at(1);
    let status = shim.apply(&mut writer(&directory)).status().unwrap();
    assert_eq!(status.signal(), Some(SIGKILL));
    assert_eq!(fs::metadata(directory.join("temporary")).unwrap().len(), 1024);
    assert_eq!(shim.points(), 1);
}

#[test]
fn only_the_chosen_kinds_are_points() {
    let counted = |kinds: &[Kind]| {
        let place = tempfile::tempdir().unwrap();
        let directory = watched(&place);
        let shim = Shim::under(&directory).only(kinds);
        assert!(shim.apply(&mut writer(&directory)).status().unwrap().success());
        shim.points()
    };
    assert_eq!(counted(&[Kind::Rename]), 4);
    assert_eq!(counted(&[Kind::Sync, Kind::Lock]), 8 + 2);
    assert_eq!(counted(&[Kind::Truncate, Kind::Unlink]), 0);
}

#[test]
fn faults_for_ever_end_when_the_file_appears() {
    let directory = tempfile::tempdir().unwrap();
    let over = tempfile::tempdir().unwrap();
    let over = over.path().join("over");
    let shim = Shim::under(directory.path()).mode(Mode::Enospc).at(1).forever().until(&over);
    let file = directory.path().join("file");
    let mut command = Command::new("bash");
    command.arg("-c").arg("until echo text >\"$0\"; do echo full; sleep 0.01; done; echo done");
    let mut child = Running::spawn(shim.apply(command.arg(&file)));
    let wait = Duration::from_secs(10);
    for _ in 0..3 {
        child.line_with("full", wait);
    }
    assert!(!file.exists());
    fs::write(&over, "").unwrap();
    child.line_with("done", wait);
    assert_eq!(fs::read_to_string(&file).unwrap(), "text\n");
    assert!(shim.points() > 3);
}

#[test]
#[should_panic(expected = "item 2 is lost")]
fn a_sweep_fails_where_the_check_does() {
    Sweep::of(Mode::Kill).run(writer, |outcome| {
        let lost = outcome.mode == Mode::Kill && !outcome.directory.join("item-2").exists();
        assert!(!lost, "item 2 is lost");
    });
}

#[test]
#[should_panic(expected = "The command hangs")]
fn a_sweep_fails_where_the_command_hangs() {
    let command = |directory: &Path| {
        let mut command = Command::new("bash");
        command.arg("-c").arg("echo x > \"$0/file\"; sleep 100").arg(directory);
        command
    };
    Sweep::of(Mode::Kill).deadline(Duration::from_millis(300)).run(command, |_| {});
}

#[test]
fn threads_count_together() {
    let directory = tempfile::tempdir().unwrap();
    let shim = Shim::under(directory.path()).only(&[Kind::Create]);
    let mut command = Command::new(example("thread_creator"));
    assert!(shim.apply(command.arg(directory.path())).status().unwrap().success());
    assert_eq!(shim.points(), 400);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 400);
}

#[test]
fn the_processes_of_a_tree_count_together() {
    let directory = tempfile::tempdir().unwrap();
    let shim = Shim::under(directory.path()).only(&[Kind::Create]);
    let mut command = Command::new("bash");
    command.arg("-c").arg("echo a > \"$0/a\" & sh -c 'echo b > \"$0/b\"' \"$0\" & wait");
    assert!(shim.apply(command.arg(directory.path())).status().unwrap().success());
    assert_eq!(shim.points(), 2);
}

#[test]
fn a_library_that_was_to_be_preloaded_still_is() {
    let directory = tempfile::tempdir().unwrap();
    let shim = Shim::under(directory.path());
    let mut command = Command::new("true");
    shim.apply(command.env("LD_PRELOAD", "/first.so"));
    let (_, value) = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD").unwrap();
    let value = value.unwrap().to_str().unwrap();
    assert!(value.ends_with(":/first.so") && value.contains("faultshim"), "{value}");
}
