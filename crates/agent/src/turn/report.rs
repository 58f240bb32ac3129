//! How a turn ended, told and counted.

use mainstay_journal::model_call;
use mainstay_journal::turn::{Outcome as How, Turn};
use mainstay_message::Usage;

use crate::agent::blocking;
use crate::session::open::OpenSession;
use crate::{Event, Observer, Result};

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
    /// It is over.
    Over(How, Option<String>),
    /// It waits for something outside.
    Parked {
        /// Why.
        reason: String,
        /// When it can go on, in milliseconds since 1970, where that is known.
        resume_at: Option<i64>,
    },
}

impl TurnReport {
    /// How a turn ended, with what it took.
    pub(crate) fn of(work: &OpenSession, turn: &Turn, answer: String) -> Result<Self> {
        let spent = blocking(|| {
            let store = &work.agent.parts.store;
            store.read(|tx| model_call::spent_on(tx, model_call::On::Turn(turn.session, turn.id)))
        })?;
        let ending = match turn.outcome {
            Some(how) => TurnEnding::Over(how, turn.reason.clone()),
            None => TurnEnding::Parked {
                reason: turn.reason.clone().unwrap_or_default(),
                resume_at: turn.resume_at,
            },
        };
        Ok(Self { ending, answer, usage: spent.usage, cost: spent.cost })
    }

    /// Tells the last event.
    pub(crate) fn tell(&self, observer: Observer<'_>) {
        let (outcome, reason) = match &self.ending {
            TurnEnding::Over(how, reason) => (how.as_str(), reason.clone()),
            TurnEnding::Parked { reason, .. } => ("parked", Some(reason.clone())),
        };
        #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
        let cost = self.cost as f64 / 1e6;
        let (answer, usage) = (self.answer.clone(), self.usage);
        observer(Event::End { outcome, answer, reason, usage, cost });
    }
}
