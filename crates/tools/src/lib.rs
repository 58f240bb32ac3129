//! The tools an agent works with, and the keeper that owns their processes.
//!
//! This crate owns the [`Tool`] trait, the tools themselves and the [keeper]. It must not know the
//! model, nor the store's tables: what has to be remembered of a call leaves it as an [`Outcome`].

mod files;
mod keeper;
mod outcome;
mod process;
mod schema;
mod shell;
mod tool;
mod workplace;

pub use files::{Seen, file_tools};
pub use keeper::Keeper;
pub use outcome::{Fact, Outcome, Piece, Settled};
pub use schema::parameters;
pub use tool::{Action, Beside, Invocation, Replay, Tool, Traits};
pub use workplace::Workplace;
