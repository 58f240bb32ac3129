//! The classification of command lines, as a table and as properties.
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]

mod properties;
mod table;
