//! Where a provider's key comes from.

use std::ffi::OsString;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_llm::{Key, Secret};

use crate::redaction;
use mainstay_store::lock;
use mainstay_tools::aside::aside;

/// How long a command for a key may take: it may ask a person to unlock something.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const STEP: Duration = Duration::from_millis(10);
/// The longest key.
const LONGEST: u64 = 64 * 1024;

/// A key from the environment, read when the program started.
pub(super) struct FromVariable {
    pub(super) name: String,
    pub(super) value: Option<OsString>,
    /// Whether the provider answers without one.
    pub(super) optional: bool,
    /// The command that keeps a key in its place.
    pub(super) instead: Option<String>,
}

impl Key for FromVariable {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let found = match &self.value {
            Some(value) => match value.to_str() {
                Some(text) => Ok(Some(Secret::new(text.trim()))),
                None => Err(format!("the variable {} is not text", self.name)),
            },
            None if self.optional => Ok(None),
            None => {
                let unset = format!("{} is not set; set it to your key", self.name);
                Err(match &self.instead {
                    Some(command) => format!("{unset}, or store one: `{command}`"),
                    None => unset,
                })
            }
        };
        Box::pin(async { found })
    }

    fn refused(&self) {}

    fn describe(&self) -> String {
        format!("the variable {}", self.name)
    }
}

/// A key that a command prints. It is fetched once, and once more when it is refused.
pub(super) struct FromCommand {
    pub(super) command: String,
    pub(super) fetched: Arc<Mutex<Option<Secret>>>,
}

impl Key for FromCommand {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        Box::pin(async {
            if let Some(secret) = self.kept().clone() {
                return Ok(Some(secret));
            }
            let command = self.command.clone();
            let fetching = aside("key", move || fetch(&command));
            let fetched = fetching.await;
            let secret = fetched.map_err(|error| format!("the command for the key: {error}"))??;
            redaction::add("key from a command", secret.expose());
            *self.kept() = Some(secret.clone());
            Ok(Some(secret))
        })
    }

    fn refused(&self) {
        *self.kept() = None;
    }

    fn describe(&self) -> String {
        format!("the command `{}`", self.command)
    }
}

impl FromCommand {
    fn kept(&self) -> MutexGuard<'_, Option<Secret>> {
        lock(&self.fetched)
    }
}

/// Runs the command. What it prints is a secret, so it does not go through the keeper's spool; it may
/// ask a person, so it keeps the terminal.
fn fetch(command: &str) -> Result<Secret, String> {
    #[expect(clippy::disallowed_methods, reason = "a secret must not enter the keeper's spool")]
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start the command for the key: {error}"))?;
    let mut waited = Duration::ZERO;
    let status = loop {
        let ended =
            child.try_wait().map_err(|error| format!("the command for the key: {error}"))?;
        match ended {
            Some(status) => break status,
            None if waited >= PATIENCE => {
                // The error would be that it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("the command for the key took over {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(STEP),
        }
        waited += STEP;
    };
    if !status.success() {
        return Err(format!("the command for the key ended with {status}"));
    }
    let mut printed = String::new();
    if let Some(output) = child.stdout.take() {
        let read = output.take(LONGEST).read_to_string(&mut printed);
        read.map_err(|error| {
            format!("the command for the key printed something that is not a key: {error}")
        })?;
    }
    match printed.trim() {
        "" => Err("the command for the key printed nothing".to_owned()),
        key => Ok(Secret::new(key)),
    }
}
