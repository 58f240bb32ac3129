//! How a job stands.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ending::{Ended, Left};

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The job.
    pub key: String,
    /// Its session.
    pub session: String,
    /// What runs; empty for a job that ended in the foreground.
    pub command: String,
    /// Whether it goes on after its call.
    pub background: bool,
    /// The number of its first process.
    pub pid: i32,
    /// How long it has run, or ran.
    pub took: Duration,
    /// How many bytes it has written.
    pub total: u64,
    /// What it left running.
    pub left: Vec<Left>,
    /// How it ended; absent while it runs.
    pub ended: Option<Ended>,
}
