//! The scripted model server: what it says can be read back, what it breaks is broken as told, and
//! what a real server would refuse, it refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "test-only code stands outside the product's seams"
)]

mod breaking;
mod client;
mod errors;
mod hearing;
mod program;
mod requests;
mod rules;
mod server;
mod shapes;
