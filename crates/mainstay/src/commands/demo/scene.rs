//! The surroundings of the demonstration: a home and a workspace of its own, and the real program.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use mainstay_store::fsatomic;
use mainstay_store::scratch::Scratch;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::below::{self, LOOK};
use super::script;
use crate::env;
use crate::error::Error;

/// How often it is tried to end what runs: some seconds in all.
const LOOKS: u32 = 1000;

/// A directory for everything. When it goes out of scope, it is gone with all that ran in it.
pub(super) struct Scene {
    scratch: Scratch,
}

/// The program as a child.
pub(super) struct Program {
    child: Child,
    lines: UnboundedReceiver<String>,
}

impl Scene {
    /// Makes the directory, with a configuration whose only model is at `model`.
    pub(super) fn set(model: SocketAddr) -> Result<Self, Error> {
        let failed = |place: &Path, error: io::Error| {
            Error::failed(format!("could not use {}: {error}", place.display()))
                .hint("Use a directory on a local disk with free space: TMPDIR=DIR mainstay demo")
        };
        let scratch = Scratch::new("demo");
        let scene =
            Self { scratch: scratch.map_err(|error| failed(&std::env::temp_dir(), error))? };
        scene.furnish(model).map_err(|error| failed(scene.root(), error))?;
        Ok(scene)
    }

    fn furnish(&self, model: SocketAddr) -> io::Result<()> {
        fsatomic::private_directory(&self.home())?;
        fsatomic::private_directory(&self.workspace())?;
        // The times are short: without this process, which is the model too, an agent soon gives up.
        let configuration = format!(
            "model = \"demo/script\"\n\
             [providers.demo]\napi = \"openai-chat\"\nbase_url = \"http://{model}/v1\"\n\
             [keeper]\ngrace = \"10s\"\n\
             [limits]\nchain = \"10s\"\n"
        );
        fsatomic::write(&self.home().join("config.toml"), configuration.as_bytes(), 0o600)?;
        let (name, content) = script::SALES;
        fsatomic::write(&self.workspace().join(name), content.as_bytes(), 0o600)
    }

    /// Where everything is.
    pub(super) fn root(&self) -> &Path {
        self.scratch.path()
    }

    fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    fn workspace(&self) -> PathBuf {
        self.root().join("work")
    }

    /// The text of a file in the workspace, empty if there is none.
    pub(super) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    /// Starts the real program, which is this one, with these words.
    pub(super) fn start(&self, words: &[&str]) -> Result<Program, Error> {
        #[expect(clippy::disallowed_methods, reason = "the agent that is killed is our own child")]
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("mainstay")
            .args(words)
            .arg("--home")
            .arg(self.home())
            .current_dir(self.workspace())
            // Neither the user's keys nor the user's settings are any of its business.
            .env_clear()
            .env(env::HOME.name, self.home())
            .envs(env::named_by_configuration("PATH").map(|path| ("PATH", path)))
            // Ctrl-C is for the demonstration, which then ends everything.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        end_with_this_process(&mut command);
        let failed = |error: io::Error| {
            Error::failed(format!("could not start the program: {error}"))
                .hint("Check the limit of processes: ulimit -u")
        };
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = unbounded_channel();
        if let Some(output) = child.stdout.take() {
            // It ends with the child's output.
            let read = move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("output".to_owned()).spawn(read).map_err(failed)?;
        }
        Ok(Program { child, lines })
    }

    /// Ends everything that runs here and removes the directory.
    pub(super) fn strike(&self) -> io::Result<()> {
        below::end_all(LOOKS);
        self.scratch.remove()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Nobody is left who could be told; what stays is in the directory for such things.
        let _ = self.strike();
    }
}

impl Program {
    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its output. Returns `None` at its end.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub(super) fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Has the kernel kill a child when this thread is gone: its model is gone then, and its directory is
/// about to be. The thread is the first one, which lasts as long as the process.
#[expect(unsafe_code, reason = "what a child does before it is its program has no safe face")]
fn end_with_this_process(command: &mut Command) {
    use rustix::process::{Signal, set_parent_process_death_signal};
    // SAFETY: it is one system call, which takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}
