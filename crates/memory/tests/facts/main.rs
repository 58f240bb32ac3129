//! Facts on both engines: what is added is found, what is forgotten is gone, nothing is doubled, and
//! what leads to facts is always what the facts say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

mod asking;
mod finding;
mod generated;
mod keeping;
mod lines;
mod memory;
mod whole;
