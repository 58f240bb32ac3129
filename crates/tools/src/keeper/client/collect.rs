//! Asking the spool of a keeper that is gone what became of a job.

use std::path::Path;

use mainstay_store::Liveness;

use crate::keeper::shared::Ended;
use crate::keeper::shared::spool::Record;

/// What the spool of a keeper says about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collected {
    /// It was never started.
    NeverStarted,
    /// The keeper lives, and the job has not ended.
    Running,
    /// It ended.
    Ended(Ended),
    /// Nobody can tell; the words say why.
    InDoubt(String),
}

/// Asks the spool of a keeper that does not answer about a job.
pub fn collect(spool: &Path, name: &str, key: &str) -> Collected {
    let record = match Record::read(&spool.join(name)) {
        Ok(record) => record,
        Err(words) => return Collected::InDoubt(words),
    };
    if let Some(ended) = record.ended.get(key) {
        return Collected::Ended(ended.clone());
    }
    match record.keeper.liveness() {
        Liveness::Alive | Liveness::Stopped => Collected::Running,
        Liveness::OutOfSight => Collected::InDoubt(
            "The machine was restarted, or this is a different one, so what ran then is unknown."
                .to_owned(),
        ),
        Liveness::Dead if record.starting.contains_key(key) => Collected::InDoubt(
            "It was started, and its keeper was killed before it ended; its processes were killed \
             too."
                .to_owned(),
        ),
        Liveness::Dead => Collected::NeverStarted,
    }
}
