//! Processes that run in the background of a session.

pub(crate) mod endings;
mod keepers;
pub(crate) mod processes;

pub use keepers::keepers_in_use;
