//! Memory: what earlier sessions left, brought into later ones.
//!
//! Memories come from [providers](Provider), all of which are asked at once: the notes and the facts
//! of the store, and whatever the configuration names besides. A new session is told the notes with
//! its prompt; the start of a turn brings what bears on the user's words. What was brought is an
//! entry in the commit that begins the turn, so whoever goes on with the turn sees the same.

mod arguments;
pub mod external;
mod facts;
mod frame;
mod notes;
mod provider;
mod providers;
pub(crate) mod recall;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{OwnerId, Store};

pub use provider::{Memory, MemoryPlace, NewMemory, Provider, ProviderError, Query, Reply};
pub(crate) use providers::Providers;
pub use recall::recalled;
pub(crate) use tool::MemoryTool;

/// What a face decides of memory.
#[derive(Clone)]
pub struct Settings {
    /// Whether the start of a turn brings memories.
    pub recall: bool,
    /// How many at most.
    pub limit: usize,
    /// What a memory must score to be brought.
    pub least_score: f64,
    /// After this time a fact counts half. `None` stands for never.
    pub half_life: Option<Duration>,
    /// The most characters of notes on the user.
    pub user_limit: usize,
    /// The most characters of notes on a workspace.
    pub workspace_limit: usize,
    /// Who has memories besides the store.
    pub providers: Vec<Arc<dyn Provider>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recall: true,
            limit: 5,
            least_score: 0.2,
            half_life: Some(Duration::from_secs(180 * 24 * 60 * 60)),
            user_limit: mainstay_memory::notes::USER_LIMIT,
            workspace_limit: mainstay_memory::notes::WORKSPACE_LIMIT,
            providers: Vec::new(),
        }
    }
}

/// All who have memories. Those that wait for something outside are asked first: the store holds the
/// thread for a moment.
pub(crate) fn providers(settings: &Settings, store: &Store, owner: OwnerId) -> Providers {
    let mut all = settings.providers.clone();
    let half_life = settings.half_life;
    all.push(Arc::new(facts::Facts { store: store.clone(), owner, half_life }));
    all.push(Arc::new(notes::Notes { store: store.clone(), owner }));
    Providers::new(all)
}
