//! One client for every call to a model, whatever its purpose.
//!
//! The crate owns providers and their wire formats, streaming, the closed set of [`Fault`]s and what
//! is done about each, fallback from one model to the next, and prices. It must not know sessions,
//! the journal or the store: it is given messages and gives back an answer.
//!
//! There is one path. Every answer is streamed and collected; a caller who wants no stream ignores
//! the events. A stream that ends without its end marker is a fault and never an answer.
//!
//! A call is cancelled by dropping its future; nothing runs on afterwards.

mod answer;
mod attempt;
mod candidate;
mod chain;
mod clock;
mod fault;
mod key;
mod limits;
mod listing;
mod lock;
mod memo;
mod names;
mod prices;
mod provider;
mod request;
mod stream;
mod transport;
mod wire;

pub use answer::{Answer, Event, Stop};
pub use attempt::{Attempt, Failure};
pub use candidate::Candidate;
pub use chain::Client;
pub use fault::Fault;
pub use key::{FixedKey, Key, NoKey, Secret};
pub use limits::Limits;
pub use listing::Listed;
pub use memo::Memo;
pub use prices::Prices;
pub use provider::{Api, KNOWN, Known, Provider, UnknownApi, known};
pub use request::{Effort, Request, UnknownEffort};
