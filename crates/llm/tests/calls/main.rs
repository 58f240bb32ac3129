//! Calls over real sockets, against the scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic and look at the clock"
)]

mod answers;
mod chain;
mod faults;
mod ground;
mod listing;
mod pace;
mod waits;
