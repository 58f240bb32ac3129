//! The processes of this machine, as `/proc` shows them.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A tick of the start times in `/proc`, in milliseconds. Linux has shown hundredths of a second
/// to programs for as long as there are programs.
const TICK_MILLIS: u64 = 10;

/// One process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// When it started, in milliseconds since boot.
    pub(crate) start: u64,
    /// Whether it has ended and waits to be reaped.
    pub(crate) ended: bool,
}

/// All processes at about one moment.
pub(crate) struct Snapshot {
    processes: HashMap<i32, Process>,
    children: HashMap<i32, Vec<i32>>,
}

impl Process {
    /// Milliseconds since boot, from the ticks that tell when a process started.
    pub(crate) fn begun(ticks: u64) -> u64 {
        ticks * TICK_MILLIS
    }

    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything, so count from the last one.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let ticks: u64 = fields.nth(16)?.parse().ok()?;
        Some(Self { pid, parent, group, start: Self::begun(ticks), ended })
    }
}

impl Snapshot {
    pub(crate) fn take() -> Self {
        let mut snapshot = Self { processes: HashMap::new(), children: HashMap::new() };
        for process in numbers().filter_map(Process::of) {
            snapshot.children.entry(process.parent).or_default().push(process.pid);
            snapshot.processes.insert(process.pid, process);
        }
        snapshot
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    pub(crate) fn children(&self, pid: i32) -> &[i32] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// All that descend from a process, itself left out, those that wait to be reaped too.
    pub(crate) fn below(&self, pid: i32) -> Vec<i32> {
        let mut below = self.children(pid).to_vec();
        let mut next = 0;
        while let Some(pid) = below.get(next) {
            below.extend_from_slice(self.children(*pid));
            next += 1;
        }
        below
    }

    /// The groups of some processes, except that of this process.
    pub(crate) fn groups(&self, pids: &[i32]) -> BTreeSet<i32> {
        let own = self.get(own_pid()).map(|process| process.group);
        let groups = pids.iter().filter_map(|pid| Some(self.get(*pid)?.group));
        groups.filter(|group| Some(*group) != own).collect()
    }

    /// Those of some processes that have not ended.
    pub(crate) fn alive(&self, mut pids: Vec<i32>) -> Vec<i32> {
        pids.retain(|pid| self.get(*pid).is_some_and(|process| !process.ended));
        pids
    }
}

/// The numbers of all processes.
pub(crate) fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children of this thread: what fell to the keeper falls to its first one.
pub(crate) fn own_children() -> Vec<i32> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(text) => text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // Some kernels are built without it.
        Err(_) => Snapshot::take().children(own_pid()).to_vec(),
    }
}

/// The children of another process, which has one thread.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    match fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
        Ok(text) => text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => Snapshot::take().children(pid).to_vec(),
    }
}

pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The value of a variable in the environment a process was started with.
pub(crate) fn mark(pid: i32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// The number that a process has in its own process namespace, where that is not this one's.
pub(crate) fn number_inside(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers = numbers.split_ascii_whitespace().skip(1);
    numbers.last()?.parse().ok()
}

/// The command line of a process, in one line of moderate length.
pub(crate) fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Sends a signal to a group; one that is gone is no error.
pub(crate) fn signal_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group).filter(|_| group > 1) {
        let _ = kill_process_group(group, signal);
    }
}

/// Sends a signal; a process that is gone is no error.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        let _ = kill_process(pid, signal);
    }
}
