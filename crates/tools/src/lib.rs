//! The tools an agent works with, and the keeper that owns their processes.
//!
//! This crate owns the [`Tool`] trait, the tools themselves and the [keeper]. It must not know the
//! model, nor the store's tables: what has to be remembered of a call leaves it as an [`Outcome`].

pub mod aside;
mod ask_user;
pub mod beneath;
mod environment;
mod files;
mod grant;
pub mod keeper;
pub mod mcp;
mod more;
mod outcome;
mod outside;
mod process;
pub mod reader;
mod replacing;
pub mod sandbox;
mod schema;
mod shell;
pub mod snapshot;
mod todo;
mod tool;
pub mod web;
mod workplace;

pub use ask_user::AskUser;
pub use environment::{clean as clean_environment, harmless as harmless_environment};
pub use files::{Seen, file_tools};
pub use grant::Grant;
pub use keeper::Keeper;
pub use mcp::Client as McpClient;
pub use more::MoreTools;
pub use outcome::{Fact, Outcome, Piece, Settled, Waits, WholeOutput};
pub use outside::Outside;
pub use process::{KnownProcess, Process, ProcessState, Processes};
pub use reader::Reader;
pub use replacing::EditSlots;
pub use schema::{arguments, parameters};
pub use shell::Shell;
pub use todo::{Progress, Steps, Todo, TodoStep};
pub use tool::{Action, Concurrency, Exposure, Invocation, Replay, Tool, Traits};
pub use web::{Fetch, Web, WebSearch};
pub use workplace::Workplace;

/// All tools, in the order in which a model is told of them.
pub fn all() -> Vec<std::sync::Arc<dyn Tool>> {
    let mut tools: Vec<std::sync::Arc<dyn Tool>> =
        vec![std::sync::Arc::new(Shell), std::sync::Arc::new(Process)];
    tools.extend(file_tools());
    tools.push(std::sync::Arc::new(Todo));
    tools.push(std::sync::Arc::new(AskUser));
    tools
}
