//! Children that die with the test, and waiting for a thing instead of for a time.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, kill_process, pidfd_open};

pub use rustix::process::Signal;

/// The path of a built example of the package under test.
///
/// Test programs live in `target/<profile>/deps`, examples beside them in `examples`.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests live in deps");
    let path = profile.join("examples").join(name);
    assert!(
        path.exists(),
        "The example `{name}` is not built: run `cargo build --examples`, or the tests without `--test`."
    );
    path
}

/// Waits until something holds, looking every few milliseconds; panics with `what` at the deadline.
pub fn wait_for(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < deadline, "Timed out after {deadline:?} waiting for: {what}.");
        thread::sleep(Duration::from_millis(3));
    }
}

/// Waits for a child to end. Returns `None` if the deadline comes first.
pub fn wait_with_deadline(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + deadline;
    // Our own child: not reaped yet, so the id cannot have been given to another.
    let watched = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .expect("a child that was not reaped can be watched");
    loop {
        if let Some(status) = child.try_wait().expect("our own child can be waited for") {
            return Some(status);
        }
        let left = end.checked_duration_since(Instant::now())?;
        let timeout = Timespec::try_from(left).expect("a deadline fits into a timespec");
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("Could not poll a child: {error}."),
        }
    }
}

/// A child that is killed and reaped when it goes out of scope.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts a command with its standard output read line by line.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("Could not start {command:?}: {error}."));
        let output = child.stdout.take().expect("standard output is piped");
        let (sender, lines) = channel();
        // Ends with the child's output; a test that stops listening ends it too.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input, once, where the command pipes it.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Sends a signal; a child that has ended and was not waited for takes it silently.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("Could not send {signal:?}: {error}."));
    }

    /// Stops the child where it stands.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a stopped child go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the child and waits until it is gone.
    pub fn kill_and_wait(&mut self) -> ExitStatus {
        // The error is that it has been reaped already.
        let _ = self.child.kill();
        self.child.wait().expect("our own child can be waited for")
    }

    /// Waits for the child to end by itself; panics at the deadline.
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        wait_with_deadline(&mut self.child, deadline)
            .unwrap_or_else(|| panic!("The child did not end within {deadline:?}."))
    }

    /// Says whether the child has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our own child can be waited for").is_none()
    }

    /// The next line of its standard output, or nothing once that has ended; panics at the deadline.
    pub fn next_line(&mut self, deadline: Duration) -> Option<String> {
        match self.lines.recv_timeout(deadline) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("The child wrote no line in {deadline:?}."),
        }
    }

    /// Reads lines until one contains `text`, and returns that one; panics at the deadline or the end.
    pub fn line_with(&mut self, text: &str, deadline: Duration) -> String {
        let end = Instant::now() + deadline;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("The child ended its output without a line with {text:?}.")
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("The child wrote no line with {text:?} in {deadline:?}.")
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_and_wait();
    }
}
