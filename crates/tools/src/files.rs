//! Tools that look at files and change them.
//!
//! Every path goes through [`bounds`], every file is opened by [`open`], every change is made by
//! [`change`]. The work runs on blocking threads, which [`blocking`] stops when a call is dropped.

mod blocking;
mod bounds;
mod change;
mod diff;
mod edit;
mod git;
mod git_index;
mod glob;
mod grep;
mod list;
mod open;
mod patch;
mod pdf;
mod read;
mod replace;
mod seen;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use blocking::Stop;
pub(crate) use bounds::Bounds;
pub(crate) use open::{Closed, open, open_in, whole};
pub(crate) use read::media_type;
pub use seen::Seen;
pub(crate) use text::hash;

use crate::{Concurrency, Replay, Tool, Traits};

/// The tools that look at files and change them, in the order in which a model is told of them.
pub fn file_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read::ReadFile),
        Arc::new(write::WriteFile),
        Arc::new(edit::EditFile),
        Arc::new(list::List),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
    ]
}

/// The traits of the tools that only look.
const LOOKS: Traits = Traits {
    replay: Replay::Pure,
    concurrency: Concurrency::Parallel,
    wall: Duration::from_secs(120),
};

/// A file above this is neither hashed nor compared with anything: 64 MiB.
pub(crate) const LARGE: u64 = 64 << 20;
