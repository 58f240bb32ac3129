//! Edits of one file by many processes and by a person, who does not know of them.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a panic is a test's error")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mainstay_testkit::capability::{EDITING_MILLIS, SWEEP_STEP};
use mainstay_testkit::process::example;
use mainstay_testkit::shim::Mode;
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde::Deserialize;

/// How long many edit each file, in milliseconds, unless [`EDITING_MILLIS`] says otherwise.
const ROUND_MILLIS: u64 = 1_000;
const AGENTS: usize = 8;
const LINES: usize = 3;

/// One call of an agent, with what it was told.
#[derive(Deserialize)]
struct Call {
    start: u64,
    end: u64,
    key: String,
    old: u64,
    new: u64,
    made: bool,
    words: String,
}

/// One save of the person: what was read before, and what was saved.
#[derive(Deserialize)]
struct Save {
    end: u64,
    found: u64,
    values: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Sum {
    made: usize,
    refused: usize,
    saves: usize,
    /// Saves that the person's next look did not find: in place, by a program that the machine held up
    /// between finding the file and opening it, or by a rename, and put back a moment later.
    missed: usize,
    overwritten_by_person: usize,
    told: usize,
}

fn start(arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(example("editor"));
    command.args(arguments).stdout(Stdio::piped()).spawn().unwrap()
}

fn lines<T: for<'a> Deserialize<'a>>(child: std::process::Child) -> Vec<T> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn round_millis() -> u64 {
    std::env::var(EDITING_MILLIS).map_or(ROUND_MILLIS, |text| text.parse().unwrap())
}

/// A file with a line for the person and some for each agent, filled up to a size.
fn content(size: usize) -> String {
    let mut content = String::from("person = 0;\n");
    for agent in 0..AGENTS {
        for line in 0..LINES {
            content.push_str(&format!("agent{agent}-{line} = 0;\n"));
        }
    }
    let mut number = 0;
    while content.len() < size {
        number += 1;
        content.push_str(&format!("filling, so that the file has its size: {number}\n"));
    }
    content
}

/// All edit one file for a while; what each was told is held against what became of it.
fn round(size: usize, with_person: bool) -> Sum {
    let place = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(place.path()).unwrap();
    let workspace = root.join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("file"), content(size)).unwrap();
    // Two homes: what they have in common is the workspace.
    let homes = [root.join("one"), root.join("other")];
    homes.iter().for_each(|home| fs::create_dir(home).unwrap());
    let millis = round_millis().to_string();
    let shown = workspace.to_str().unwrap();
    let agents: Vec<_> = (0..AGENTS)
        .map(|number| {
            let home = homes[number % 2].to_str().unwrap();
            start(&["agent", home, shown, "file", &number.to_string(), &millis])
        })
        .collect();
    let person = with_person.then(|| start(&["person", shown, "file", &millis]));
    let saves: Vec<Save> = person.map(lines).unwrap_or_default();
    let calls: Vec<Vec<Call>> = agents.into_iter().map(lines).collect();
    for name in names(&workspace).iter().filter(|name| *name != "file") {
        // What somebody wrote into a new file in the moment that it was there is kept, and told.
        let told = calls.iter().flatten().any(|call| call.words.contains(name.as_str()));
        assert!(with_person && name.contains(".kept-") && told, "{name} was left behind");
    }
    judge(&calls, &saves, &values(&workspace.join("file")))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn values(path: &Path) -> HashMap<String, u64> {
    let content = fs::read_to_string(path).unwrap();
    let values = content.lines().filter_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        Some((name.to_owned(), value.strip_suffix(';')?.parse().ok()?))
    });
    values.collect()
}

fn is_told(call: &Call) -> bool {
    call.words.contains("changed on disk since you last")
}

fn judge(calls: &[Vec<Call>], saves: &[Save], last: &HashMap<String, u64>) -> Sum {
    let mut sum = Sum { saves: saves.len(), ..Sum::default() };
    // Nobody else saves, so what the person saved is what the person finds. Each second save is a rename,
    // and none of those is ever lost; at most it is found a moment later, if the machine holds an agent
    // up between exchanging and putting back. One in place can be lost, if the machine holds its program
    // up between two steps of one system call for longer than a sync takes: see docs/design/edits.md.
    let found: Vec<u64> = saves.iter().map(|save| save.found).chain([last["person"]]).collect();
    for (number, &now) in (0_u64..).zip(&found) {
        if now != number {
            let later = found.iter().skip(usize::try_from(number).unwrap());
            let is_there = later.clone().any(|&found| found == number);
            assert!(number % 2 == 1 || is_there, "save {number}, a rename, was lost: {found:?}");
            sum.missed += 1;
        }
    }
    for calls in calls {
        sum.made += calls.iter().filter(|call| call.made).count();
        let refused = calls.iter().filter(|call| !call.made);
        refused.clone().for_each(|call| println!("refused: {}", call.words));
        sum.refused += refused.count();
        sum.told += calls.iter().filter(|call| is_told(call)).count();
        for line in 0..LINES {
            let of_line: Vec<&Call> =
                calls.iter().filter(|call| call.key.ends_with(&format!("-{line}"))).collect();
            let Some(key) = of_line.first().map(|call| call.key.as_str()) else { continue };
            // What the file had when the line came up next.
            let after = of_line.iter().skip(1).map(|call| call.old).chain([last[key]]);
            let mut last_made = 0;
            for (call, found) in of_line.iter().zip(after) {
                let expected = if call.made { call.new } else { call.old };
                if call.made {
                    last_made = call.start;
                }
                if found == expected {
                    continue;
                }
                // The person saved what had been there before. More than one save may have: the edit
                // was made after the one, and is gone since the other.
                let explains =
                    |save: &&Save| save.values.get(key) == Some(&found) && save.end > last_made;
                let mut saves = saves.iter().filter(explains).peekable();
                assert!(saves.peek().is_some(), "{key}: {expected} was lost, {found} found");
                // Whoever made it is told with the next call, whichever line that is about.
                let is_said = |save: &Save| {
                    let next = calls.iter().find(|call| call.start > save.end);
                    next.is_none_or(|next| !next.made || is_told(next))
                };
                assert!(saves.any(is_said), "{key}: {expected} was lost and nobody was told");
                sum.overwritten_by_person += 1;
            }
            assert!(of_line.is_sorted_by_key(|call| call.end));
        }
    }
    sum
}

/// A place for a sweep: a workspace and a home in the watched directory.
fn prepare(directory: &Path, call: &[&str]) -> Command {
    fs::create_dir(directory.join("workspace")).unwrap();
    fs::create_dir(directory.join("home")).unwrap();
    fs::write(directory.join("workspace/file"), content(1 << 10)).unwrap();
    fs::write(directory.join("workspace/other"), "one\n").unwrap();
    editor(directory, call)
}

fn editor(directory: &Path, call: &[&str]) -> Command {
    let (home, workspace) = (directory.join("home"), directory.join("workspace"));
    let mut command = Command::new(example("editor"));
    command.arg(call[0]).args([home, workspace]).args(&call[1..]);
    command
}

/// The next edit, of another file, after which nothing may be left behind.
fn come_next(outcome: &Outcome<'_>, expected: &[&str]) {
    let edit = ["once", "edit_file", r#"{"path":"other","old":"one","new":"two"}"#];
    let next = editor(outcome.directory, &edit).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stdout));
    let workspace = outcome.directory.join("workspace");
    let mut left = names(&workspace);
    // What the person was saving when the process died is none of ours.
    left.retain(|name| name != "file.saving");
    // Nor is what the person saved, and saved over while we had it in hand.
    left.retain(|name| !name.starts_with("file.kept-"));
    left.sort();
    assert_eq!(left, expected);
    for slot in fs::read_dir(outcome.directory.join("home/edits")).unwrap() {
        assert_eq!(slot.unwrap().metadata().unwrap().len(), 0, "a record was left");
    }
}

const EDIT: [&str; 3] =
    ["once", "edit_file", r#"{"path":"file","old":"person = 0;","new":"person = 1;"}"#];

fn sweep_an_edit(mode: Mode) {
    let swept = Sweep::of(mode).run(
        |directory| prepare(directory, &EDIT),
        |outcome| {
            let (old, new) =
                (content(1 << 10), content(1 << 10).replace("person = 0", "person = 1"));
            come_next(outcome, &["file", "other"]);
            let now = fs::read_to_string(outcome.directory.join("workspace/file")).unwrap();
            assert!(now == new || now == old && !outcome.status.success(), "{now}");
        },
    );
    println!("{mode}: {swept:?}");
}

#[test]
fn an_edit_that_is_killed_anywhere_leaves_nothing_for_the_one_after_the_next() {
    sweep_an_edit(Mode::Kill);
    sweep_an_edit(Mode::Torn);
}

#[test]
fn an_edit_that_fails_anywhere_leaves_nothing_behind() {
    sweep_an_edit(Mode::Eio);
    sweep_an_edit(Mode::Enospc);
}

#[test]
fn a_new_file_that_is_killed_anywhere_is_whole_or_not_there() {
    let call = ["once", "write_file", r#"{"path":"new","content":"whole"}"#];
    let swept = Sweep::of(Mode::Kill).run(
        |directory| prepare(directory, &call),
        |outcome| {
            let path = outcome.directory.join("workspace/new");
            if path.exists() {
                come_next(outcome, &["file", "new", "other"]);
                assert_eq!(fs::read_to_string(path).unwrap(), "whole");
            } else {
                assert!(!outcome.status.success());
                come_next(outcome, &["file", "other"]);
            }
        },
    );
    println!("{swept:?}");
}

#[test]
fn slow_heavy_a_kill_while_a_person_saves_loses_no_save() {
    let step = std::env::var(SWEEP_STEP).map_or(7, |text| text.parse().unwrap());
    let swept = Sweep::of(Mode::Kill).every(step).run(
        |directory| prepare(directory, &["contended", "file", "6"]),
        |outcome| {
            let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
            let saved = said.lines().filter_map(|line| line.strip_prefix("saved ")?.parse().ok());
            come_next(outcome, &["file", "other"]);
            let found = values(&outcome.directory.join("workspace/file"))["person"];
            assert!(saved.max() <= Some(found), "{said}, but {found} was found");
        },
    );
    println!("{swept:?}");
}

const SIZES: [usize; 4] = [1 << 10, 9 << 10, 240 << 10, 1 << 20];

#[test]
fn heavy_every_edit_of_eight_processes_that_was_acknowledged_is_there() {
    for size in SIZES {
        let sum = round(size, false);
        println!("{size} bytes: {sum:?}");
        assert_eq!(sum.overwritten_by_person, 0);
        assert!(sum.made > 0);
        assert_eq!(sum.refused, 0);
    }
}

#[test]
fn slow_heavy_edits_and_a_persons_saves_are_there_or_overwritten_by_the_person() {
    for size in SIZES {
        let sum = round(size, true);
        println!("{size} bytes: {sum:?}");
        assert!(sum.made > 0 && sum.saves > 1);
        assert!(sum.missed * 20 <= sum.saves, "{sum:?}");
    }
}
