//! Compaction when a person asks for it, while no turn goes on.

use std::sync::Arc;

use mainstay_journal::compaction::{self, Standing};
use mainstay_journal::entry::{self, Body};
use mainstay_store::wall_millis;
use tokio_util::sync::CancellationToken;

use super::Trigger;
use super::apply::{CompactionAttempt, CompactionRequest, TOO_LITTLE};
use crate::budget::{self, Account, reservations};
use crate::redaction::RedactingObserver;
use crate::session::open::OpenSession;
use crate::{Observer, Result};

/// What came of compacting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// It is in force.
    Made {
        /// Its number within the session.
        number: i64,
        /// The tokens of the next request before it.
        before: u64,
        /// And after it.
        after: u64,
    },
    /// Nothing has changed, for this reason.
    Not(String),
    /// Somebody stopped it; nothing has changed.
    Stopped,
}

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The number of the compaction.
    pub number: i64,
    /// The tokens of the next request now.
    pub tokens: u64,
    /// How many the model takes, if that is known.
    pub window: Option<u64>,
}

impl OpenSession {
    /// Compacts the session, whatever its size, looking after `focus` above all.
    pub async fn compact(
        &mut self,
        focus: Option<String>,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Compacted> {
        let redactor = self.agent.settings().redactor.clone();
        let focus = focus.map(|focus| redactor.text(&focus).into_owned());
        let mut redacting = RedactingObserver::new(&redactor);
        let mut observer = |event| redacting.tell(event, &mut *observer);
        let Some(turn) = self.last_turn.row.as_ref().map(|turn| turn.id) else {
            return Ok(Compacted::Not("the session is still empty".to_owned()));
        };
        self.compaction.begin_anew();
        self.compaction.in_progress = None;
        let account = self.own_account()?;
        let trigger = Trigger::Hand;
        let request = CompactionRequest { turn, account: &account, trigger, focus };
        let attempt = match self.begin_compaction(request, &mut observer, cancel).await? {
            CompactionAttempt::Begun => self.apply_summary(turn, &mut observer, cancel).await?,
            attempt => attempt,
        };
        Ok(match attempt {
            CompactionAttempt::Made(made) => {
                Compacted::Made { number: made.number, before: made.before, after: made.after }
            }
            CompactionAttempt::Not(why) | CompactionAttempt::Resting(why) => Compacted::Not(why),
            CompactionAttempt::Nothing => Compacted::Not(TOO_LITTLE.to_owned()),
            CompactionAttempt::Begun | CompactionAttempt::Stopped => {
                // No turn ends that would settle it.
                self.abandon_summaries()?;
                Compacted::Stopped
            }
        })
    }

    /// Takes the last compaction in force back: the model is shown again what was there before. Returns
    /// `None` if there is none.
    pub fn uncompact(&mut self) -> Result<Option<Restored>> {
        let (id, Some(turn)) = (self.id, self.last_turn.row.as_ref().map(|turn| turn.id)) else {
            return Ok(None);
        };
        self.compaction.in_progress = None;
        let mut entries = self.agent.read(|tx| entry::all(tx, id))?;
        let last = Standing::of(&entries).last().map(|made| made.number);
        let Some(number) = last else { return Ok(None) };
        let seq = self.write(|tx| Ok(compaction::restore(tx, id, turn, number)?))?;
        let body = Body::Restored { number };
        entries.push(entry::Entry { seq, turn, at: wall_millis(), body });
        self.rebuild_transcript(&entries);
        self.compaction.begin_anew();
        self.compaction.restored = true;
        let tokens = u64::try_from(self.conversation.size.tokens()).unwrap_or(0);
        let window = self.agent.window();
        Ok(Some(Restored { number, tokens, window }))
    }

    /// The budgets of the session itself: no turn pays for what a person asks for between two.
    fn own_account(&self) -> Result<Arc<Account>> {
        let budget = budget::of_session(self.id);
        let path = self.agent.read(|tx| budget::ancestry(tx, &budget))?;
        let day = self.agent.settings().budgets.day;
        Ok(Arc::new(Account { owner: self.agent.owner(), path, day }))
    }

    fn abandon_summaries(&self) -> Result<()> {
        self.write(|tx| reservations::abandon(tx, self.id))
    }
}
