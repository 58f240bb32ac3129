//! A writer that is killed, cut off from power, or whose disk fails, at every call it makes.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use mainstay_testkit::powercut::{Disk, PowerCut};
use mainstay_testkit::shim::{Kind, Mode, Shim};
use mainstay_testkit::sweep::{Outcome, Sweep};

use crate::witness::{acknowledged, read_acks, steady_writer, store_in, verify};

/// Creates a store, writes, closes it (which folds the log in), opens it again, writes.
fn script(directory: &std::path::Path) -> Command {
    steady_writer(directory, "w", 8, &["reopen=5"])
}

/// Four writers side by side, whose writes share commits.
fn crowded_script(directory: &std::path::Path) -> Command {
    steady_writer(directory, "w", 4, &["threads=4"])
}

/// Migrates a store that was made without the writer's tables, then writes.
fn migrating_script(directory: &std::path::Path) -> Command {
    let location = mainstay_store::Location::file(store_in(directory));
    let schema = mainstay_store::Schema::default();
    drop(mainstay_store::Store::open(&location, mainstay_store::Options::new(schema)).unwrap());
    steady_writer(directory, "w", 2, &[])
}

/// The same with blobs, so that the log is copied by the checkpointer and starts over.
fn long_script(directory: &std::path::Path) -> Command {
    steady_writer(directory, "w", 5, &["blob=2600000"])
}

fn nothing_acknowledged_is_lost(outcome: &Outcome<'_>) {
    verify(&store_in(outcome.directory), &read_acks(outcome.directory));
}

#[test]
fn slow_sigkill_at_every_call_loses_nothing_acknowledged() {
    let swept = Sweep::of(Mode::Kill).run(script, nothing_acknowledged_is_lost);
    println!("killed at {} of {} calls", swept.struck, swept.points);
    assert!(swept.struck > 200, "{swept:?}");
}

#[test]
fn slow_sigkill_at_every_call_of_writers_that_share_commits_loses_nothing_acknowledged() {
    let swept = Sweep::of(Mode::Kill).run(crowded_script, nothing_acknowledged_is_lost);
    println!("killed at {} of {} calls", swept.struck, swept.points);
    assert!(swept.struck > 100, "{swept:?}");
}

#[test]
fn slow_a_power_cut_on_writers_that_share_commits_loses_nothing_acknowledged() {
    let states = cuts(crowded_script).subsets(2).verify(survives);
    println!("{states} states after a power cut");
    assert!(states > 200, "{states}");
}

#[test]
fn sigkill_at_every_call_of_a_migration_leaves_the_old_schema_or_the_new_one() {
    let swept = Sweep::of(Mode::Kill).run(migrating_script, |outcome| {
        nothing_acknowledged_is_lost(outcome);
        // Whoever comes next finishes it.
        let status = steady_writer(outcome.directory, "next", 1, &[]).status().unwrap();
        assert!(status.success());
    });
    println!("killed at {} of {} calls", swept.struck, swept.points);
    assert!(swept.struck > 50, "{swept:?}");
}

#[test]
fn slow_a_write_torn_by_sigkill_loses_nothing_acknowledged() {
    let swept =
        Sweep::of(Mode::Torn).only(&[Kind::Write]).run(script, nothing_acknowledged_is_lost);
    println!("torn at {} of {} writes", swept.struck, swept.points);
    assert!(swept.struck > 50, "{swept:?}");
}

#[test]
fn slow_sigkill_during_checkpoints_loses_nothing_acknowledged() {
    let swept = Sweep::of(Mode::Kill).every(211).run(long_script, nothing_acknowledged_is_lost);
    println!("killed at {} of {} calls", swept.struck, swept.points);
    assert!(swept.struck > 30, "{swept:?}");
}

/// Runs the script to its end and answers the crash states its operations may leave.
fn cuts(script: fn(&std::path::Path) -> Command) -> PowerCut {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("watched");
    std::fs::create_dir(&directory).unwrap();
    let shim = Shim::under(&directory).mode(Mode::Record);
    // The acknowledgements are part of the record, so that each state knows what was promised.
    let mut command = Command::new(script(&directory).get_program());
    let arguments: Vec<_> = script(&directory).get_args().map(std::ffi::OsStr::to_owned).collect();
    command.args(&arguments[..1]).arg(shim.acks()).args(&arguments[2..]);
    let status = shim.apply(&mut command).status().unwrap();
    assert!(status.success());
    PowerCut::of(shim.operations())
        .skip(|path| path.to_string_lossy().ends_with("-shm"))
        .seed(20261115)
}

fn survives(state: &mainstay_testkit::powercut::State, directory: &std::path::Path) {
    let acked = acknowledged(std::str::from_utf8(&state.acked).unwrap());
    verify(&store_in(directory), &acked);
}

#[test]
fn slow_a_power_cut_at_any_moment_loses_nothing_acknowledged() {
    let states = cuts(script).subsets(3).verify(survives);
    println!("{states} states after a power cut");
    assert!(states > 300, "{states}");
}

#[test]
fn slow_a_power_cut_during_checkpoints_loses_nothing_acknowledged() {
    let states = cuts(long_script).subsets(1).every(700).verify(survives);
    println!("{states} states after a power cut");
    assert!(states > 20, "{states}");
}

/// The judge can say no: a disk that lies about syncs loses what was acknowledged.
#[test]
fn a_disk_that_ignores_syncs_is_caught() {
    let lost = AtomicU64::new(0);
    let states =
        cuts(script).disk(Disk::IgnoresSync).subsets(1).every(20).verify(|state, directory| {
            let judged = std::panic::catch_unwind(|| survives(state, directory));
            lost.fetch_add(u64::from(judged.is_err()), Ordering::Relaxed);
        });
    let lost = lost.into_inner();
    println!("a lying disk lost something in {lost} of {states} states");
    assert!(lost > 10, "{lost} of {states}");
}

/// One failure, then a healthy disk: everything is written in the end, once.
fn all_is_written_after(outcome: &Outcome<'_>) {
    let there = verify(&store_in(outcome.directory), &read_acks(outcome.directory));
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{stderr}");
    assert_eq!(there.get("w"), Some(&8), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

fn retrying_script(directory: &std::path::Path) -> Command {
    steady_writer(directory, "w", 8, &["reopen=5", "retry"])
}

#[test]
fn slow_an_input_output_error_at_any_call_is_told_and_survived() {
    let told = AtomicU64::new(0);
    let swept = Sweep::of(Mode::Eio)
        .only(&[Kind::Write, Kind::Sync, Kind::Rename, Kind::Create, Kind::Truncate, Kind::Unlink])
        .run(retrying_script, |outcome| {
            let said = outcome.stderr.windows(6).any(|window| window == b"error:");
            told.fetch_add(u64::from(said), Ordering::Relaxed);
            all_is_written_after(outcome);
        });
    let told = told.into_inner();
    println!("EIO at {} calls, told to the caller {told} times", swept.struck);
    assert!(swept.struck > 100 && told > swept.struck / 3, "{swept:?}, told {told}");
}

#[test]
fn slow_an_input_output_error_of_a_lock_is_survived() {
    let swept = Sweep::of(Mode::Eio)
        .only(&[Kind::Lock])
        .every(7)
        .run(retrying_script, all_is_written_after);
    println!("EIO at {} of {} lock calls", swept.struck, swept.points);
    assert!(swept.struck > 20, "{swept:?}");
}

#[test]
fn slow_a_full_disk_at_any_call_is_told_and_survived() {
    let swept = Sweep::of(Mode::Enospc).run(retrying_script, all_is_written_after);
    println!("ENOSPC at {} calls", swept.struck);
    assert!(swept.struck > 50, "{swept:?}");
}

/// From some call on everything fails. The writer gives up; when the disk is well again nothing
/// that was acknowledged is missing and work goes on.
#[test]
fn slow_a_disk_that_fails_for_ever_loses_nothing_acknowledged() {
    for mode in [Mode::Eio, Mode::Enospc] {
        let swept = Sweep::of(mode)
            .only(&[Kind::Write, Kind::Sync, Kind::Create, Kind::Truncate])
            .forever()
            .every(9)
            .run(script, nothing_acknowledged_is_lost);
        println!("{mode} for ever from {} calls on", swept.struck);
        assert!(swept.struck > 10, "{swept:?}");
    }
}
