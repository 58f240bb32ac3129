//! The turn: from an input to an answer, one commit a step.
//!
//! Before a call has its effect its intent is durable, and with it the reservation of the model call
//! that will follow. Its result is written while the model is being asked; nothing is done with the
//! answer before that is durable. So a round takes two commits, or one where the model answers at
//! once.

pub(crate) mod answer;
pub(crate) mod ask_model;
pub(crate) mod commit;
mod conclude;
pub(crate) mod end;
pub(crate) mod news;
pub(crate) mod recover;
pub(crate) mod request_size;
pub(crate) mod reserve;
pub(crate) mod runner;
pub(crate) mod unwritten;
