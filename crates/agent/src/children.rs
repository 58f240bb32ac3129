//! Child sessions: what a turn gives away to a helper.

pub(crate) mod delegate_tool;
pub(crate) mod runner;
