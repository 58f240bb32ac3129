//! Ends of background processes, sorted by the session they belong to.

use std::collections::HashMap;
use std::sync::Mutex;

use mainstay_tools::Keeper;
use mainstay_tools::keeper::Ending;
use tokio::sync::mpsc::UnboundedReceiver;

use mainstay_store::lock;

/// The endings that the keeper reported and no session took yet.
pub(crate) struct Endings(Mutex<UntakenEndings>);

struct UntakenEndings {
    news: UnboundedReceiver<Ending>,
    by_session: HashMap<String, Vec<Ending>>,
}

impl Endings {
    pub(crate) fn of(keeper: &Keeper) -> Self {
        Self(Mutex::new(UntakenEndings { news: keeper.endings(), by_session: HashMap::new() }))
    }

    /// What was told of a session since the last time.
    pub(crate) fn take(&self, session: &str) -> Vec<Ending> {
        let mut waiting = lock(&self.0);
        while let Ok(ending) = waiting.news.try_recv() {
            waiting.by_session.entry(ending.session.clone()).or_default().push(ending);
        }
        waiting.by_session.remove(session).unwrap_or_default()
    }
}
