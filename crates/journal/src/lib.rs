//! The record: sessions, turns, entries, calls, and the transcript computed from them.
//!
//! The journal is append-only. What is sent to a model is computed from it by [`transcript`], whose
//! output is well-formed for every prefix of every journal. Functions here take a transaction, so
//! that whatever must happen together is one commit of the caller.
//!
//! A compaction is an entry too: it changes what [`transcript`] shows and deletes nothing. See
//! [`compaction`].
//!
//! This crate owns those tables. It must not know providers' wire formats, nor tools.

pub mod archive;
pub mod call;
mod check;
pub mod compaction;
mod cut;
pub mod entry;
mod error;
mod fork;
mod ids;
pub mod ledger;
pub mod model_call;
mod pictures;
pub mod process;
mod removal;
mod schema;
pub mod search;
pub mod session;
mod storable;
pub mod turn;
mod view;

pub use check::check;
pub use cut::{Cut, cut, keeps};
pub use error::{Error, Result};
pub use fork::{fork, last_input};
pub use ids::{CallId, SessionId, TurnId, TurnRef};
pub use removal::remove;
pub use schema::JOURNAL;
pub use search::SEARCH;
pub use view::{RECORD, Transcript, preview, shown_through, transcript};
