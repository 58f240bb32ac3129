//! What only a file can suffer: kills, power cuts, failing disks, other processes, bad content.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

mod crowd;
mod faults;
mod opening;
mod processes;
mod witness;
