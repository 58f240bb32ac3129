//! An answer that waits for the test's word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Holds replies back until the test opens it, for good.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    open: Arc<AtomicBool>,
}

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets all through that wait, and all that come.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}
