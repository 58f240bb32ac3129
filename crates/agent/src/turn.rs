//! The turn: from an input to an answer, one commit a step.

pub(crate) mod ask_model;
pub(crate) mod report;
pub(crate) mod runner;
pub(crate) mod unwritten;
