//! The words that the record and the providers share: messages, calls, results, usage.
//!
//! The journal computes messages from its entries, a provider's client turns them into a request.
//! This crate owns their shape, the [`Redactor`] that keeps secrets out of them, and how the [`causes`] of
//! an error are told. It knows neither
//! how they are stored nor how they are sent.

mod call;
mod causes;
mod content;
pub mod redactor;
mod schema;
mod usage;

pub use call::{Call, CallResult, ToolSpec};
pub use causes::{causes, first_cause};
pub use content::{AssistantPart, Content, Image, Message, Reasoning};
pub use redactor::Redactor;
pub use schema::Schema;
pub use usage::Usage;
