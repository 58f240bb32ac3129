//! The index of words catches up when a session is left, so that no search has to do it all.

use std::time::Duration;

use mainstay_journal::search;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::agent::{Agent, Parts};

/// How long it adds entries: two or three thousand of them, in short commits.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long it is waited for. Whoever holds the store up does not hold the end up; what is half done
/// then is not done at all.
const LONGEST: Duration = Duration::from_millis(400);

/// Adds some of what the index lacks, for a moment, while nothing else goes on.
pub(super) async fn catch_up(agent: &Agent) {
    let Parts { store, owner, .. } = &*agent.parts;
    let (store, owner) = (store.clone(), *owner);
    let (done, added) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("search-upkeep".to_owned()).spawn(move || {
        // The next one who leaves, or who searches, tries again.
        if let Err(error) = search::catch_up_ahead(&store, owner, PATIENCE) {
            tracing::warn!(%error, "the index of words did not catch up");
        }
        let _ = done.send(());
    });
    // Where there is no room for a thread, there is none for this.
    if spawned.is_ok() {
        let _ = timeout(LONGEST, added).await;
    }
}
