//! A power cut keeps what was synced, and may take the rest.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "test-only code stands outside the product's seams"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use mainstay_testkit::oplog::Op;
use mainstay_testkit::powercut::{Disk, PowerCut, Snapshot, State, Variant};
use mainstay_testkit::process::example;
use mainstay_testkit::shim::{Mode, Shim};

fn recorded(manner: &str) -> Vec<Op> {
    let directory = tempfile::tempdir().unwrap();
    let shim = Shim::under(directory.path()).mode(Mode::Record);
    let mut command = Command::new(example("file_writer"));
    command.arg(directory.path()).arg(shim.acks()).arg(manner);
    assert!(shim.apply(&mut command).status().unwrap().success());
    shim.operations()
}

fn check_items(state: &State, directory: &Path) {
    for number in &state.acked {
        let item = fs::read(directory.join(format!("item-{number}")));
        let whole = [&[*number; 3000][..], b"end"].concat();
        assert_eq!(item.ok(), Some(whole), "item {number} is lost");
    }
}

#[test]
fn a_careful_program_loses_nothing_on_an_honest_disk() {
    let operations = recorded("careful");
    assert_eq!(operations.iter().filter(|op| matches!(op, Op::Acknowledge { .. })).count(), 4);
    let states = PowerCut::of(operations).subsets(8).verify(check_items);
    assert!(states > 30, "only {states} states");
}

#[test]
#[should_panic(expected = "is lost")]
fn a_careful_program_loses_on_a_disk_that_lies() {
    PowerCut::of(recorded("careful")).disk(Disk::IgnoresSync).verify(check_items);
}

#[test]
#[should_panic(expected = "is lost")]
fn a_careless_program_loses_on_an_honest_disk() {
    PowerCut::of(recorded("careless")).verify(check_items);
}

#[test]
fn keeping_everything_loses_nothing_even_for_the_careless() {
    let cut = PowerCut::of(recorded("careless"));
    let kept = cut.states().filter(|state| state.variant == Variant::Everything);
    for state in kept {
        let directory = tempfile::tempdir().unwrap();
        state.materialise(directory.path());
        check_items(&state, directory.path());
    }
}

#[test]
fn the_last_state_with_everything_is_the_directory_itself() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("old")).unwrap();
    fs::write(directory.path().join("old/one"), "first content").unwrap();
    fs::write(directory.path().join("socket-like"), "left out").unwrap();
    let initial = Snapshot::of(directory.path());
    let shim = Shim::under(directory.path()).mode(Mode::Record);
    let mut command = Command::new(example("file_juggler"));
    command.arg(directory.path());
    assert!(shim.apply(&mut command).status().unwrap().success());

    let cut = PowerCut::of(shim.operations())
        .starting_from(initial)
        .skip(|path| path == Path::new("socket-like"));
    let last = cut.states().filter(|state| state.variant == Variant::Everything).last().unwrap();
    let rebuilt = tempfile::tempdir().unwrap();
    last.materialise(rebuilt.path());
    fs::remove_file(directory.path().join("socket-like")).unwrap();
    let listing = |directory: &Path| {
        let output = Command::new("sh")
            .current_dir(directory)
            .args([
                "-c",
                "find . -mindepth 1 -printf '%p %m %n %y\\n' | sort; cat new/moved/one copied emptied",
            ])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let real = listing(directory.path());
    assert!(real.contains("+appended+vector+after the move"), "{real}");
    assert_eq!(listing(rebuilt.path()), real);
}

fn create(inode: u64, path: &str) -> Op {
    Op::Create { inode, path: path.into(), mode: 0o600 }
}

fn write(inode: u64, path: &str, offset: u64, data: &[u8]) -> Op {
    Op::Write { inode, path: path.into(), offset, data: data.to_vec() }
}

fn sync(inode: u64, path: &str) -> Op {
    Op::SyncFile { inode, path: path.into() }
}

/// The contents that a file may have after the last operation. Returns `None` if it is not there.
fn endings(mut operations: Vec<Op>, path: &str) -> BTreeSet<Option<String>> {
    // So that no ending is left out for being the same as the beginning.
    operations.push(Op::Acknowledge { data: vec![1] });
    let last = operations.len();
    PowerCut::of(operations)
        .subsets(40)
        .every(last)
        .states()
        .filter(|state| state.at == last)
        .map(|state| state.file(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        .collect()
}

fn texts(expected: &[Option<&str>]) -> BTreeSet<Option<String>> {
    expected.iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn a_synced_file_without_a_synced_directory_may_be_missing() {
    let operations = vec![create(1, "a"), write(1, "a", 0, b"x"), sync(1, "a")];
    assert_eq!(endings(operations, "a"), texts(&[None, Some("x")]));
}

#[test]
fn a_synced_name_without_a_synced_file_may_be_empty() {
    let root = Op::SyncDirectory { path: "".into() };
    let operations = vec![create(1, "a"), write(1, "a", 0, b"x"), root];
    assert_eq!(endings(operations, "a"), texts(&[Some(""), Some("x")]));
}

#[test]
fn a_rename_that_was_not_synced_leaves_the_old_or_the_new() {
    let root = || Op::SyncDirectory { path: "".into() };
    let operations = vec![
        create(1, "a"),
        write(1, "a", 0, b"old"),
        sync(1, "a"),
        root(),
        create(2, "t"),
        write(2, "t", 0, b"new"),
        sync(2, "t"),
        Op::Rename { from: "t".into(), to: "a".into() },
    ];
    assert_eq!(endings(operations.clone(), "a"), texts(&[Some("old"), Some("new")]));
    let settled = [operations, vec![root()]].concat();
    assert_eq!(endings(settled.clone(), "a"), texts(&[Some("new")]));
    assert_eq!(endings(settled, "t"), texts(&[None]));
}

#[test]
fn writes_happen_or_not_each_by_itself() {
    let mut operations = vec![create(1, "a"), Op::SyncDirectory { path: "".into() }];
    operations.extend([write(1, "a", 0, b"--"), sync(1, "a")]);
    operations.extend([write(1, "a", 0, b"A"), write(1, "a", 1, b"B")]);
    let all = texts(&[Some("--"), Some("A-"), Some("-B"), Some("AB")]);
    assert_eq!(endings(operations, "a"), all);
}

#[test]
fn a_torn_write_is_torn_at_sectors_only() {
    let mut operations = vec![create(1, "a"), Op::SyncDirectory { path: "".into() }];
    operations.extend([write(1, "a", 0, &[b'-'; 2048]), sync(1, "a")]);
    operations.push(write(1, "a", 100, &[b'X'; 1500]));
    let mut torn = 0;
    for content in endings(operations, "a").into_iter().flatten() {
        let parts = [&content[100..512], &content[512..1024], &content[1024..1536]];
        for part in parts.into_iter().chain([&content[1536..1600]]) {
            assert!(part.bytes().all(|byte| byte == part.as_bytes()[0]), "torn inside a sector");
        }
        torn += usize::from(content.contains('X') && content[100..1600].contains('-'));
    }
    assert!(torn > 3, "only {torn} torn states");
}

#[test]
fn an_inode_that_is_used_again_is_another_file() {
    let operations = vec![
        create(1, "a"),
        write(1, "a", 0, b"first"),
        sync(1, "a"),
        Op::Unlink { path: "a".into() },
        create(1, "b"),
        Op::SyncDirectory { path: "".into() },
    ];
    assert_eq!(endings(operations, "b"), texts(&[Some("")]));
}

#[test]
fn a_state_can_be_built_again_by_its_seed() {
    let operations = recorded("careless");
    let picture = |seed| {
        let cut = PowerCut::of(operations.clone()).seed(seed);
        cut.states().map(|state| (state.name(), state.file("item-1").map(<[u8]>::to_vec))).collect()
    };
    let first: Vec<_> = picture(7);
    assert_eq!(first, picture(7));
    assert_ne!(first, picture(8));
}

#[test]
fn a_file_that_was_there_before_needs_a_snapshot() {
    let cut = || PowerCut::of(vec![write(9, "old", 0, b"x")]).states().count();
    assert!(catch_unwind(AssertUnwindSafe(cut)).is_err());
}
