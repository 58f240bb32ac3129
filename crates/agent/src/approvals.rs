//! What people are asked: whether a call may run, and what a model wants to know.

pub(crate) mod ask_person;
pub(crate) mod asker;
pub(crate) mod binding;
pub(crate) mod friction;
pub mod questions;
pub mod requests;
pub mod rules;
pub mod seal;
