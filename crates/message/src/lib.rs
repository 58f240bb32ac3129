//! The words that the record and the providers share: messages, calls, results, usage.
//!
//! The journal computes messages from its entries, a provider's client turns them into a request.
//! This crate owns their shape and nothing else: it knows neither how they are stored nor how they
//! are sent.

mod call;
mod content;
mod usage;

pub use call::{Call, CallResult, ToolSpec};
pub use content::{AssistantPart, Content, Image, Message, Reasoning};
pub use usage::Usage;
