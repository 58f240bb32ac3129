//! What the tests of edits by many run: an agent that edits, and a person who does.
//!
//! `editor agent HOME WORKSPACE FILE NUMBER MILLIS` edits lines of its own with the tool itself, one
//! after the other, and prints what it was told. `editor person WORKSPACE FILE MILLIS` reads the file,
//! changes a line of its own and saves, by a rename and in place by turns, as editors do. `editor once
//! HOME WORKSPACE TOOL ARGUMENTS` makes one call. `editor contended HOME WORKSPACE FILE EDITS` is both in
//! one process, with saves as fast as can be. `editor bench HOME WORKSPACE FILE COUNT` measures
//! edits. Times are nanoseconds since boot.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program of the tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mainstay_tools::keeper::Launch;
use mainstay_tools::{
    EditSlots, Grant, Invocation, Keeper, Outcome, Piece, Tool, Workplace, file_tools,
};
use serde_json::{Value, json};

/// Lines of its own that an agent edits.
const LINES: usize = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match given[..] {
        ["agent", home, workspace, file, number, millis] => {
            let agent = Agent::new(home, workspace);
            agent.edit_for(file, number.parse().unwrap(), millis.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["person", workspace, file, millis] => {
            person(&Path::new(workspace).join(file), millis.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["contended", home, workspace, file, edits] => {
            contended(&Agent::new(home, workspace), file, edits.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["bench", home, workspace, file, count] => {
            Agent::new(home, workspace).bench(file, count.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["once", home, workspace, tool, arguments] => {
            let agent = Agent::new(home, workspace);
            let outcome = agent.call(tool, &serde_json::from_str(arguments).unwrap());
            println!("{}", words(&outcome));
            if outcome.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        _ => ExitCode::FAILURE,
    }
}

struct Agent {
    runtime: tokio::runtime::Runtime,
    workplace: Workplace,
}

impl Agent {
    fn new(home: &str, workspace: &str) -> Self {
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: "/nonexistent".into(),
            grace: Duration::ZERO,
        });
        let workplace = Workplace {
            forbidden: vec![PathBuf::from(home)],
            edit_slots: EditSlots::in_directory(Path::new(home).join("edits")),
            ..Workplace::new(workspace, keeper)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, workplace }
    }

    /// Plans and runs a call, as the engine does.
    fn call(&self, tool: &str, arguments: &Value) -> Outcome {
        let tool = tool_named(tool);
        let call = || Invocation {
            id: "call",
            session: "session",
            arguments,
            workplace: &self.workplace,
            grant: Grant::NONE,
            target: None,
        };
        self.runtime.block_on(async {
            let plan = tool.plan(call()).await;
            tool.run(call(), plan.as_ref()).await
        })
    }

    /// Prints how many microseconds an edit takes, the median of many.
    fn bench(&self, file: &str, count: u64) {
        let mut times: Vec<u64> = (0..count)
            .map(|number| {
                let [old, new] = [number, number + 1].map(|value| format!("person = {value};"));
                let arguments = json!({ "path": file, "old": old, "new": new });
                let start = now();
                let outcome = self.call("edit_file", &arguments);
                assert!(!outcome.failed, "{}", words(&outcome));
                (now() - start) / 1000
            })
            .collect();
        times.sort_unstable();
        println!("{}", times[times.len() / 2]);
    }

    fn edit_for(&self, file: &str, number: usize, millis: u64) {
        let path = self.workplace.workspace.join(file);
        let end = now() + millis * 1_000_000;
        let (mut known, mut next) = ([0_u64; LINES], [1_u64; LINES]);
        for line in (0..LINES).cycle() {
            let start = now();
            if start > end {
                return;
            }
            let key = format!("agent{number}-{line}");
            let (old, new) = (known[line], next[line]);
            let arguments = json!({
                "path": file, "old": format!("{key} = {old};"), "new": format!("{key} = {new};"),
            });
            let outcome = self.call("edit_file", &arguments);
            let said = json!({
                "start": start, "end": now(), "key": key, "old": old, "new": new,
                "made": !outcome.failed, "words": words(&outcome),
            });
            println!("{said}");
            next[line] += 1;
            if outcome.failed {
                // It looks again, as a model would; a save in place may be under way.
                known[line] = found(&path, &key);
            } else {
                known[line] = new;
            }
        }
    }
}

/// The value of a line of the file, as soon as it has one.
fn found(path: &Path, key: &str) -> u64 {
    loop {
        let content = fs::read_to_string(path).unwrap_or_default();
        if let Some((_, value)) = values(&content).find(|(name, _)| *name == key) {
            return value;
        }
    }
}

fn values(content: &str) -> impl Iterator<Item = (&str, u64)> {
    content.lines().filter_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        Some((name, value.strip_suffix(';')?.parse().ok()?))
    })
}

fn person(path: &Path, millis: u64) {
    let end = now() + millis * 1_000_000;
    for number in 1_u64.. {
        let content = fs::read_to_string(path).unwrap();
        let last = values(&content).find(|(name, _)| *name == "person").unwrap().1;
        let read = now();
        let content = content.replace(&format!("person = {last};"), &format!("person = {number};"));
        if number % 2 == 0 {
            let beside = path.with_extension("saving");
            fs::write(&beside, &content).unwrap();
            fs::rename(&beside, path).unwrap();
        } else {
            fs::write(path, &content).unwrap();
        }
        let values: Value = values(&content).map(|(name, value)| (name, json!(value))).collect();
        println!("{}", json!({ "read": read, "end": now(), "found": last, "values": values }));
        if now() > end {
            return;
        }
        std::thread::sleep(Duration::from_millis(number * 7 % 40));
    }
}

/// Edits a file while a person saves it all the time, by renames, until the edits are made.
fn contended(agent: &Agent, file: &str, edits: u64) {
    let path = agent.workplace.workspace.join(file);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1_u64.. {
                let content = fs::read_to_string(&path).unwrap();
                let last = values(&content).find(|(name, _)| *name == "person").unwrap().1;
                let [old, new] = [last, number].map(|value| format!("person = {value};"));
                let beside = path.with_extension("saving");
                fs::write(&beside, content.replace(&old, &new)).unwrap();
                fs::rename(&beside, &path).unwrap();
                println!("saved {number}");
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for number in 0..edits {
            let [old, new] = [number, number + 1].map(|value| format!("agent0-0 = {value};"));
            agent.call("edit_file", &json!({ "path": file, "old": old, "new": new }));
        }
        done.store(true, Ordering::Relaxed);
    });
}

fn words(outcome: &Outcome) -> String {
    let said = outcome.pieces.iter().map(|piece| match piece {
        Piece::Said(words) => words.as_str(),
        _ => "",
    });
    said.collect()
}

fn tool_named(name: &str) -> Arc<dyn Tool> {
    file_tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
}

fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
