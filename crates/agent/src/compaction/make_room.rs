//! Where a turn makes room, between two rounds.
//!
//! While there is room left, a summary is made beside the rounds and applied when it is there. When
//! the window is nearly full, the turn waits for it. Whatever fails here is told and changes nothing.

use mainstay_journal::turn::{ParkReason, Parked};
use mainstay_llm::Failure;
use mainstay_store::wall_millis;
use tokio::time::timeout_at;

use super::Trigger;
use super::apply::{CompactionAttempt, CompactionRequest, TOO_LITTLE};
use super::limits::{CompactionPause, WindowMarks};
use crate::session::open::OpenSession;
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;
use crate::{Event, Result};

impl OpenSession {
    /// Takes in what a provider counted: whether the last compaction helped.
    pub(crate) fn judge_compaction(&mut self) {
        let marks = self.marks();
        self.compaction.counted(self.conversation.size.tokens(), marks.as_ref());
    }
}

type Stoppable<T> = std::result::Result<T, TurnStop>;

impl TurnRunner<'_> {
    /// Sees to it that the next request fits, as far as that can be told beforehand.
    pub(crate) async fn make_room(&mut self) -> Stoppable<()> {
        self.session.compaction.round(self.turn.id);
        let marks = self.session.marks();
        let is_due = self.is_due(marks.as_ref());
        if self.session.compaction.is_quiet()
            && !is_due
            && !self.session.steering.wants_compaction()
        {
            return Ok(());
        }
        if let Some(focus) = self.session.steering.take_compaction() {
            return self.compact_by_hand(focus).await;
        }
        let full = marks.is_some_and(|marks| self.session.conversation.size.tokens() >= marks.full);
        if let Some(in_progress) = &self.session.compaction.in_progress {
            if in_progress.is_finished() || full {
                let attempt = self.take_summary().await?;
                self.tell_attempt(attempt);
            }
            return Ok(());
        }
        let rests = self.session.compaction.resting(self.turn.id, wall_millis()).is_some();
        if rests && !self.session.compaction.remembers {
            // The record could not be read a short time ago.
            return Ok(());
        }
        if let Err(error) = self.session.remember_compactions(self.turn.id) {
            let attempt = self.fail_attempt(&error.to_string());
            self.tell_attempt(attempt);
            return Ok(());
        }
        let tokens = self.session.conversation.size.tokens();
        let may_look = |marks: &WindowMarks| self.session.compaction.may_look(tokens, marks);
        if !self.is_due(marks.as_ref()) || !marks.as_ref().is_some_and(may_look) {
            return Ok(());
        }
        match self.session.compaction.resting(self.turn.id, wall_millis()) {
            Some(CompactionPause::Unanswered) => return Ok(()),
            Some(CompactionPause::Fruitless) => {
                let why = self.session.why_resting(&CompactionPause::Fruitless);
                self.tell_once(&why);
                return Ok(());
            }
            Some(_) if self.session.compaction.unwanted => return Ok(()),
            // No summary is asked for, and what was there before may be shortened all the same.
            _ => {}
        }
        let attempt = match self.begin_attempt(Trigger::Share, None).await? {
            CompactionAttempt::Begun if full || self.session.compaction.interrupted => {
                self.take_summary().await?
            }
            attempt => attempt,
        };
        self.tell_attempt(attempt);
        Ok(())
    }

    /// Makes room after a provider found the conversation too long. Where there is none to make, the
    /// turn ends in words that say what fills the window.
    pub(crate) async fn make_room_after(&mut self, failure: &Failure) -> Stoppable<()> {
        let turn = self.turn.id;
        self.session.compaction.outgrew(self.session.conversation.size.tokens());
        let mut why = match self.session.remember_compactions(turn) {
            Ok(()) => String::new(),
            Err(error) => format!("the session could not be read: {error}"),
        };
        if why.is_empty() && self.session.compaction.in_progress.is_some() {
            match self.take_summary().await? {
                CompactionAttempt::Made(_) => return Ok(()),
                CompactionAttempt::Not(words) | CompactionAttempt::Resting(words) => why = words,
                CompactionAttempt::Nothing
                | CompactionAttempt::Begun
                | CompactionAttempt::Stopped => {}
            }
        }
        if let Some(resting) = self.session.compaction.done_enough() {
            why = self.session.why_resting(&resting);
        } else if self.session.compaction.remembers {
            let attempt = match self.begin_attempt(Trigger::TooLong, None).await? {
                CompactionAttempt::Begun => self.take_summary().await?,
                attempt => attempt,
            };
            match attempt {
                CompactionAttempt::Made(_) => return Ok(()),
                CompactionAttempt::Not(words) | CompactionAttempt::Resting(words) => why = words,
                CompactionAttempt::Nothing => TOO_LITTLE.clone_into(&mut why),
                CompactionAttempt::Begun | CompactionAttempt::Stopped => {}
            }
        }
        let reason = self.no_room(&failure.to_string(), &why);
        match self.session.compaction.retry_at.filter(|at| *at > wall_millis()) {
            Some(until) => {
                Err(TurnStop::park(Parked { reason: ParkReason::Provider { until }, text: reason }))
            }
            None => Err(TurnStop::Failed(reason)),
        }
    }

    fn is_due(&self, marks: Option<&WindowMarks>) -> bool {
        let tokens = self.session.conversation.size.tokens();
        marks.is_some_and(|marks| tokens >= self.session.compaction.due(marks))
    }

    async fn compact_by_hand(&mut self, focus: Option<String>) -> Stoppable<()> {
        self.session.compaction.begin_anew();
        self.session.compaction.in_progress = None;
        let attempt = match self.begin_attempt(Trigger::Hand, focus).await? {
            CompactionAttempt::Begun => self.take_summary().await?,
            attempt => attempt,
        };
        self.tell_attempt(attempt);
        Ok(())
    }

    /// Begins a compaction. What fails in it is no failure of the turn.
    async fn begin_attempt(
        &mut self,
        trigger: Trigger,
        focus: Option<String>,
    ) -> Stoppable<CompactionAttempt> {
        self.write_unwritten()?;
        let account = self.limits.account.clone();
        let request = CompactionRequest { turn: self.turn.id, account: &account, trigger, focus };
        let attempt = self.session.begin_compaction(request, self.observer, self.cancel).await;
        self.survive(attempt)
    }

    /// Waits for the summary that is being made, and applies it.
    async fn take_summary(&mut self) -> Stoppable<CompactionAttempt> {
        self.write_unwritten()?;
        let landing = self.session.apply_summary(self.turn.id, self.observer, self.cancel);
        match timeout_at(self.limits.deadline, landing).await {
            Ok(attempt) => self.survive(attempt),
            // The turn is parked before its next question.
            Err(_) => Ok(CompactionAttempt::Not("the turn ran out of time".to_owned())),
        }
    }

    /// What is known has to be in the record before the view is made anew from it.
    fn write_unwritten(&mut self) -> Result<()> {
        if self.unwritten.count() > 0 {
            self.commit(|_| Ok(()))?;
        }
        Ok(())
    }

    fn survive(&mut self, attempt: Result<CompactionAttempt>) -> Stoppable<CompactionAttempt> {
        match attempt {
            Ok(CompactionAttempt::Stopped) => Err(TurnStop::Cancelled),
            Ok(attempt) => Ok(attempt),
            // If the lease is lost, or the store, the turn's own next commit finds out.
            Err(error) => Ok(self.fail_attempt(&error.to_string())),
        }
    }

    fn fail_attempt(&mut self, error: &str) -> CompactionAttempt {
        self.session.compaction.failed(self.turn.id, wall_millis(), error, None);
        CompactionAttempt::Not(error.to_owned())
    }

    /// Tells why nothing changed. That it is resting is told once.
    fn tell_attempt(&mut self, attempt: CompactionAttempt) {
        let why = match attempt {
            CompactionAttempt::Not(why) => why,
            CompactionAttempt::Nothing => return self.tell_once(TOO_LITTLE),
            // Why it rests was told when that began.
            CompactionAttempt::Made(_)
            | CompactionAttempt::Begun
            | CompactionAttempt::Resting(_)
            | CompactionAttempt::Stopped => return,
        };
        if let Some(resting) = self.session.compaction.done_enough() {
            let why = self.session.why_resting(&resting);
            return self.tell_once(&why);
        }
        if std::mem::replace(&mut self.session.compaction.said, why.clone()) == why {
            return;
        }
        let message = format!("the conversation was not compacted: {why}");
        (self.observer)(Event::Notice { about: "compaction", message, void: false });
    }

    /// Tells that there is no room to make, and what fills the window.
    fn tell_once(&mut self, why: &str) {
        if std::mem::replace(&mut self.session.compaction.told, true) {
            return;
        }
        let message = format!(
            "the conversation is no longer compacted because {why}: {}; use a model with a larger \
             window, or start a new session",
            self.session.window_contents()
        );
        (self.observer)(Event::Notice { about: "compaction", message, void: false });
    }

    /// Why the turn cannot go on, and what to do.
    fn no_room(&self, failure: &str, why: &str) -> String {
        let id = self.session.id;
        let why = if why.is_empty() { "it could not be compacted" } else { why };
        format!(
            "{failure}; nothing more can be left out of the conversation ({why}): {}. Go on with a \
             model that has a larger window (--model), from an earlier turn (`mainstay sessions fork \
             {id} --at TURN`), or in a new session.",
            self.session.window_contents()
        )
    }
}
