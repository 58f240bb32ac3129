//! Words of the user that reach a turn while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use mainstay_message::Content;

use mainstay_store::lock;

/// What the user wants a running turn to hear. Clones share it.
///
/// The turn takes it between two rounds and writes it down before it tells of it, so whatever is
/// [taken back](Steering::take_back) was not heard, and nothing is both.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Mutex<QueuedWishes>>);

#[derive(Debug, Default)]
struct QueuedWishes {
    said: VecDeque<Vec<Content>>,
    /// That the conversation be compacted, and what to look after.
    compaction: Option<Option<String>>,
}

impl Steering {
    /// Hands words and pictures to the turn.
    pub fn push(&self, content: Vec<Content>) {
        self.waiting().said.push_back(content);
    }

    /// Takes back the oldest of what was not heard.
    pub fn take_back(&self) -> Option<Vec<Content>> {
        self.waiting().said.pop_front()
    }

    /// What was not heard yet, without taking it.
    pub(crate) fn snapshot(&self) -> Vec<Vec<Content>> {
        self.waiting().said.iter().cloned().collect()
    }

    /// Forgets the oldest `count`, which are written down.
    pub(crate) fn heard(&self, count: usize) {
        let mut waiting = self.waiting();
        let count = count.min(waiting.said.len());
        waiting.said.drain(..count);
    }

    /// Has the turn compact the conversation before its next round, looking after `focus`.
    pub fn compact(&self, focus: Option<String>) {
        self.waiting().compaction = Some(focus);
    }

    pub(crate) fn wants_compaction(&self) -> bool {
        self.waiting().compaction.is_some()
    }

    /// What to look after if the conversation is to be compacted. Returns it once, then `None`.
    pub(crate) fn take_compaction(&self) -> Option<Option<String>> {
        self.waiting().compaction.take()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, QueuedWishes> {
        lock(&self.0)
    }
}
