//! The file tools through their trait, in a workplace on disk.
#![allow(clippy::disallowed_methods, reason = "tests stand outside the product's seams")]

mod bounds;
mod editing;
mod git;
mod reading;
mod searching;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::file_tools;
use crate::keeper::Launch;
use crate::{Grant, Invocation, Keeper, Outcome, Piece, Settled, Tool, Workplace};

/// A workspace, with a home beside it that is closed to all tools.
struct Place {
    directory: tempfile::TempDir,
    workplace: Workplace,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let (workspace, home) = (root.join("workspace"), root.join("home"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&home).unwrap();
        let forbidden = vec![home, root.join("store.db"), root.join("store.db-wal")];
        let workplace = Workplace { forbidden, ..Workplace::new(workspace, keeper()) };
        Self { directory, workplace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workplace.workspace.join(name)
    }

    /// Beside the workspace.
    fn outside(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Plans and runs a call, as the engine does.
    async fn call(&self, name: &str, arguments: Value) -> Outcome {
        let plan = self.plan(name, &arguments).await;
        self.run(name, &arguments, plan.as_ref()).await
    }

    async fn plan(&self, name: &str, arguments: &Value) -> Option<Value> {
        tool(name).plan(self.invocation(arguments)).await
    }

    async fn run(&self, name: &str, arguments: &Value, plan: Option<&Value>) -> Outcome {
        tool(name).run(self.invocation(arguments), plan).await
    }

    async fn settle(&self, name: &str, arguments: &Value, plan: Option<&Value>) -> Settled {
        tool(name).settle(self.invocation(arguments), plan).await
    }

    fn invocation<'a>(&'a self, arguments: &'a Value) -> Invocation<'a> {
        Invocation {
            id: "call",
            session: "session",
            arguments,
            workplace: &self.workplace,
            grant: Grant::NONE,
            target: None,
        }
    }
}

fn keeper() -> Keeper {
    // Nothing here starts it.
    Keeper::new(Launch {
        program: "/nonexistent".into(),
        arguments: Vec::new(),
        spool: "/nonexistent".into(),
        grace: Duration::ZERO,
    })
}

fn tool(name: &str) -> Arc<dyn Tool> {
    file_tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
}

/// All words of the harness in an outcome.
fn said(outcome: &Outcome) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Said(words) => Some(words.as_str()),
        _ => None,
    });
    words.collect()
}

/// All words from outside in an outcome.
fn data(outcome: &Outcome) -> String {
    let words = outcome.pieces.iter().filter_map(|piece| match piece {
        Piece::Data(words) => Some(words.as_str()),
        _ => None,
    });
    words.collect()
}

#[track_caller]
fn assert_says(outcome: &Outcome, words: &str) {
    let said = said(outcome);
    assert!(said.contains(words), "{words:?} is not in {said:?}");
}

#[track_caller]
fn assert_fails(outcome: &Outcome, words: &str) {
    assert!(outcome.failed, "it did not fail: {outcome:?}");
    assert_says(outcome, words);
}

#[track_caller]
fn assert_works(outcome: &Outcome) {
    assert!(!outcome.failed, "it failed: {outcome:?}");
}

/// Makes a pipe, which nobody writes to.
fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

#[test]
fn a_model_is_told_of_each_tool_in_few_bytes() {
    let names: Vec<String> = file_tools().iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, ["read_file", "write_file", "edit_file", "list", "glob", "grep"]);
    for tool in file_tools() {
        let spec = serde_json::to_string(&tool.spec()).unwrap();
        assert!(spec.len() <= 450, "{} bytes: {spec}", spec.len());
        let parameters: Value = serde_json::from_str(tool.spec().parameters.as_str()).unwrap();
        assert_eq!(parameters["type"], "object");
    }
}

#[tokio::test]
async fn wrong_arguments_are_told_and_nothing_is_done() {
    let place = Place::new();
    for tool in file_tools() {
        let name = tool.spec().name;
        let outcome = place.call(&name, json!({ "path": 7 })).await;
        assert_fails(&outcome, "Invalid arguments");
    }
}
