//! What a keeper is asked to run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::protocol::maybe_encoded;
use crate::sandbox::Specification;

/// No job in the foreground takes longer, whatever was asked for.
pub const BACKSTOP: Duration = Duration::from_secs(30 * 60);

/// What a keeper is asked to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Names it for ever. A key that the keeper has already seen is not started again.
    pub key: String,
    /// The session it belongs to.
    pub session: String,
    /// What runs.
    pub program: Program,
    /// The directory it runs in.
    pub directory: PathBuf,
    /// Its whole environment, to which the keeper adds its marks.
    pub environment: Vec<(String, String)>,
    /// When it is ended from outside.
    pub limits: Limits,
    /// Whether its input can be written to; otherwise it reads nothing.
    pub input: bool,
    /// What it reads, all of it; its input then ends. Absent, it reads nothing, unless `input` says
    /// otherwise.
    #[serde(default, with = "maybe_encoded", skip_serializing_if = "Option::is_none")]
    pub given: Option<Vec<u8>>,
    /// Where what it writes to its two outputs goes.
    #[serde(default)]
    pub streams: Streams,
    /// Whether it goes on after the call that started it. It has no [`BACKSTOP`], and its end is
    /// announced.
    pub background: bool,
    /// What it is confined to; nothing confines it without.
    pub sandbox: Option<Specification>,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A command line, run by `sh`.
    Line(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
}

/// Where what a job writes to its two outputs goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// In one stream, in the order in which it was written.
    #[default]
    Together,
    /// Standard error by itself: [`Ended::errors`](super::Ended::errors).
    Apart,
    /// Input and output are a connection to the agent ([`Keeper::converse`](super::Keeper::converse)),
    /// and what is told is standard error. It has no [`BACKSTOP`], and ends when its agent is gone:
    /// nobody else has the other end.
    Lent,
}

/// When a job is ended from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// After this time.
    pub wall: Option<Duration>,
    /// After this time without output.
    pub idle: Option<Duration>,
    /// How many bytes of its output are kept; the rest is dropped between its head and its tail.
    pub output: Option<u64>,
}

impl Job {
    /// How long it may take, if that is limited.
    pub(crate) fn longest(&self) -> Option<Duration> {
        if self.background || self.streams == Streams::Lent {
            self.limits.wall
        } else {
            Some(self.limits.wall.map_or(BACKSTOP, |wall| wall.min(BACKSTOP)))
        }
    }
}

impl Program {
    /// What runs, in a line.
    pub fn line(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Arguments(arguments) => arguments.join(" "),
        }
    }
}
