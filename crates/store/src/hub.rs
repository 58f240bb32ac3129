//! Wake-ups inside this process: who waits for which topic.
//!
//! Each engine carries topics between processes in its own way and hands what it hears to the
//! hub. A wake-up says "look again", never what changed; a listener that hears nothing looks
//! again after [`SLOW_POLL`] all the same, so that a lost wake-up costs seconds, not the work.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::clock::Deadline;
use crate::lock::lock;

/// How long a listener waits at most before it looks again by itself.
pub const SLOW_POLL: Duration = Duration::from_secs(5);

/// The listeners of this process.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    listeners: Mutex<Vec<Weak<Bell>>>,
}

/// Hears of topics from the moment it is made.
#[derive(Debug)]
pub struct Listener {
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Bell {
    topics: BTreeSet<String>,
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Hub {
    /// Listens to `topics`, from now on.
    pub(crate) fn listen(&self, topics: impl IntoIterator<Item = String>) -> Listener {
        let bell = Arc::new(Bell {
            topics: topics.into_iter().collect(),
            rung: Mutex::new(false),
            changed: Condvar::new(),
        });
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&bell));
        Listener { bell }
    }

    /// Wakes those who listen to one of `topics`.
    pub(crate) fn ring<'a>(&self, topics: impl Iterator<Item = &'a str>) {
        let topics: Vec<&str> = topics.collect();
        self.ring_where(|bell| topics.iter().any(|topic| bell.topics.contains(*topic)));
    }

    /// Wakes everybody, when something may have been missed.
    pub(crate) fn ring_all(&self) {
        self.ring_where(|_| true);
    }

    fn ring_where(&self, wanted: impl Fn(&Bell) -> bool) {
        for bell in lock(&self.listeners).iter().filter_map(Weak::upgrade) {
            if wanted(&bell) {
                *lock(&bell.rung) = true;
                bell.changed.notify_all();
            }
        }
    }
}

impl Listener {
    /// Waits for a wake-up, at most `patience` and never longer than [`SLOW_POLL`]. Answers
    /// whether there was one; the caller looks at the store again either way. A wake-up that came
    /// before the call is not lost.
    pub fn wait(&self, patience: Duration) -> bool {
        let deadline = Deadline::after(patience.min(SLOW_POLL));
        let mut rung = lock(&self.bell.rung);
        while !*rung {
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            let waited = self.bell.changed.wait_timeout(rung, left);
            rung = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *rung = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_of_the_topic_wake() {
        let hub = Hub::default();
        let tasks = hub.listen(["tasks".to_owned()]);
        let other = hub.listen(["other".to_owned()]);
        hub.ring(["tasks"].into_iter());
        assert!(tasks.wait(Duration::ZERO));
        assert!(!tasks.wait(Duration::ZERO), "a wake-up is heard once");
        assert!(!other.wait(Duration::ZERO));
        hub.ring_all();
        assert!(other.wait(Duration::ZERO));
    }

    #[test]
    fn a_listener_that_left_is_forgotten() {
        let hub = Hub::default();
        drop(hub.listen(["a".to_owned()]));
        let _kept = hub.listen(["a".to_owned()]);
        assert_eq!(lock(&hub.listeners).len(), 1);
    }
}
