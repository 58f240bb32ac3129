//! One file a command. Each resolves what was typed, validates it, does one thing, and says so.

pub(crate) mod answer;
pub(crate) mod approvals;
pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod budget;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod cost;
pub(crate) mod demo;
pub(crate) mod deny;
pub(crate) mod doctor;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod profiles;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod store;
pub(crate) mod undo;
