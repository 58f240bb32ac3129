//! Processes that run in the background of a session.

pub(crate) mod endings;
pub(crate) mod processes;
