//! The words that the record and the providers share: messages, calls, results, usage.
//!
//! The journal computes messages from its entries, a provider's client turns them into a request.
//! This crate owns their shape, and the [`Redactor`] that keeps secrets out of them. It knows neither
//! how they are stored nor how they are sent.

mod call;
mod content;
pub mod redactor;
mod schema;
mod usage;

pub use call::{Call, CallResult, ToolSpec};
pub use content::{AssistantPart, Content, Image, Message, Reasoning};
pub use redactor::Redactor;
pub use schema::Schema;
pub use usage::Usage;
