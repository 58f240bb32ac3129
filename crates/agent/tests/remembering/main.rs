//! What sessions are told of earlier ones, and what they leave to later ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error"
)]

mod calls;
mod place;
mod recalled;
mod told;
