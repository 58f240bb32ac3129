//! The calls of a model's message: decided, started, run, recorded.

pub(crate) mod call;
pub(crate) mod run;
