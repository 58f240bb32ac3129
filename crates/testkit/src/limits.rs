//! A process with less than it needs: small limits, in a real child.
#![allow(unsafe_code, reason = "a limit is set between fork and exec")]

use std::os::unix::process::CommandExt;
use std::process::Command;

pub use rustix::process::Resource;
use rustix::process::{Rlimit, setrlimit};

/// Limits what the command, and all that it starts, can have of a resource.
pub fn limit(command: &mut Command, resource: Resource, most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    let set = move || setrlimit(resource, limit).map_err(Into::into);
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { command.pre_exec(set) };
}
