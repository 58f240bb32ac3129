//! Sessions: opening one, what the model is shown of it, and looking after all of them.

pub mod audit;
pub(crate) mod context;
pub mod manage;
pub mod offered_tools;
pub(crate) mod open;
pub(crate) mod prompt;
pub mod search_tool;
pub(crate) mod steering;
