//! Sessions: opening one, giving it an input, what the model is shown of it, and managing them all.

mod apply_entry;
pub mod audit;
mod begin_turn;
pub(crate) mod context;
pub(crate) mod kept_outputs;
pub mod manage;
pub(crate) mod notice;
pub mod offered_tools;
mod old_notice;
pub(crate) mod open;
pub(crate) mod prompt;
pub mod search_tool;
mod search_upkeep;
pub(crate) mod steering;
pub(crate) mod submit;
