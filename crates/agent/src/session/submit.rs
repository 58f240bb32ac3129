//! An input on its way to a turn: hooks, memories, then a turn of its own or the one it names.

use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, Outcome, State, Turn};
use mainstay_message::Content;
use mainstay_store::Id;
use tokio_util::sync::CancellationToken;

use super::open::OpenSession;
use crate::agent::{Parts, blocking};
use crate::background::processes;
use crate::budget::reservations;
use crate::redaction::{self, RedactingObserver};
use crate::turn::answer::spoken_text;
use crate::turn::end::TurnReport;
use crate::turn::recover::abandon_turn;
use crate::turn::runner::TurnRunner;
use crate::{Error, Event, Observer, Result, hooks, skills};

/// What a user sends.
#[derive(Clone, Debug)]
pub struct Input {
    /// Text and pictures.
    pub content: Vec<Content>,
    /// Names the input: sent twice with one key it is one turn.
    pub key: Option<String>,
}

impl OpenSession {
    /// Does what an input asks for. The same key sent twice is the same turn: one that is over is
    /// told again, one that is not goes on.
    pub async fn turn(
        &mut self,
        input: &Input,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<TurnReport> {
        let redactor = self.agent.redactor().clone();
        let input = redaction::input(&redactor, input);
        let mut redacting = RedactingObserver::new(&redactor);
        self.reload_if_stale()?;
        self.settle_abandoned_calls()?;
        let report =
            self.submit(&input, &mut |event| redacting.tell(event, observer), cancel).await;
        self.is_stale = broke_off(&report);
        redacting.tell_rest(observer);
        report
    }

    /// Goes on with the last turn, if it is not over. One that failed is tried again; one that was
    /// answered is told again. Returns `None` if the session has no turn.
    pub async fn resume(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnReport>> {
        let mut redacting = RedactingObserver::new(self.agent.redactor());
        self.reload_if_stale()?;
        self.settle_abandoned_calls()?;
        let report = self.resume_last(&mut |event| redacting.tell(event, observer), cancel).await;
        self.is_stale = broke_off(&report);
        redacting.tell_rest(observer);
        report
    }

    async fn submit(
        &mut self,
        input: &Input,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<TurnReport> {
        let key = input.key.clone().unwrap_or_else(|| Id::new().to_string());
        if self.lineage.is_new {
            let notices = self.run_session_hooks(Some(input), cancel).await?;
            let recall = self.recall_memories(input, cancel).await?;
            let turn = self.begin_turn(&key, input)?;
            // Told when it is recorded: a name that somebody saw can be resumed.
            self.announce_session(observer);
            hooks::show_notices(observer, notices);
            recall.announce(observer);
            for message in
                skills::unusable_skill_notices(&std::mem::take(&mut self.unusable_skills))
            {
                observer(Event::Notice { about: "skill", message, void: false });
            }
            return TurnRunner::begin(self, turn, observer, cancel).await;
        }
        self.take_up(observer).await?;
        match self.agent.read(|tx| turn::with_key(tx, self.id, &key))? {
            Some(turn) if turn.state == State::Ended => return self.report_again(&turn, observer),
            Some(turn) => {
                hooks::show_notices(observer, self.run_session_hooks(None, cancel).await?);
                return TurnRunner::resume(self, turn, observer, cancel).await;
            }
            None => {}
        }
        hooks::show_notices(observer, self.run_session_hooks(Some(input), cancel).await?);
        let recall = self.recall_memories(input, cancel).await?;
        self.abandon_unfinished(observer, cancel).await?;
        let turn = self.begin_turn(&key, input)?;
        recall.announce(observer);
        TurnRunner::begin(self, turn, observer, cancel).await
    }

    async fn resume_last(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnReport>> {
        self.take_up(observer).await?;
        let Some(turn) = self.last_turn.row.clone() else { return Ok(None) };
        match turn.outcome {
            None | Some(Outcome::Failed) => {
                hooks::show_notices(observer, self.run_session_hooks(None, cancel).await?);
                TurnRunner::resume(self, turn, observer, cancel).await.map(Some)
            }
            Some(
                Outcome::Answered | Outcome::Cancelled | Outcome::Stuck | Outcome::Interrupted,
            ) => self.report_again(&turn, observer).map(Some),
        }
    }

    /// Settles the model calls of processes that are gone, so that no budget stays fuller than need
    /// be until somebody takes their sessions up.
    fn settle_abandoned_calls(&self) -> Result<()> {
        let Parts { store, owner, .. } = &*self.agent.parts;
        blocking(|| reservations::sweep(store, *owner))
    }

    /// Settles what another process left beside the turn: an undo, processes in the background.
    async fn take_up(&mut self, observer: Observer<'_>) -> Result<()> {
        self.announce_session(observer);
        if self.finish_undo()?.is_some() {
            let message = "an undo that was interrupted is finished now".to_owned();
            observer(Event::Notice { about: "undo", message, void: false });
        }
        processes::reconcile(self).await
    }

    /// Ends the last turn if it is not over, because something new was asked.
    pub(crate) async fn abandon_unfinished(
        &mut self,
        observer: Observer<'_>,
        cancel: &CancellationToken,
    ) -> Result<()> {
        match self.last_turn.row.clone() {
            Some(turn) if turn.state != State::Ended => {
                abandon_turn(self, turn, observer, cancel).await
            }
            Some(_) | None => Ok(()),
        }
    }

    fn announce_session(&self, observer: Observer<'_>) {
        observer(Event::Session {
            id: self.id.to_string(),
            workspace: self.workplace.workspace.display().to_string(),
        });
    }

    /// Reports how a turn ended that is over.
    fn report_again(&self, turn: &Turn, observer: Observer<'_>) -> Result<TurnReport> {
        let entries = self.agent.read(|tx| entry::all(tx, self.id))?;
        let of_turn = entries.iter().filter(|entry| entry.turn == turn.id);
        let answer = of_turn.rev().find_map(|entry| match &entry.body {
            Body::Assistant { parts, .. } => Some(spoken_text(parts)),
            _ => None,
        });
        let report = TurnReport::of(&self.agent, turn, answer.unwrap_or_default())?;
        report.announce(observer);
        Ok(report)
    }
}

/// Whether a turn ended in the middle of a step. One that a hook refused was not begun.
fn broke_off<T>(report: &Result<T>) -> bool {
    match report {
        Ok(_) | Err(Error::Blocked(_)) => false,
        Err(_) => true,
    }
}
