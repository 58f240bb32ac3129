//! Memory: what earlier sessions left, brought into later ones.
//!
//! Memories come from [providers](Provider), all of which are asked at once: the notes and the facts
//! of the store, and whatever the configuration names besides. A new session is told the notes with
//! its prompt; the start of a turn brings what bears on the user's words. What was brought is an
//! entry in the commit that begins the turn, so whoever goes on with the turn sees the same.

mod all;
pub mod external;
mod frame;
mod provider;
mod recall;

use std::sync::Arc;

pub(crate) use all::Providers;
pub(crate) use frame::from_outside;
pub use provider::{Memory, NewMemory, Place, Provider, Query, Reply, Trouble};
pub(crate) use recall::{Told, tell};

/// What a face decides of memory.
#[derive(Clone)]
pub struct Settings {
    /// Whether the start of a turn brings memories.
    pub recall: bool,
    /// How many at most.
    pub limit: usize,
    /// What a memory must score to be brought.
    pub least: f64,
    /// Who has memories besides the store.
    pub providers: Vec<Arc<dyn Provider>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { recall: true, limit: 5, least: 0.2, providers: Vec::new() }
    }
}
