//! Killed at each commit around a decision: what was decided holds, and the command runs once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use mainstay_testkit::model::{ModelServer, Shape};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep, Swept};
use serde_json::Value;

use crate::approving::{counting, put_counter, waiting};
use crate::world::{Told, configuration, nothing_runs, program};

const CALLS: usize = 2;

/// A home in which something was killed.
struct Scene<'a> {
    home: &'a Path,
    workspace: PathBuf,
}

impl Scene<'_> {
    fn run(&self, words: &[&str]) -> Told {
        program(self.home, &self.workspace, words).output().unwrap().into()
    }

    fn count(&self) -> String {
        std::fs::read_to_string(self.workspace.join("count")).unwrap_or_default()
    }

    fn waiting(&self) -> Vec<String> {
        waiting(&self.run(&["approvals", "--json"]).ended_with(0))
    }

    fn requests(&self) -> usize {
        let all = self.run(&["approvals", "--all", "--json"]).ended_with(0);
        let all: Value = serde_json::from_str(&all.stdout).unwrap();
        all["requests"].as_array().unwrap().len()
    }

    /// Runs until the turn is parked on its first request; answers that.
    fn parked(&self) -> String {
        self.run(&["run", "count"]).ended_with(3);
        self.waiting().remove(0)
    }

    fn approve(&self, id: &str) -> Told {
        self.run(&["approve", id, "--sure"])
    }

    /// Resumes and approves until the turn is over. Each command ran once, each was asked about once.
    fn finished(&self) {
        for _ in 0..=CALLS {
            let told = self.run(&["resume"]);
            if told.code == Some(0) {
                break;
            }
            told.ended_with(3);
            for id in self.waiting() {
                self.approve(&id).ended_with(0);
            }
        }
        let expected: String = (0..CALLS).map(|number| format!("{number}\n")).collect();
        assert_eq!(self.count(), expected);
        assert_eq!(self.requests(), CALLS);
        assert!(self.waiting().is_empty());
        nothing_runs(self.home);
    }
}

/// Kills a command at every sync of the store, after `before` made the scene ready.
fn sweep(
    before: impl Fn(&Scene<'_>) -> Vec<String> + Sync,
    after: impl Fn(&Scene<'_>, &Outcome<'_>) + Sync,
) -> Swept {
    let servers: Mutex<HashMap<PathBuf, ModelServer>> = Mutex::new(HashMap::new());
    let prepare = |home: &Path| -> Command {
        let server = ModelServer::start(counting(CALLS));
        let workspace = home.with_file_name("work");
        std::fs::create_dir_all(&workspace).unwrap();
        put_counter(&workspace);
        std::fs::write(home.join("config.toml"), configuration(Shape::Chat, &server)).unwrap();
        servers.lock().unwrap().insert(home.to_owned(), server);
        let words = before(&Scene { home, workspace: workspace.clone() });
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        program(home, &workspace, &words)
    };
    let verify = |outcome: &Outcome<'_>| {
        let server = servers.lock().unwrap().remove(outcome.directory).unwrap();
        let scene =
            Scene { home: outcome.directory, workspace: outcome.directory.with_file_name("work") };
        after(&scene, outcome);
        server.assert_no_violations();
    };
    Sweep::of(Mode::Kill).only(&[Kind::Sync]).run(prepare, verify)
}

#[test]
fn slow_killed_while_it_asks_the_turn_asks_once() {
    let swept = sweep(
        |_| vec!["run".to_owned(), "count".to_owned()],
        |scene, _| {
            let told = scene.run(&["sessions", "list", "--json"]);
            let begun = told.code == Some(0) && told.stdout.trim() != "[]";
            assert_eq!(scene.count(), "", "a command ran before anybody said yes");
            if begun {
                scene.finished();
            }
        },
    );
    println!("{swept:?}");
    assert!(swept.points >= 3, "{swept:?}");
}

#[test]
fn slow_killed_while_it_decides_a_decision_is_made_or_not_made() {
    let swept = sweep(
        |scene| vec!["approve".to_owned(), scene.parked(), "--sure".to_owned()],
        |scene, outcome| {
            match scene.waiting().as_slice() {
                // Not made: it can be.
                [id] => {
                    assert!(!outcome.status.success(), "it was told and is not there");
                    scene.approve(id).ended_with(0);
                }
                [] => {}
                more => panic!("{more:?}"),
            }
            scene.finished();
        },
    );
    println!("{swept:?}");
    assert!(swept.points >= 1, "{swept:?}");
}

#[test]
fn slow_killed_between_the_yes_and_the_end_of_the_command_it_runs_once() {
    let swept = sweep(
        |scene| {
            let id = scene.parked();
            scene.approve(&id).ended_with(0);
            vec!["resume".to_owned()]
        },
        |scene, _| {
            // The first is not asked about again: at most the second waits.
            let told = scene.run(&["resume"]);
            assert!(matches!(told.code, Some(0 | 3)), "{told:#?}");
            assert!(scene.count().starts_with("0\n"), "{told:#?}");
            assert!(scene.requests() <= CALLS);
            for id in scene.waiting() {
                scene.approve(&id).ended_with(0);
            }
            scene.finished();
        },
    );
    println!("{swept:?}");
    assert!(swept.points >= 3, "{swept:?}");
}
