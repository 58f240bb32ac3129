//! How a job ended.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub how: How,
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
    pub rest: Option<Why>,
}

/// How the process of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that the keeper did not send.
    Signal(i32),
    /// The keeper killed it.
    Killed(Why),
    /// It could not be started, for this reason.
    Failed(String),
}

/// Why a keeper killed a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
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
    /// Its command line.
    pub command: String,
}

/// The output of a job: all of it if it is short, else its head and its tail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The beginning.
    #[serde(with = "super::protocol::encoded")]
    pub head: Vec<u8>,
    /// The end, where there is more than the head holds. Between them may be a gap.
    #[serde(with = "super::protocol::encoded", default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub total: u64,
    /// The file with the first [`kept`](Self::kept) bytes, where the output is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How many bytes, from the beginning, are in the file.
    #[serde(default)]
    pub kept: u64,
}

impl Ended {
    /// The end of a job that could not be started.
    pub(super) fn failed(reason: String) -> Self {
        let (how, output) = (How::Failed(reason), Shown::default());
        Self { how, took: Duration::ZERO, output, errors: None, left: Vec::new(), rest: None }
    }
}

impl How {
    /// The exit code as a shell would tell it: 128 and the signal's number where one ended it.
    pub fn code(&self) -> i32 {
        match self {
            Self::Code(code) => *code,
            Self::Signal(signal) => 128 + signal,
            Self::Killed(Why::Wall(_) | Why::Idle(_)) => 124,
            Self::Killed(_) => 137,
            Self::Failed(_) => 127,
        }
    }
}

impl fmt::Display for How {
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

impl fmt::Display for Why {
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

impl Shown {
    /// Whether bytes are missing between head and tail.
    pub fn is_shortened(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The output as text, with a line about what is missing in the middle.
    pub fn text(&self) -> String {
        if !self.is_shortened() {
            // Head and tail are one text: a character may lie across them.
            return String::from_utf8_lossy(&[&self.head[..], &self.tail[..]].concat())
                .into_owned();
        }
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let head = String::from_utf8_lossy(whole_end(&self.head));
        let tail = String::from_utf8_lossy(whole_start(&self.tail));
        format!("{head}\n[… {missing} bytes …]\n{tail}")
    }

    /// Bytes from an offset on, at most `limit`: where they start, the bytes, and how many there
    /// are in all. They start later where bytes were dropped.
    pub fn part(&self, offset: u64, limit: u64) -> (u64, Vec<u8>, u64) {
        let part = super::output::read(self, offset, limit);
        (part.offset, part.bytes, part.total)
    }

    /// All that was kept, read from the spool where it is long.
    pub fn whole(&self) -> Vec<u8> {
        let Some(file) = self.file.as_ref().filter(|_| self.is_shortened()) else {
            return [&self.head[..], &self.tail[..]].concat();
        };
        let Ok(mut bytes) = std::fs::read(file) else {
            return self.text().into_bytes();
        };
        bytes.truncate(usize::try_from(self.kept).unwrap_or(usize::MAX));
        let tail_start = self.total - self.tail.len() as u64;
        if tail_start > self.kept {
            let dropped = tail_start - self.kept;
            bytes.extend_from_slice(format!("\n[… {dropped} bytes were not kept …]\n").as_bytes());
            bytes.extend_from_slice(&self.tail);
        } else {
            let overlap = usize::try_from(self.kept - tail_start).unwrap_or(usize::MAX);
            bytes.extend_from_slice(self.tail.get(overlap..).unwrap_or_default());
        }
        bytes
    }
}

/// The bytes without a character that is cut at their end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return bytes,
        };
        return if length > back { &bytes[..bytes.len() - back] } else { bytes };
    }
    bytes
}

/// The bytes without the rest of a character that was cut before them.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &bytes[rest..]
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

    fn shown(head: &[u8], tail: &[u8], total: u64) -> Shown {
        Shown { head: head.to_vec(), tail: tail.to_vec(), total, ..Shown::default() }
    }

    #[test]
    fn a_character_across_head_and_tail_stays_whole() {
        let text = "aé€😀z".as_bytes();
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(shown(head, tail, text.len() as u64).text(), "aé€😀z");
        }
    }

    #[test]
    fn a_character_cut_by_the_gap_is_left_out() {
        let text = "é€😀".as_bytes();
        for cut in 0..text.len() {
            let words = shown(&text[..cut], &text[cut..], 1000).text();
            assert!(!words.contains('\u{fffd}'), "{cut}: {words}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_all_the_same() {
        assert_eq!(shown(b"a\xffb", b"", 3).text(), "a\u{fffd}b");
        assert_eq!(shown(b"a\xff", b"\x80\x80\x80\x80", 9).head.len(), 2);
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(How::Code(3).code(), 3);
        assert_eq!(How::Signal(9).code(), 137);
        assert_eq!(How::Signal(15).to_string(), "exit code 143: ended by SIGTERM");
        assert_eq!(How::Killed(Why::Wall(Duration::from_secs(2))).code(), 124);
    }
}
