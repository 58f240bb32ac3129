//! How a job ended.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shown::Shown;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub how: Exit,
    /// How long it took.
    pub took: Duration,
    /// What it wrote.
    pub output: Shown,
    /// What it wrote to standard error, where that was asked for by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Box<Shown>>,
    /// What it left running. The keeper goes on owning it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// Why what it left running was killed later, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<KillReason>,
}

/// How the process of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that the keeper did not send.
    Signal(i32),
    /// The keeper killed it.
    Killed(KillReason),
    /// It could not be started, for this reason.
    Failed(String),
}

/// Why a keeper killed a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    /// It took too long.
    Wall(Duration),
    /// It wrote nothing for too long.
    Idle(Duration),
    /// It was cancelled or stopped.
    Stopped,
    /// Its agent was gone, and no other came.
    AgentGone,
    /// Its agent left.
    AgentLeft,
}

/// A process that outlived the root of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Its number.
    pub pid: i32,
    /// Its number for the commands of its sandbox, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<i32>,
    /// Its command line.
    pub command: String,
}

impl Ended {
    /// The end of a job that could not be started.
    pub(crate) fn failed(reason: String) -> Self {
        let how = Exit::Failed(reason);
        let output = Shown::default();
        Self { how, took: Duration::ZERO, output, errors: None, left: Vec::new(), rest: None }
    }
}

impl Exit {
    /// The exit code as a shell would tell it: 128 and the signal's number where one ended it.
    pub fn code(&self) -> i32 {
        match self {
            Self::Code(code) => *code,
            Self::Signal(signal) => 128 + signal,
            Self::Killed(KillReason::Wall(_) | KillReason::Idle(_)) => 124,
            Self::Killed(_) => 137,
            Self::Failed(_) => 127,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => {
                let code = self.code();
                write!(formatter, "exit code {code}: ended by {}", signal_name(*signal))
            }
            Self::Killed(why) => write!(formatter, "killed: {why}"),
            Self::Failed(reason) => write!(formatter, "could not be started: {reason}"),
        }
    }
}

impl fmt::Display for KillReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wall(limit) => {
                write!(formatter, "it took longer than {} s", limit.as_secs_f64())
            }
            Self::Idle(limit) => {
                write!(formatter, "it wrote nothing for {} s", limit.as_secs_f64())
            }
            Self::Stopped => formatter.write_str("it was stopped"),
            Self::AgentGone => formatter.write_str("its agent was gone and did not come back"),
            Self::AgentLeft => formatter.write_str("its agent left"),
        }
    }
}

/// A signal's name.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(Exit::Code(3).code(), 3);
        assert_eq!(Exit::Signal(9).code(), 137);
        assert_eq!(Exit::Signal(15).to_string(), "exit code 143: ended by SIGTERM");
        assert_eq!(Exit::Killed(KillReason::Wall(Duration::from_secs(2))).code(), 124);
    }
}
