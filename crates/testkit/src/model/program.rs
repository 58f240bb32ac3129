//! The model server as a process of its own, whose time is not counted with its client's.

use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use super::Shape;
use crate::artifact;
use crate::process::Running;

/// A running `model-server`; ends when it is dropped, and when the test that started it dies.
pub struct ModelProgram {
    running: Running,
    /// The program ends when this is closed.
    input: Option<ChildStdin>,
    url: String,
}

impl ModelProgram {
    /// Starts the program with arguments such as `["--rounds", "100", "--trusting"]`. It is built
    /// first where it has to be, optimised whatever the test is.
    pub fn start(arguments: &[&str]) -> Self {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        let path = PATH.get_or_init(|| {
            let arguments = ["--package", "mainstay-testkit", "--bin", "model-server", "--release"];
            artifact::build("The model server", &arguments, |message: &Value| {
                let program = message["executable"].as_str()?;
                (message["target"]["name"] == "model-server").then(|| PathBuf::from(program))
            })
        });
        Self::start_at(path, arguments)
    }

    /// Starts the program that lies at a path.
    pub fn start_at(path: &Path, arguments: &[&str]) -> Self {
        let mut running = Running::spawn(Command::new(path).args(arguments).stdin(Stdio::piped()));
        let input = running.stdin();
        let url = running
            .next_line(Duration::from_secs(20))
            .expect("the model server says its URL before it ends");
        Self { running, input, url }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The base URL that a client of a shape is configured with.
    pub fn base_url(&self, shape: Shape) -> String {
        format!("{}{}", self.url, shape.base_path())
    }

    /// The process.
    pub fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Closes the program's standard input, which ends it.
    pub fn close_input(&mut self) {
        self.input = None;
    }
}
