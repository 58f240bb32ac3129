//! A command is killed at a call of it, and after one more command nothing is there that was not there
//! before and is not what the finished command makes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mainstay_store::Id;
use mainstay_testkit::model::{ModelServer, Shape, rounds};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};
use serde_json::json;

use crate::world::{configuration, program};

const KINDS: [Kind; 7] =
    [Kind::Write, Kind::Sync, Kind::Rename, Kind::Lock, Kind::Create, Kind::Truncate, Kind::Unlink];

/// What is run and killed, after what, and what is run once more.
struct Case<'a> {
    before: &'a [&'a [&'a str]],
    words: &'a [&'a str],
    after: &'a [&'a str],
}

const RUN: &[&str] = &["run", "--yes", "work"];

/// A home, a user's directory, a workspace and a directory for temporary files, in one that is watched.
struct Place {
    home: PathBuf,
    workspace: PathBuf,
    watched: PathBuf,
}

impl Place {
    fn at(watched: &Path) -> Self {
        let watched = watched.canonicalize().unwrap();
        Self { home: watched.join("home"), workspace: watched.join("work"), watched }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = match words {
            ["config", "key", ..] => {
                let mut shell = Command::new("/bin/sh");
                let line = "printf sk-12345678901234567890 | exec \"$0\" \"$@\"";
                shell.args(["-c", line, env!("CARGO_BIN_EXE_mainstay")]).args(words);
                let ready = program(&self.home, &self.workspace, words);
                shell.env_clear().current_dir(&self.workspace);
                shell.envs(ready.get_envs().filter_map(|(name, value)| Some((name, value?))));
                shell
            }
            _ => program(&self.home, &self.workspace, words),
        };
        command.env("HOME", self.watched.join("user")).env("TMPDIR", self.watched.join("tmp"));
        command
    }

    /// Every path, without the letters that differ from run to run.
    fn paths(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut directories = vec![self.watched.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    directories.push(path.clone());
                }
                let inside = path.strip_prefix(&self.watched).unwrap();
                // Part of the store, whether the last one who had it open could fold them in or not.
                if inside == Path::new("home/store.db-wal")
                    || inside == Path::new("home/store.db-shm")
                {
                    continue;
                }
                found.insert(without_ids(inside.to_str().unwrap()));
            }
        }
        found
    }
}

/// A path with one word for every id, for every time, and for the slots of edits: there are sixteen for
/// good, and which of them a file has depends on its directory.
fn without_ids(path: &str) -> String {
    if path.starts_with("home/edits/") {
        return "home/edits/SLOT".to_owned();
    }
    let words = path.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let plain = words.map(|word| {
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let is_time = word[..end].len() > 8 && word.starts_with(|c: char| c.is_ascii_digit());
        let is_id = word[..end].parse::<Id>().is_ok();
        if is_id || is_time { format!("ID{}", &word[end..]) } else { word.to_owned() }
    });
    plain.collect()
}

/// Kills a command at a call of every kind, or at more: with `TESTKIT_SWEEP_SAMPLE=60` there are about a
/// thousand kills.
fn sweep(case: &Case<'_>) {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::default();
    let expected: Mutex<BTreeSet<String>> = Mutex::default();
    let prepare = |watched: &Path| {
        let place = Place::at(watched);
        for name in ["home", "work", "user", "tmp"] {
            std::fs::create_dir(watched.join(name)).unwrap();
        }
        let server = ModelServer::start(
            rounds(2, |number| match number {
                0 => ("shell", json!({ "command": "echo one >> made; seq 20000" })),
                _ => ("write_file", json!({ "path": "written", "content": "two" })),
            })
            .finally("Done."),
        );
        let text = configuration(Shape::Chat, &server) + "[keeper]\ngrace = \"1s\"\n";
        std::fs::write(place.home.join("config.toml"), text).unwrap();
        let skill = place.workspace.join("a-skill");
        std::fs::create_dir(&skill).unwrap();
        let front = "---\nname: a-skill\ndescription: Does a thing.\n---\nDo it.\n";
        std::fs::write(skill.join("SKILL.md"), front).unwrap();
        for words in case.before {
            let output = place.command(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
        }
        servers.lock().unwrap().insert(watched.to_owned(), server);
        expected.lock().unwrap().extend(place.paths());
        place.command(case.words)
    };
    let verify = |outcome: &Outcome<'_>| {
        let _server = servers.lock().unwrap().remove(outcome.directory).unwrap();
        let place = Place::at(outcome.directory);
        if outcome.mode == Mode::Count {
            let said = String::from_utf8_lossy(&outcome.stderr);
            assert!(outcome.status.success(), "{:?}: {said}", case.words);
        }
        let told = place.command(case.after).output().unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        let mut expected = expected.lock().unwrap();
        loop {
            let found = place.paths();
            if outcome.mode == Mode::Count && !found.iter().any(|path| path.contains("keepers")) {
                expected.extend(found);
                return;
            }
            let left: Vec<_> = found.difference(&expected).collect();
            // A keeper that was left takes its time to go.
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "{:?} left {left:#?}; then {told:?}", case.words);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut struck = 0;
    for kind in KINDS {
        let sample = Sweep::of(Mode::Kill).only(&[kind]).sample(1);
        let swept = sample.run(prepare, verify);
        struck += swept.struck;
        println!("{:?} {kind:?}: {} points, {} kills", case.words, swept.points, swept.struck);
    }
    assert!(struck > 0, "{:?} was not killed", case.words);
}

#[test]
fn slow_heavy_a_killed_run_leaves_nothing_after_it_is_resumed() {
    sweep(&Case { before: &[], words: RUN, after: &["resume", "--yes"] });
}

#[test]
fn slow_heavy_a_killed_undo_leaves_nothing_after_it_is_run_again() {
    sweep(&Case { before: &[RUN], words: &["undo"], after: &["undo"] });
}

#[test]
fn slow_a_killed_change_of_settings_leaves_nothing() {
    let list: &[&str] = &["config", "get", "model"];
    let key: &[&str] = &["config", "key", "set", "openai"];
    for words in [&["config", "set", "budget.turn_usd", "3"], key] {
        sweep(&Case { before: &[&["config", "key", "set", "anthropic"]], words, after: list });
    }
    sweep(&Case { before: &[key], words: &["config", "key", "remove", "openai"], after: list });
}

#[test]
fn slow_heavy_a_killed_backup_copy_or_restore_leaves_nothing() {
    let list: &[&str] = &["sessions", "list"];
    let backup: &[&str] = &["backup", "../tmp/backup"];
    sweep(&Case { before: &[RUN], words: backup, after: list });
    sweep(&Case { before: &[RUN], words: &["store", "copy", "--to", "copy"], after: list });
    let restore: &[&str] = &["restore", "../tmp/backup"];
    sweep(&Case { before: &[RUN, backup], words: restore, after: restore });
}

#[test]
fn slow_a_killed_change_of_skills_leaves_nothing() {
    let add: &[&str] = &["skills", "add", "a-skill"];
    let replace: &[&str] = &["skills", "add", "a-skill", "--replace"];
    let list: &[&str] = &["skills", "list"];
    sweep(&Case { before: &[], words: add, after: list });
    sweep(&Case { before: &[add, replace], words: replace, after: list });
    sweep(&Case { before: &[add, replace], words: &["skills", "remove", "a-skill"], after: list });
}

#[test]
fn slow_heavy_a_killed_demo_leaves_nothing() {
    sweep(&Case { before: &[], words: &["demo", "--json"], after: &["sessions", "list"] });
}
