//! What only a file can suffer: kills, power cuts, failing disks, other processes, bad content.

#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

mod faults;
mod opening;
mod processes;
mod witness;
