//! What runs in the agent's process: it starts a keeper, asks it, and clears up after dead ones.

mod collect;
mod conversation;
mod endings;
mod error;
mod handle;
mod kept;
mod launch;
mod link;
mod one_way;
mod reply;
mod sweep;

pub use collect::{Collected, collect};
pub use conversation::{Conversation, Hold};
pub use endings::Ending;
pub use error::KeeperError;
pub use handle::{Attached, Keeper};
pub use kept::is_kept;
pub use launch::Launch;
pub use sweep::{KeeperFound, Survey, clear_up, survey};
