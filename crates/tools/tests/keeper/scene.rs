//! A spool of its own, a keeper, and ways to look at processes from outside.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mainstay_testkit::process::{Running, example};
use mainstay_tools::Keeper;
use mainstay_tools::keeper::{Job, Launch, Limits, Program, Streams};
use mainstay_tools::sandbox::ProcessWay;
use tempfile::TempDir;

pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    pub(crate) keeper: Keeper,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keeper = keeper(directory.path().join("spool"), Duration::from_secs(30));
        Self { directory, keeper }
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.directory.path().join("spool")
    }

    /// An agent in a process of its own that runs one command.
    pub(crate) fn agent(&self, grace: Duration, key: &str, command: &str) -> Running {
        let mut agent = Command::new(example("agent"));
        agent.arg("run").arg(self.spool()).arg(grace.as_millis().to_string()).arg(key).arg(command);
        Running::spawn(&mut agent)
    }

    /// An agent in a process of its own that speaks with a command.
    pub(crate) fn conversing_agent(&self, grace: Duration, command: &str) -> Running {
        let mut agent = Command::new(example("agent"));
        agent.arg("converse").arg(self.spool()).arg(grace.as_millis().to_string()).arg(command);
        Running::spawn(&mut agent)
    }

    /// Another agent with the same spool.
    pub(crate) fn another(&self) -> Keeper {
        keeper(self.spool(), Duration::from_secs(30))
    }
}

pub(crate) fn keeper(spool: PathBuf, grace: Duration) -> Keeper {
    let arguments = vec![OsString::from("keeper")];
    Keeper::new(Launch { program: example("agent"), arguments, spool, grace })
}

pub(crate) fn job(key: &str, command: &str) -> Job {
    Job {
        key: key.to_owned(),
        session: "session".to_owned(),
        program: Program::Line(command.to_owned()),
        directory: "/".into(),
        environment: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        limits: Limits::default(),
        input: false,
        given: None,
        streams: Streams::Together,
        background: false,
        sandbox: None,
    }
}

/// A number for `sleep` that no other test uses, so that its processes can be told.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("300.{}{number:03}", std::process::id())
}

/// The processes whose command line has an argument.
pub(crate) fn running(argument: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
    .collect()
}

/// Waits without stopping the runtime.
pub(crate) async fn until(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < deadline, "Waited {deadline:?} in vain for: {what}.");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it ends in time")
}

/// A scene whose keeper works, with the keeper's name and the number of its worker.
pub(crate) async fn working() -> (Scene, String, i32) {
    let scene = Scene::new();
    let name = in_time(scene.keeper.name()).await.unwrap();
    in_time(scene.keeper.run(&name, &job("first", "true"))).await.unwrap();
    let worker = worker(&scene, &name);
    (scene, name, worker)
}

/// The worker of a keeper, from its log.
pub(crate) fn worker(scene: &Scene, name: &str) -> i32 {
    let log = std::fs::read_to_string(scene.spool().join(name).join("log")).unwrap();
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let identity = first["keeper"]["identity"].as_str().unwrap();
    identity.split('@').next().unwrap().parse().unwrap()
}

/// Parent and state of a process.
pub(crate) fn parent(pid: i32) -> Option<(i32, char)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// The numbers of a process in all process namespaces that it can be seen from, its own last.
pub(crate) fn numbers(pid: i32) -> Vec<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Whether a process is the first of a process namespace below this one.
pub(crate) fn is_first(pid: i32) -> bool {
    matches!(numbers(pid)[..], [_, .., 1])
}

/// The children of a process. One that only holds a process namespace for others is none.
pub(crate) fn children(of: i32) -> Vec<(i32, char)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let pids = pids.filter(|pid| !is_first(*pid));
    pids.filter_map(|pid| parent(pid).filter(|(parent, _)| *parent == of).map(|(_, s)| (pid, s)))
        .collect()
}

/// Whether a process is in the process namespace of commands, where there is one. Those that make it and
/// its mounts are not, and soon gone.
pub(crate) fn is_inside(pid: i32) -> bool {
    static ENCLOSED: OnceLock<bool> = OnceLock::new();
    let enclosed = || *ENCLOSED.get_or_init(|| ProcessWay::of_kernel() == ProcessWay::Namespace);
    numbers(pid).len() > 1 || !enclosed()
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
