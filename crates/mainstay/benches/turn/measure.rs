//! What a process and everything it started took.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};

/// What something took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

impl Taken {
    /// What this took more than another.
    pub(crate) fn less(&self, other: &Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }
}

/// Runs a command and waits for it and for all its descendants; their processor time is counted.
///
/// This process is their reaper, so a keeper that outlives its agent for a moment is counted too.
pub(crate) fn run(command: &mut Command) -> (Taken, std::process::Output) {
    let before = children_cpu();
    set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let others = children();
    let start = Instant::now();
    let output = command.output().unwrap();
    let wall = start.elapsed();
    reap(&others);
    (Taken { wall, cpu: children_cpu().checked_sub(before).unwrap() }, output)
}

/// Waits for all children but these.
fn reap(others: &[i32]) {
    loop {
        let strangers: Vec<i32> =
            children().into_iter().filter(|pid| !others.contains(pid)).collect();
        if strangers.is_empty() {
            return;
        }
        for pid in strangers {
            let pid = Pid::from_raw(pid).unwrap();
            // One that another call has reaped is gone all the same.
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

fn children() -> Vec<i32> {
    let mut all = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
    }
    all
}

/// The processor time of all children that were waited for, with theirs.
#[allow(unsafe_code, reason = "rustix has no getrusage")]
fn children_cpu() -> Duration {
    // SAFETY: an all-zero rusage is a valid place for the call to fill.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours and lives.
    let asked = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    assert_eq!(asked, 0);
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.cast_unsigned(), 0)
            + Duration::from_micros(time.tv_usec.cast_unsigned())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The peak of a process's own memory, in MiB, and its output; descendants do not count.
#[allow(unsafe_code, reason = "rustix has no wait4")]
pub(crate) fn peak_memory(mut child: Child) -> f64 {
    // Its output is drained by whoever spawned it; here only the end is waited for.
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid place for the call to fill.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and was not reaped; both pointers are ours and live.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    assert_eq!(status, 0, "the run failed");
    // It is reaped: the handle must not wait for a number that may be another's.
    let _ = child.stdin.take();
    usage.ru_maxrss as f64 / 1024.0
}

/// The middle of many.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
