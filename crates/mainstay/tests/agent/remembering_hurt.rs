//! Memories while the agent is killed and while its disk cannot be read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use mainstay_testkit::model::{ModelRequest, ModelServer, Reply, Shape, rounds};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep, Swept};
use serde_json::{Value, json};

use crate::world::{Told, configuration, program};

/// What is asked of the memory, one call a round: each would show if it were done twice.
fn calls(number: usize) -> (&'static str, Value) {
    let arguments = match number {
        0 => json!({ "action": "add", "text": "Ada wrote the parser." }),
        1 => json!({ "action": "feedback", "id": "facts:1", "helpful": true }),
        2 => json!({ "action": "note", "about": "user", "changes": [{ "new": "likes tabs" }] }),
        3 => json!({ "action": "note", "about": "user", "changes": [{ "old": "first" }] }),
        _ => json!({ "action": "feedback", "id": "facts:1", "helpful": false }),
    };
    ("memory", arguments)
}

/// A place whose home is watched, and the model that its agent asks.
struct Place {
    home: PathBuf,
    workspace: PathBuf,
}

impl Place {
    fn at(home: &Path) -> Self {
        Self { home: home.to_owned(), workspace: home.with_file_name("work") }
    }

    fn run(&self, words: &[&str]) -> Told {
        program(&self.home, &self.workspace, words).output().unwrap().into()
    }

    /// Makes it, with two notes and a model.
    fn make(&self, model: &ModelServer) {
        std::fs::create_dir_all(&self.workspace).unwrap();
        let settings = configuration(Shape::Chat, model);
        std::fs::write(self.home.join("config.toml"), settings).unwrap();
        self.run(&["memory", "notes", "--add", "first", "--add", "second"]).ended_with(0);
    }

    fn data(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(words).ended_with(0).stdout).unwrap()
    }

    fn notes(&self) -> Vec<String> {
        let notes = self.data(&["memory", "notes", "--json"])["notes"].clone();
        let texts = notes.as_array().unwrap().iter();
        texts.map(|note| note["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn slow_heavy_killed_at_every_sync_each_change_of_memory_is_made_once() {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::default();
    let prepare = |home: &Path| -> Command {
        let server = ModelServer::start(rounds(5, calls).finally("All kept."));
        let place = Place::at(home);
        place.make(&server);
        servers.lock().unwrap().insert(home.to_owned(), server);
        program(&place.home, &place.workspace, &["run", "--yes", "--json", "remember"])
    };
    let verify = |outcome: &Outcome<'_>| {
        let server = servers.lock().unwrap().remove(outcome.directory).unwrap();
        let place = Place::at(outcome.directory);
        let sessions = place.data(&["sessions", "list", "--json"]);
        let Some(session) = sessions[0]["id"].as_str() else {
            assert_eq!(place.notes(), ["first", "second"]);
            return;
        };
        let told = place.run(&["resume", session, "--yes", "--json"]).ended_with(0);
        assert_eq!(told.event("end")["answer"], "All kept.");
        let list = place.data(&["memory", "list", "--json"]);
        let fact = &list["facts"][0];
        assert_eq!(list["count"], 1, "{list}");
        let times = (fact["helpful"].as_i64(), fact["unhelpful"].as_i64());
        assert_eq!(times, (Some(1), Some(1)), "{list}");
        assert_eq!(place.notes(), ["second", "likes tabs"]);
        // Every call was told that it was done, however often the process died.
        let results = server.asked().pop().unwrap().results();
        assert!(results.iter().all(|(_, text)| !text.contains("no note contains")), "{results:?}");
        server.assert_no_violations();
    };
    let swept = Sweep::of(Mode::Kill).only(&[Kind::Sync]).run(prepare, verify);
    println!("{swept:?}");
    assert!(swept.points > 5, "{swept:?}");
}

/// Fails reads of a command in a place with two notes, and judges what it did.
fn unreadable(
    words: &[&str],
    sweep: &Sweep,
    judge: impl Fn(&Place, &Told, &ModelServer) + Sync,
) -> Swept {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::default();
    let prepare = |home: &Path| -> Command {
        let server = ModelServer::answering(|_: &ModelRequest| Reply::text("hello"));
        let place = Place::at(home);
        place.make(&server);
        servers.lock().unwrap().insert(home.to_owned(), server);
        program(&place.home, &place.workspace, words)
    };
    let verify = |outcome: &Outcome<'_>| {
        let server = servers.lock().unwrap().remove(outcome.directory).unwrap();
        let told = Told {
            code: outcome.status.code(),
            stdout: String::from_utf8_lossy(&outcome.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&outcome.stderr).into_owned(),
        };
        judge(&Place::at(outcome.directory), &told, &server);
    };
    sweep.run(prepare, verify)
}

#[test]
fn slow_notes_that_cannot_be_read_are_neither_changed_nor_lost() {
    let words = ["memory", "notes", "--add", "third"];
    for sweep in [Sweep::of(Mode::Eio), Sweep::of(Mode::Eio).forever()] {
        let swept = unreadable(&words, &sweep.only(&[Kind::Read]).every(9), |place, told, _| {
            let notes = place.notes();
            assert_eq!(notes[..2], ["first", "second"], "{told:#?}");
            let added = notes.get(2).is_some_and(|note| note == "third") && notes.len() == 3;
            assert_eq!(told.code == Some(0), added, "{told:#?}: {notes:?}");
            assert!(added || told.stderr.starts_with("error: "), "{told:#?}");
        });
        println!("{swept:?}");
        assert!(swept.struck > 0, "{swept:?}");
    }
}

#[test]
fn slow_no_session_begins_with_half_its_notes_where_they_cannot_be_read() {
    for sweep in [Sweep::of(Mode::Eio), Sweep::of(Mode::Eio).forever()] {
        let sweep = sweep.only(&[Kind::Read]).every(11);
        let swept = unreadable(&["run", "hi"], &sweep, |place, told, server| {
            for asked in server.asked() {
                let system = asked.system();
                assert!(system.contains("About the user:\n- first\n- second\n"), "{system}");
            }
            assert!(told.code == Some(0) || !told.stderr.is_empty(), "{told:#?}");
            assert_eq!(place.notes(), ["first", "second"]);
            place.run(&["run", "hi"]).ended_with(0);
            assert!(server.asked().pop().unwrap().system().contains("- first\n- second\n"));
        });
        println!("{swept:?}");
        assert!(swept.struck > 0, "{swept:?}");
    }
}
