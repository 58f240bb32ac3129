//! The turn engine: from an input to an answer, one commit a step.
//!
//! A turn is a loop of asking a model and running the calls it asks for. Each step is in the store
//! before the next one begins, so a turn can be taken up by any process after any crash. This crate
//! owns that loop, recovery, budgets, the loop guard, the policy and what people are asked. It must
//! not know HTTP servers or terminals: faces watch [`Event`]s and may be [`Asker`]s.

mod agent;
pub mod approvals;
pub mod background;
pub mod budget;
mod calls;
mod children;
mod compaction;
mod error;
mod event;
mod hooks;
pub mod ledger;
pub mod loop_guard;
pub mod memory;
pub mod policy;
mod redaction;
mod schema;
pub mod session;
mod settings;
pub mod skills;
pub mod snapshots;
mod taint;
#[cfg(test)]
mod test_session;
#[cfg(test)]
mod test_store;
mod trial;
mod turn;

pub use agent::{Agent, Opened};
pub use approvals::asker::{Asker, Friction, Question, Request, Verdict};
pub use compaction::{Compacted, Compacting, OnFailure, Restored};
pub use error::{Error, Result};
pub use event::{Event, Observer, Recalled};
pub use hooks::Hooks;
pub use schema::{AGENT, COMPONENTS, schema};
pub use session::context::{Context, ContextPart, LargeResult};
pub use session::open::OpenSession;
pub use session::steering::Steering;
pub use session::submit::Input;
pub use settings::{Budgets, Guards, Settings};
pub use taint::Origins;
pub use trial::{Trial, trial};
pub use turn::end::{TurnEnding, TurnReport};
