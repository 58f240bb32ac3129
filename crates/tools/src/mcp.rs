//! A client for MCP servers: programs under the keeper, and services on the network.
//!
//! A [`Client`] is made without contacting anybody. Its server is started, or connected to, when it is
//! asked the first time, and again when it went away in between; one that keeps failing is started
//! less and less often. Whatever is asked has a limit, and to cancel is to drop the future.
//!
//! The protocol is `rmcp`'s. What it is given to read is bounded here, because a server may say
//! anything: a message, what comes unasked, and a body.

mod client;
mod error;
mod http;
mod process;
mod tool;

pub use client::{Client, Limits};
pub use error::McpError;
pub use http::Service;
pub use process::Program;
pub use tool::{Answer, Tool};

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Server {
    /// A program that is started and spoken with through its input and output.
    Program(Program),
    /// A service that is reached by HTTP.
    Service(Service),
}
