//! The processes below this one, so that the demonstration sees what runs and leaves nothing.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// How often it is looked again.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// A process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) line: String,
}

/// From now on every process that this one starts stays below it, whatever becomes of those between:
/// the kernel gives orphans to the nearest process that asked for them.
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Everything below this process that has not ended.
pub(super) fn below() -> Vec<Process> {
    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some((parent, ended)) = parent(pid) {
            children.entry(parent).or_default().push((pid, ended));
        }
    }
    let mut found = Vec::new();
    let mut above = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = above.pop() {
        for (pid, ended) in children.remove(&pid).unwrap_or_default() {
            above.push(pid);
            if !ended {
                found.push(Process { pid, line: line(pid) });
            }
        }
    }
    found
}

/// Kills everything below this process, until there is nothing. Whatever forks meanwhile stays
/// below and is met by the next look.
pub(super) fn end_all(looks: u32) {
    for _ in 0..looks {
        let left = below();
        for process in &left {
            kill(process.pid);
        }
        // Those that fell to this process are its own to bury.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if left.is_empty() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Kills one process; one that is gone is no error.
pub(super) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The parent of a process, and whether it has ended and waits to be buried.
fn parent(pid: i32) -> Option<(i32, bool)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from the last one.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    Some((fields.next()?.parse().ok()?, ended))
}

fn line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}
