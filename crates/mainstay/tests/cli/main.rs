//! The whole binary, from outside: what it prints, how it ends, what it leaves on the disk.
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]

mod bad_file;
mod bad_place;
mod bad_server;
mod compacting;
mod copying;
mod documents;
mod examining;
mod first_run;
mod full_disk;
mod home;
mod interrupted;
mod network_disk;
mod restoring;
mod restoring_under_faults;
mod settings;
mod terminal;
