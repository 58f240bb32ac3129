//! Compaction in turns: when, what stays, what is done when it fails, and who may.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error"
)]

mod bounds;
mod by_hand;
mod crashing;
mod failing;
mod long;
mod place;
mod together;
