//! A home, a workspace and a model of their own for one test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mainstay_testkit::model::{ModelServer, Script, Shape};
use mainstay_testkit::process::{Running, wait_for};
use serde_json::Value;
use tempfile::TempDir;

/// Where a test happens.
pub(crate) struct World {
    directory: TempDir,
    pub(crate) model: ModelServer,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    /// A world whose model follows a script, in OpenAI's shape.
    pub(crate) fn new(script: impl Script) -> Self {
        Self::speaking(Shape::Chat, script)
    }

    /// A world whose model speaks in this shape.
    pub(crate) fn speaking(shape: Shape, script: impl Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let model = ModelServer::start(script);
        let world = Self { directory, model };
        std::fs::create_dir_all(world.home()).unwrap();
        std::fs::create_dir_all(world.workspace()).unwrap();
        world.configure(&configuration(shape, &world.model));
        world
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Replaces the configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.home().join("config.toml"), text).unwrap();
    }

    /// Adds to the configuration.
    pub(crate) fn configure_more(&self, text: &str) {
        let path = self.home().join("config.toml");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{before}\n{text}\n")).unwrap();
    }

    /// The program in the workspace of this world.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        program(&self.home(), &self.workspace(), words)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Told {
        Told::from(self.command(words).output().unwrap())
    }

    /// Starts the program; what it says to standard error is kept for [`ended`](Self::ended).
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        self.started(&mut self.command(words))
    }

    /// Starts a command like [`start`](Self::start).
    pub(crate) fn started(&self, command: &mut Command) -> Running {
        let stderr = File::create(self.stderr()).unwrap();
        Running::spawn(command.stdin(Stdio::null()).stderr(stderr))
    }

    /// Waits for the program to end by itself. The lines that the test read before are not told.
    pub(crate) fn ended(&self, mut running: Running, deadline: Duration) -> Told {
        let code = running.wait(deadline).code();
        let mut stdout = String::new();
        while let Some(line) = running.next_line(Duration::from_secs(5)) {
            stdout.push_str(&line);
            stdout.push('\n');
        }
        Told { code, stdout, stderr: std::fs::read_to_string(self.stderr()).unwrap() }
    }

    /// Where the standard error of the program that was started last goes.
    pub(crate) fn stderr(&self) -> PathBuf {
        self.directory.path().join("stderr")
    }

    /// Panics unless every command is gone, and its keeper soon.
    pub(crate) fn nothing_runs(&self) {
        nothing_runs(&self.home());
    }

    /// What a file in the workspace says.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    /// Processes whose environment says that they belong to a keeper of this home, or which are one.
    pub(crate) fn processes(&self) -> Vec<String> {
        processes_of(&self.home())
    }
}

/// The program with a home and a workspace, and an environment without anything else.
pub(crate) fn program(home: &Path, workspace: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(words)
        .current_dir(workspace)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("MAINSTAY_HOME", home)
        // What runs on this machine is no part of a test.
        .env("MAINSTAY_LOCAL_SERVERS", "none");
    command
}

/// A configuration with one model.
pub(crate) fn configuration(shape: Shape, model: &ModelServer) -> String {
    let api = match shape {
        Shape::Chat => "openai-chat",
        Shape::Responses => "openai-responses",
        Shape::Anthropic => "anthropic",
        Shape::Ollama => "ollama",
    };
    format!(
        "model = \"local/qwen\"\nmode = \"ask\"\n[providers.local]\napi = \"{api}\"\nbase_url = \"{}\"\n",
        model.base_url(shape)
    )
}

/// Panics unless every command of a home is gone, and its keeper soon.
pub(crate) fn nothing_runs(home: &Path) {
    let mut left = processes_of(home);
    left.retain(|line| !line.contains(" keeper "));
    assert_eq!(left, Vec::<String>::new());
    wait_for("the end of the keeper", Duration::from_secs(10), || processes_of(home).is_empty());
}

/// Processes that were started for a home: keepers, and what they keep.
pub(crate) fn processes_of(home: &Path) -> Vec<String> {
    let home = home.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|digit| digit.is_ascii_digit()) {
            continue;
        }
        let read = |what: &str| {
            let bytes = std::fs::read(entry.path().join(what)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (line, variables) = (read("cmdline"), read("environ"));
        let directory = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let ours = line.contains(&home)
            || (variables.contains("MAINSTAY_JOB=")
                && directory.starts_with(home.trim_end_matches("home")));
        if ours && !line.is_empty() {
            found.push(format!("{name}: {line}"));
        }
    }
    found
}

impl From<Output> for Told {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Told {
    /// The events of a `--json` run.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// The first event of a type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        let events = self.events();
        let found = events.iter().find(|event| event["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {self:#?}")).clone()
    }

    /// The session that was worked on.
    pub(crate) fn session(&self) -> String {
        self.event("session")["id"].as_str().unwrap().to_owned()
    }

    /// Panics unless it ended like this.
    pub(crate) fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}
