//! The rules that hold in a session's workspace, looked up again only when they may have changed.

use std::path::Path;

use mainstay_store::{Listener, OwnerId, SLOW_POLL, Store};
use tokio::time::{Duration, Instant};

use crate::Result;
use crate::agent::blocking;
use crate::approvals::{requests, rules};
use crate::policy::{Judgement, Rule};

/// What people said "always" to, as far as it concerns one session.
#[derive(Debug, Default)]
pub(crate) struct SessionRules {
    known: Vec<Rule>,
    looked: Option<(Instant, Listener)>,
}

impl SessionRules {
    /// Whether a person said "always" to everything that an action needs. The rules are read again only
    /// after a wake-up, so that a call that a rule allows does not read the store.
    pub(crate) fn cover(
        &mut self,
        judged: &Judgement,
        store: &Store,
        owner: OwnerId,
        workspace: &Path,
    ) -> Result<bool> {
        let Some(needs) = judged.needs.as_ref().filter(|needs| !needs.is_empty()) else {
            return Ok(false);
        };
        let current = self.looked.as_ref().is_some_and(|(at, listener)| {
            at.elapsed() < SLOW_POLL && !listener.wait(Duration::ZERO)
        });
        if !current {
            let listener = match self.looked.take() {
                Some((_, listener)) => listener,
                None => store.listen([requests::TOPIC])?,
            };
            self.known = blocking(|| store.read(|tx| rules::rules_of(tx, owner, workspace)))?;
            self.looked = Some((Instant::now(), listener));
        }
        Ok(needs.iter().all(|need| self.known.iter().any(|rule| rule.covers(need))))
    }
}
