//! A home, a workspace, and the scripted model in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use mainstay_testkit::model::{Checking, PreparedServer, rounds};
use serde_json::json;
use tempfile::TempDir;

pub(crate) const SERVE: &str = "--serve-model";

/// Serves a model until standard input is closed.
pub(crate) fn serve(words: &[String]) {
    let count = words[0].parse().unwrap();
    let command = words[1].clone();
    let script = rounds(count, move |k| {
        ("shell", json!({ "command": command.replace("{k}", &k.to_string()) }))
    });
    let server = PreparedServer::start(0, script, Checking::Trusting);
    let mut output = std::io::stdout();
    writeln!(output, "{}", server.url()).unwrap();
    output.flush().unwrap();
    let mut end = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut end);
}

/// A model in a process of its own: its time is not counted with that of its clients.
pub(crate) struct Model {
    child: Child,
    pub(crate) url: String,
}

impl Model {
    pub(crate) fn start(rounds: usize, command: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([SERVE, &rounds.to_string(), command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A fresh home and workspace.
pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new(model_url: &str) -> Self {
        // Not in a directory that the whole machine writes to: the sandbox looks again at what lies
        // around a home whenever something new comes there.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let scene = Self { directory };
        std::fs::create_dir_all(scene.home()).unwrap();
        std::fs::create_dir_all(scene.workspace()).unwrap();
        let config = format!(
            "model = \"local/m\"\n[providers.local]\napi = \"openai-chat\"\n\
             base_url = \"{model_url}/v1\"\n[budget]\nturn_calls = 100000\n"
        );
        std::fs::write(scene.home().join("config.toml"), config).unwrap();
        scene
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The program in this scene.
    pub(crate) fn mainstay(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(words)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("MAINSTAY_HOME", self.home())
            .stdin(Stdio::null());
        command
    }
}
