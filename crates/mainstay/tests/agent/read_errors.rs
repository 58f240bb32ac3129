//! A disk that fails to give some bytes once: the program reads again, and calls nothing damaged.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep, Swept};
use mainstay_testkit::thorough;

use crate::world::{Told, configuration, program};

/// Runs a command once for each read of the home, which fails with EIO. Answers also how often the
/// command did its work all the same.
fn sweep(words: &[&str], step: u64) -> (Swept, u64) {
    let model = ModelServer::start(|_: &ModelRequest| Reply::text("hello"));
    let configuration = configuration(Shape::Chat, &model);
    let prepare = |home: &Path| -> Command {
        std::fs::write(home.join("config.toml"), &configuration).unwrap();
        let workspace = home.with_file_name("work");
        std::fs::create_dir(&workspace).unwrap();
        let first = Told::from(program(home, &workspace, &["run", "first"]).output().unwrap());
        first.ended_with(0);
        program(home, &workspace, words)
    };
    let done = AtomicU64::new(0);
    let verify = |outcome: &Outcome<'_>| {
        let said = String::from_utf8_lossy(&outcome.stderr);
        let told = format!("{said}{}", String::from_utf8_lossy(&outcome.stdout));
        for word in ["damaged", "malformed", "panicked", "restore"] {
            assert!(!told.contains(word), "read {}: {told}", outcome.point);
        }
        match outcome.status.code() {
            Some(0) => drop(done.fetch_add(1, Ordering::Relaxed)),
            // A file of settings is read once, and its error is told as it is.
            Some(2) => assert!(said.contains("config.toml: Input/output error"), "{said}"),
            code => panic!("read {}: {code:?}: {told}", outcome.point),
        }
        if outcome.mode == Mode::Eio {
            let workspace = outcome.directory.with_file_name("work");
            let check = program(outcome.directory, &workspace, &["store", "check"]).output();
            Told::from(check.unwrap()).ended_with(0);
        }
    };
    let swept = Sweep::of(Mode::Eio).only(&[Kind::Read]).every(step).run(prepare, verify);
    println!("{words:?}: EIO at {} of {} reads", swept.struck, swept.points);
    (swept, done.into_inner())
}

#[test]
fn one_failed_read_does_not_keep_sessions_from_being_listed() {
    let (swept, done) = sweep(&["sessions", "list"], thorough::size(2, 1));
    assert!(swept.struck > 10 && done > swept.struck, "{swept:?}, {done} done");
}

#[test]
fn slow_one_failed_read_is_no_damage_to_a_check() {
    let (swept, done) = sweep(&["store", "check"], thorough::size(9, 1));
    assert!(swept.struck > 10 && done > swept.struck, "{swept:?}, {done} done");
}

#[test]
fn slow_one_failed_read_does_not_end_a_turn() {
    let (swept, done) = sweep(&["run", "more"], thorough::size(5, 1));
    assert!(swept.struck > 10 && done + 2 > swept.struck, "{swept:?}, {done} done");
}
