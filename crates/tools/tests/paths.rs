//! Somebody exchanges a directory for a link while tools, snapshots and undo work in it: nothing
//! outside is changed, and nothing that no tool opens is read.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a panic is a test's error")]

#[path = "../examples/pathwork/acts.rs"]
mod acts;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use acts::{ACTS, Scene, Walls};
use mainstay_testkit::process::example;
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::Sweep;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// What differs when anything in a directory was touched.
type Looks = BTreeMap<PathBuf, (u64, u32, i64, i64, Option<String>)>;

/// How all that must stay as it is looks.
fn looks(root: &Path) -> Looks {
    let mut found = Looks::new();
    let mut left = vec![root.join("outside"), root.join("home")];
    while let Some(path) = left.pop() {
        let it = fs::symlink_metadata(&path).unwrap();
        if it.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = fs::read_to_string(&path).ok();
        let look = (it.ino(), it.mode(), it.mtime(), it.mtime_nsec(), content);
        found.insert(path, look);
    }
    found
}

fn assert_tells_nothing(act: &str, told: &str) {
    assert!(!told.to_lowercase().contains("canary"), "{act}: {told}");
}

/// Exchanges two names as fast as can be until it is told to stop, and counts how often.
fn exchange(one: &Path, other: &Path, stop: &AtomicBool, count: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does an act many times while its directory is exchanged for a link all the time.
fn race(act: &str, link: &str, walls: Walls, rounds: usize) {
    // In memory, so that the syncs do not slow the race down.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let root = place.path().canonicalize().unwrap();
    acts::prepare(&root);
    let before = looks(&root);
    let scene = Scene::new(root.clone(), walls);
    let held = File::open(root.join("workspace/d")).unwrap();
    let real = PathBuf::from(format!("/proc/self/fd/{}/", held.as_raw_fd()));
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let (one, other) = (root.join("workspace/d"), root.join("workspace").join(link));
    let mut told = BTreeMap::<String, usize>::new();
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&one, &other, &stop, &count));
        let work = std::panic::AssertUnwindSafe(|| {
            for _ in 0..rounds {
                let words = scene.act(act);
                assert_tells_nothing(act, &words);
                *told.entry(words.chars().take(40).collect()).or_default() += 1;
                acts::fill(&real, "inside\n");
            }
        });
        let done = std::panic::catch_unwind(work);
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(looks(&root), before, "{act} {link} {walls:?}");
    let exchanges = count.into_inner();
    assert!(exchanges > rounds as u64, "{act}: only {exchanges} exchanges");
    println!("{act} {link} {walls:?}: {exchanges} exchanges; {told:#?}");
}

/// Does an act once for each of its system calls, with the names exchanged there.
fn sweep(act: &str, link: &str) {
    let sweeps = [
        ("stays", Sweep::of(Mode::Exchange)),
        ("for one call", Sweep::of(Mode::Blink)),
        ("at each call from there", Sweep::of(Mode::Exchange).forever()),
    ];
    let before = std::sync::Mutex::new(BTreeMap::<PathBuf, Looks>::new());
    for (what, sweep) in sweeps {
        let swept = sweep.only(&Kind::ALL).pair("workspace/d", &format!("workspace/{link}")).run(
            |directory| {
                let root = directory.canonicalize().unwrap();
                acts::prepare(&root);
                before.lock().unwrap().insert(directory.to_owned(), looks(&root));
                let mut command = Command::new(example("pathwork"));
                command.arg(root).arg(act);
                command
            },
            |outcome| {
                let said = String::from_utf8_lossy(&outcome.stderr);
                assert!(outcome.status.success(), "{act}: {said}");
                assert_tells_nothing(act, &String::from_utf8_lossy(&outcome.stdout));
                let was = before.lock().unwrap().remove(outcome.directory).unwrap();
                assert_eq!(looks(&outcome.directory.canonicalize().unwrap()), was, "{act}");
            },
        );
        println!("{act} {link}, {what}: {swept:?}");
        assert!(swept.struck > 0);
    }
}

fn race_all(walls: Walls) {
    for (act, rounds, link) in ACTS {
        race(act, link, walls, rounds);
    }
}

#[test]
fn slow_heavy_a_directory_that_is_exchanged_for_a_link_all_the_time_leads_nowhere() {
    race_all(Walls::None);
}

#[test]
fn slow_heavy_nor_does_it_in_the_sandbox() {
    race_all(Walls::Sandbox);
}

#[test]
fn slow_heavy_a_link_that_comes_at_any_system_call_leads_nowhere() {
    for (act, _, link) in ACTS {
        sweep(act, link);
    }
}
