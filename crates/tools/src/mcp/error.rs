//! Why a server has no answer.

use std::time::Duration;

/// Why a server has no answer. Each is a clause that can follow the server's name and a colon.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// It could not be started or reached, or it is no MCP server.
    #[error("{0}")]
    Unreachable(String),
    /// It failed a moment ago, and is not tried again yet.
    #[error("it failed and will be retried in {} s at the earliest: {why}", .again.as_secs_f32().ceil())]
    Resting {
        /// How long it is left alone.
        again: Duration,
        /// How it failed.
        why: String,
    },
    /// It did not answer in time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    Late(Duration),
    /// It went away while it was asked. Whether it did what it was asked is not known.
    #[error("it went away before answering")]
    Gone,
    /// It refused, in its own words.
    #[error("it answered with an error: {0}")]
    Refused(String),
}
