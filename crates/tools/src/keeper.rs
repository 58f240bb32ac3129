//! The keeper: one small process beside each agent process that owns all child processes.

/// A handle to the keeper; clones share it.
#[derive(Clone, Debug)]
pub struct Keeper {}
