//! How a turn stops, and what is reported of it.

use std::time::Duration;

use mainstay_journal::entry::{self, Body};
use mainstay_journal::turn::{self, Outcome, ParkReason, Parked, Turn};
use mainstay_journal::{SessionId, model_call};
use mainstay_message::Usage;
use mainstay_tools::Waits;

use super::runner::TurnRunner;
use crate::agent::Agent;
use crate::approvals::{questions, requests};
use crate::budget::reservations;
use crate::{Error, Event, Observer, Question, Request, Result};

/// Why the rounds of a turn stop before there is an answer.
pub(crate) enum TurnStop {
    Cancelled,
    /// It waits for something outside. What people are asked goes along.
    Parked {
        parked: Parked,
        requests: Vec<Request>,
        questions: Vec<Question>,
    },
    Failed(String),
    /// It goes in circles.
    Stuck(String),
    /// A hook ends it, for this reason.
    HookStopped(String),
    /// The engine itself cannot go on; nothing more is written.
    Broken(Error),
}

impl TurnStop {
    /// Parks the turn for something that people are not asked about.
    pub(crate) fn park(parked: Parked) -> Self {
        Self::Parked { parked, requests: Vec::new(), questions: Vec::new() }
    }
}

impl<E: Into<Error>> From<E> for TurnStop {
    fn from(error: E) -> Self {
        TurnStop::Broken(error.into())
    }
}

/// How a turn ended, or why it stopped.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// How.
    pub ending: TurnEnding,
    /// The model's last words.
    pub answer: String,
    /// What all calls of the turn took.
    pub usage: Usage,
    /// What they cost, in millionths of a dollar.
    pub cost: i64,
}

/// How a turn ended, or why it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnding {
    /// It is over; with the reason where it was not answered.
    Over(Outcome, Option<String>),
    /// It waits for something outside.
    Parked(Parked),
}

impl TurnReport {
    /// How a turn ended, with what it took.
    pub(crate) fn of(agent: &Agent, turn: &Turn, answer: String) -> Result<Self> {
        let on = model_call::On::Turn(turn.place());
        let spent = agent.read(|tx| model_call::spent_on(tx, on))?;
        let ending = match (turn.outcome, turn.parked()) {
            (Some(outcome), _) => TurnEnding::Over(outcome, turn.reason.clone()),
            (None, Some(parked)) => TurnEnding::Parked(parked),
            (None, None) => {
                let text = turn.reason.clone().unwrap_or_default();
                TurnEnding::Parked(Parked { reason: ParkReason::Unrecorded, text })
            }
        };
        Ok(Self { ending, answer, usage: spent.usage, cost: spent.cost })
    }

    /// Tells a face the last event.
    pub(crate) fn announce(&self, observer: Observer<'_>) {
        let (outcome, reason) = match &self.ending {
            TurnEnding::Over(outcome, reason) => (outcome.as_str(), reason.clone()),
            TurnEnding::Parked(parked) => ("parked", Some(parked.text.clone())),
        };
        #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
        let cost = self.cost as f64 / 1e6;
        let (answer, usage) = (self.answer.clone(), self.usage);
        observer(Event::End { outcome, answer, reason, usage, cost });
    }
}

impl TurnRunner<'_> {
    /// Writes down that the turn stops, and returns how.
    pub(crate) async fn stop(&mut self, stop: TurnStop) -> Result<TurnEnding> {
        match stop {
            TurnStop::Broken(error) => Err(error),
            TurnStop::Parked { parked, requests, questions } => {
                self.park(parked, requests, questions)
            }
            TurnStop::Failed(reason) => self.end(Outcome::Failed, Some(reason)),
            TurnStop::Stuck(reason) => {
                self.close_calls("the turn was ended because it went in circles").await?;
                self.end(Outcome::Stuck, Some(reason))
            }
            TurnStop::HookStopped(reason) => {
                self.close_calls("a hook stopped the turn").await?;
                self.end(Outcome::Cancelled, Some(format!("a hook stopped it: {reason}")))
            }
            TurnStop::Cancelled => {
                self.close_calls("the user stopped the turn").await?;
                self.end(Outcome::Cancelled, None)
            }
        }
    }

    fn park(
        &mut self,
        mut parked: Parked,
        mut requests: Vec<Request>,
        mut questions: Vec<Question>,
    ) -> Result<TurnEnding> {
        self.session.agent.redactor().string(&mut parked.text);
        let (agent, place) = (self.session.agent.clone(), self.turn.place());
        let (account, reserved) = (self.limits.account.clone(), self.reserved.take());
        self.commit_with_snapshot(|tx| {
            if let Some(reserved) = &reserved {
                reserved.withdraw(tx, &agent, &account, place)?;
            }
            Ok(turn::park(tx, place.turn, &parked)?)
        })?;
        // What its helpers wait for, it waits for too.
        let (of_helpers, asked_by_helpers) = agent.read(|tx| -> Result<_> {
            Ok((
                requests::of_descendants(tx, place.session)?,
                questions::of_descendants(tx, place.session)?,
            ))
        })?;
        requests.extend(of_helpers);
        questions.extend(asked_by_helpers);
        (self.observer)(Event::Parked {
            why: parked.reason.clone(),
            reason: parked.text.clone(),
            resume_at: parked.reason.resume_at(),
            requests,
            questions,
        });
        Ok(TurnEnding::Parked(parked))
    }

    /// Writes down that the turn is over.
    pub(crate) fn end(
        &mut self,
        outcome: Outcome,
        mut reason: Option<String>,
    ) -> Result<TurnEnding> {
        if let Some(reason) = &mut reason {
            self.session.agent.redactor().string(reason);
        }
        if outcome == Outcome::Cancelled {
            self.session.compaction.stop();
        }
        let (agent, place) = (self.session.agent.clone(), self.turn.place());
        let (account, reserved) = (self.limits.account.clone(), self.reserved.take());
        let body = Body::End { outcome, reason: reason.clone() };
        self.commit_with_snapshot(|tx| {
            if let Some(reserved) = &reserved {
                reserved.withdraw(tx, &agent, &account, place)?;
            }
            reservations::abandon(tx, place.session)?;
            entry::append(tx, place.session, place.turn, &body)?;
            Ok(turn::end(tx, place.turn, outcome, reason.as_deref())?)
        })?;
        self.session.apply_entry(&body);
        Ok(TurnEnding::Over(outcome, reason))
    }

    pub(crate) fn out_of_time(&self) -> TurnStop {
        let limit = self.session.agent.settings().budgets.wall;
        TurnStop::park(Parked {
            reason: ParkReason::TurnTime,
            text: format!("the turn reached its time limit of {}", duration(limit)),
        })
    }

    /// Parks the turn because the child that a call began has to wait.
    pub(crate) fn wait_for_child(&self, index: usize, waits: &Waits) -> Result<TurnStop> {
        // A child is named like the call that began it.
        let session = SessionId::from(self.calls[index].id.id());
        let child = self.session.agent.read(|tx| turn::last(tx, session))?;
        let because = child.and_then(|turn| turn.parked()).map(|parked| Box::new(parked.reason));
        let reason = ParkReason::Child { session, because };
        Ok(TurnStop::park(Parked { reason, text: waits.reason.clone() }))
    }
}

/// A length of time, as people say it.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1} s", time.as_secs_f32()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
