//! Facts: short statements with a category, tags, entities, trust and a time.
//!
//! [`add`] writes a fact with everything that leads to it; [`search`] finds facts for a text;
//! [`probe`], [`related`] and [`reason`] ask the vectors about entities, [`contradictions`] looks
//! for facts that say different things about the same.

mod bank;
mod changes;
mod check;
mod chunk;
mod contradiction;
mod fact;
mod lines;
mod listing;
mod names;
mod prepared;
mod questions;
mod search;
mod terms;

pub use changes::{Added, Change, Changed, add, add_prepared, feedback, forget, update};
pub use check::check;
pub use contradiction::{Contradiction, contradictions};
pub use fact::{Fact, FactId, NewFact};
pub use lines::{Line, export, import};
pub use listing::{List, count, get, list};
pub use prepared::{CONTENT_LIMIT, Prepared};
pub use questions::{Answer, Category, Within, about, categories, probe, reason, related};
pub use search::{FoundFact, Parts, Query, search};
