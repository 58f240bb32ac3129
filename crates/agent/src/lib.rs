//! The turn engine: from an input to an answer, one commit a step.
//!
//! A turn is a loop of asking a model and running the calls it asks for. Each step is in the store
//! before the next one begins, so a turn can be taken up by any process after any crash. This crate
//! owns that loop, recovery, budgets, the loop guard, the policy and what people are asked. It must
//! not know HTTP servers or terminals: faces watch [`Event`]s and may be [`Asker`]s.

mod agent;
pub mod approval;
mod asker;
mod asking;
pub mod audit;
pub mod budget;
mod calls;
mod children;
mod compaction;
mod context;
mod deciding;
mod delegate;
mod ended;
mod endings;
mod error;
mod event;
pub mod guard;
mod hooks;
mod known;
pub mod ledger;
pub mod memory;
pub mod offer;
mod pending;
pub mod policy;
mod processes;
mod prompt;
pub mod question;
mod redaction;
mod remembered;
pub mod session_search;
pub mod sessions;
mod settings;
pub mod skills;
pub mod snapshots;
mod steering;
mod taint;
mod trial;
mod turn;
mod work;

pub use agent::{Agent, Opened};
pub use asker::{Asker, Friction, Question, Request, Verdict};
pub use budget::AGENT;
pub use compaction::{Compacted, Compacting, OnFailure, Restored};
pub use context::{Context, Large, Part};
pub use ended::{Ended, Ending};
pub use error::{Error, Result};
pub use event::{Event, Observer, Recalled};
pub use hooks::Hooks;
pub use settings::{Budgets, Guards, Settings};
pub use steering::Steering;
pub use taint::Origins;
pub use trial::{Trial, trial};
pub use work::{Input, Work};
