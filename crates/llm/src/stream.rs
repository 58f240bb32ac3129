//! From bytes to parts: lines, events, and what is collected of them.

mod collector;
mod lines;
mod sse;

pub(crate) use collector::{Collector, Draft, is_plain_id};
pub(crate) use lines::{Lines, TooLong};
pub(crate) use sse::Sse;
