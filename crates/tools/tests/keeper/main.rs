//! The keeper and its tools with real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests: a panic is their error, and they stand outside the product's seams"
)]

mod agents;
mod confined_shell;
mod conversation;
mod ends;
mod escapes;
mod mcp;
mod outputs;
mod prepared;
mod process;
mod sandbox;
mod scene;
mod shell;
mod silent;
