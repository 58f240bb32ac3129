//! Ends of jobs that nobody waited for, and whoever wants to hear of them.

use std::sync::Mutex;

use mainstay_store::lock;
use tokio::sync::mpsc;

use crate::keeper::shared::Ended;

/// A background job that ended, or the last process that a job left behind. The same end may be
/// announced again after a new agent attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The job.
    pub key: String,
    /// Its session.
    pub session: String,
    /// Its keeper.
    pub keeper: String,
    /// How it ended.
    pub ended: Ended,
}

/// Ends that were announced. Those that came before anybody listened wait for the first listener.
#[derive(Default)]
pub(super) struct Endings(Mutex<Announced>);

#[derive(Default)]
struct Announced {
    backlog: Vec<Ending>,
    listeners: Vec<mpsc::UnboundedSender<Ending>>,
}

impl Endings {
    /// Hears of all ends from now on, and of those that nobody has heard of.
    pub(super) fn listen(&self) -> mpsc::UnboundedReceiver<Ending> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut announced = lock(&self.0);
        for ending in announced.backlog.drain(..) {
            let _ = sender.send(ending);
        }
        announced.listeners.push(sender);
        receiver
    }

    pub(super) fn announce(&self, ending: Ending) {
        let mut announced = lock(&self.0);
        announced.listeners.retain(|listener| !listener.is_closed());
        if announced.listeners.is_empty() {
            announced.backlog.push(ending);
            return;
        }
        for listener in &announced.listeners {
            let _ = listener.send(ending.clone());
        }
    }
}
