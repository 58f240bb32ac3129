//! The engine through its public face: one binary, so that it is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error, and tests stand outside the product's seams"
)]

mod approvals;
mod budgets;
mod commands;
mod commits;
mod compaction;
mod decisions;
mod fixture;
mod model_choice;
mod parked;
mod recovery;
mod remembering;
mod shelf_paths;
