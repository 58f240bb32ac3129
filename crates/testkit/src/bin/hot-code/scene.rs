//! Ordinary work.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use mainstay_testkit::model::{Checking, PreparedServer, rounds};
use serde_json::{Value, json};

use crate::trace::Tracer;

/// A tool and its arguments, by the number of the round.
type Calls = fn(usize) -> (&'static str, Value);

/// Works as people do, and notes what is touched: what comes first lies first.
pub(crate) fn play(program: &Path, tracer: &mut Tracer) -> io::Result<()> {
    let directory = tempfile::tempdir()?;
    let (home, workspace) = (directory.path().join("home"), directory.path().join("work"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&workspace)?;
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).current_dir(&workspace).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("MAINSTAY_HOME", &home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let plays: [(&str, usize, Calls); 3] =
        [("openai-chat", 3, shell), ("openai-chat", FILES, files), ("anthropic", 3, shell)];
    for (api, count, calls) in plays {
        let server = PreparedServer::start(0, rounds(count, calls), Checking::Trusting);
        let base = if api == "anthropic" { server.url() } else { server.url() + "/v1" };
        let config = format!(
            "model = \"local/m\"\n[providers.local]\napi = \"{api}\"\nbase_url = \"{base}\"\n"
        );
        std::fs::write(home.join("config.toml"), config)?;
        tracer.run(&mut command(&["run", "--yes", "count"]))?;
    }
    tracer.run(&mut command(&["resume"]))?;
    tracer.run(&mut command(&["sessions", "list"]))?;
    tracer.run(&mut command(&["--version"]))
}

fn shell(number: usize) -> (&'static str, Value) {
    ("shell", json!({ "command": format!("echo {number}") }))
}

const FILES: usize = 6;

fn files(number: usize) -> (&'static str, Value) {
    match number {
        0 => ("write_file", json!({ "path": "a.txt", "content": "one\ntwo\n" })),
        1 => ("read_file", json!({ "path": "a.txt" })),
        2 => ("edit_file", json!({ "path": "a.txt", "old": "one", "new": "three" })),
        3 => ("list", json!({ "path": "." })),
        4 => ("glob", json!({ "pattern": "*.txt" })),
        _ => ("grep", json!({ "pattern": "two" })),
    }
}
