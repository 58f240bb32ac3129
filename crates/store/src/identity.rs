//! Who a process is, in words that stay true: host, boot, process number and start time.
//!
//! A process number alone is reused; with the boot id and the start time it names one process
//! for ever, so that a lease whose holder died on this host can be taken over at once.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// One process on one boot of one host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The host's name, for people.
    pub host: String,
    /// The kernel's boot id.
    pub boot: String,
    /// The pid namespace: the same number means another process elsewhere.
    pub namespace: u64,
    /// The process number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start: u64,
}

/// What can be known of a process from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It exists but is stopped (SIGSTOP, a debugger).
    Stopped,
    /// It is gone.
    Dead,
    /// It is on another host, or in a container whose processes cannot be seen from here.
    OutOfSight,
}

impl ProcessIdentity {
    /// This process.
    pub fn current() -> &'static Self {
        static CURRENT: OnceLock<ProcessIdentity> = OnceLock::new();
        CURRENT.get_or_init(|| {
            let pid = std::process::id();
            Self {
                host: host_name(),
                boot: boot_id(),
                namespace: pid_namespace(),
                pid,
                start: process_start(pid).map_or(0, |(start, _)| start),
            }
        })
    }

    /// Whether the process is on the same boot of the same kernel as this one, so that both read
    /// the same uptime.
    pub fn shares_clock(&self) -> bool {
        self.boot == Self::current().boot
    }

    /// Looks whether the process lives.
    pub fn liveness(&self) -> Liveness {
        let current = Self::current();
        if !self.shares_clock() || self.namespace != current.namespace {
            return Liveness::OutOfSight;
        }
        match process_start(self.pid) {
            Some((start, state)) if start == self.start => match state {
                'Z' | 'X' | 'x' => Liveness::Dead,
                'T' | 't' => Liveness::Stopped,
                _ => Liveness::Alive,
            },
            _ => Liveness::Dead,
        }
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, boot, namespace, pid, start } = self;
        write!(formatter, "{pid}@{host}/{boot}/{namespace}/{start}")
    }
}

impl FromStr for ProcessIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, rest) = text.split_once('@').ok_or(())?;
        let mut parts = rest.rsplitn(4, '/');
        let mut part = || parts.next().ok_or(());
        let (start, namespace, boot, host) = (part()?, part()?, part()?, part()?);
        Ok(Self {
            host: host.to_owned(),
            boot: boot.to_owned(),
            namespace: namespace.parse().map_err(drop)?,
            pid: pid.parse().map_err(drop)?,
            start: start.parse().map_err(drop)?,
        })
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(target_os = "linux")]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}

#[cfg(target_os = "linux")]
fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// Start time and state of a process, or `None` when there is none.
#[cfg(target_os = "linux")]
fn process_start(pid: u32) -> Option<(u64, char)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some((start, state))
}

/// Without a boot id a reboot cannot be told from a long sleep; expiry decides alone.
#[cfg(not(target_os = "linux"))]
fn boot_id() -> String {
    host_name()
}

#[cfg(not(target_os = "linux"))]
fn pid_namespace() -> u64 {
    0
}

#[cfg(not(target_os = "linux"))]
fn process_start(pid: u32) -> Option<(u64, char)> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    match rustix::process::test_kill_process(pid) {
        Err(rustix::io::Errno::SRCH) => None,
        _ => Some((0, 'R')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_is_the_same_process() {
        let current = ProcessIdentity::current();
        assert_eq!(&current.to_string().parse::<ProcessIdentity>().unwrap(), current);
        assert!("nobody".parse::<ProcessIdentity>().is_err());
    }

    #[test]
    fn this_process_lives_and_one_with_another_start_does_not() {
        let mut process = ProcessIdentity::current().clone();
        assert_eq!(process.liveness(), Liveness::Alive);
        process.start += 1;
        assert_eq!(process.liveness(), Liveness::Dead);
        process.boot = "another".to_owned();
        assert_eq!(process.liveness(), Liveness::OutOfSight);
    }
}
