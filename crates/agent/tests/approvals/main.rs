//! What a person is asked, decides and answers, on both engines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a panic is a test's error"
)]

mod at_hand;
mod place;
mod questions;
mod requests;
mod rules;
