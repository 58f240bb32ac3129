//! What the tests share: faults on purpose, a model that follows a script, a private PostgreSQL, and
//! children that cannot outlive a test.
//!
//! This crate owns the ways to break things and to watch what is left. It must not know the
//! product: it runs commands, files and sockets, and says what happened to them. Everything panics
//! with a sentence where it cannot go on, because a test that cannot run has failed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "test-only code: a panic is its error, and it stands outside the product's seams"
)]

pub mod capability;
pub mod disk;
pub mod freezer;
pub mod limits;
pub mod mcp;
pub mod model;
pub mod oplog;
pub mod postgres;
pub mod powercut;
pub mod process;
pub mod proxy;
pub mod seccomp;
pub mod shim;
pub mod sweep;
pub mod thorough;
pub mod web;

mod artifact;
mod workers;
