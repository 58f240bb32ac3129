//! What came of asking the models, taken in: an answer with its calls, or a failure.

use mainstay_journal::entry::Body;
use mainstay_journal::model_call::Attempt;
use mainstay_journal::turn::{ParkReason, Parked};
use mainstay_llm::{Answer, Failure};
use mainstay_message::{AssistantPart, Call};
use tokio::time::Instant;

use super::ask_model::FailedAttempts;
use super::end::TurnStop;
use super::reserve::ModelReservation;
use super::runner::TurnRunner;
use crate::calls::call::{OpenCalls, ToolCall};
use crate::{Event, Result, budget};

impl TurnRunner<'_> {
    /// Takes in an answer and the calls it asks for; the next commit writes both.
    pub(crate) fn record_answer(
        &mut self,
        reservation: ModelReservation,
        attempts: Vec<Attempt>,
        answer: &Answer,
    ) {
        let agent = &self.session.agent;
        let calls = calls_of(answer).map(|call| ToolCall::new(agent, call.clone()));
        self.calls = OpenCalls::new(calls.collect());
        let model = answer.candidate.to_string();
        let body = Body::Assistant { parts: answer.parts.clone(), model };
        self.session.apply_entry(&body);
        self.unwritten.add_message(reservation, attempts, body, &self.calls);
        self.unwritten.events_after_commit.push(answer_event(answer));
    }

    /// Writes down a model call that nobody answered.
    pub(crate) fn record_failure(
        &mut self,
        reservation: &ModelReservation,
        attempts: &[Attempt],
    ) -> Result<()> {
        let (agent, place) = (self.session.agent.clone(), self.turn.place());
        let account = self.limits.account.clone();
        self.commit(|tx| {
            let correction = reservation.finish(tx, &agent, place, attempts)?;
            budget::correct(tx, &account, &correction)
        })
    }

    /// Writes down a model call that is given up in the middle, and returns why.
    pub(crate) fn give_up_asking(
        &mut self,
        reservation: &ModelReservation,
        failed: &FailedAttempts,
        stop: TurnStop,
    ) -> std::result::Result<TurnStop, TurnStop> {
        if let TurnStop::Broken(_) = stop {
            return Ok(stop);
        }
        let (agent, place) = (self.session.agent.clone(), self.turn.place());
        let account = self.limits.account.clone();
        self.commit(|tx| reservation.give_up(tx, &agent, &account, place, failed))?;
        Ok(stop)
    }

    /// Why the turn stops when no model answered.
    pub(crate) fn stop_after(&self, failure: &Failure) -> TurnStop {
        // The turn's own time ended it, not the models'.
        if Instant::now() >= self.limits.deadline {
            return self.out_of_time();
        }
        match failure.retry_at {
            Some(until) => TurnStop::park(Parked {
                reason: ParkReason::Provider { until },
                text: failure.to_string(),
            }),
            None => TurnStop::Failed(failure.to_string()),
        }
    }
}

fn calls_of(answer: &Answer) -> impl Iterator<Item = &Call> {
    answer.parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
    })
}

/// What a model said to the user, without its thoughts and calls.
pub(crate) fn spoken_text(parts: &[AssistantPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.as_str()),
        AssistantPart::Call(_) | AssistantPart::Reasoning(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n").trim().to_owned()
}

fn answer_event(answer: &Answer) -> Event {
    #[expect(clippy::cast_precision_loss, reason = "it is for reading")]
    let cost = answer.cost.unwrap_or(0) as f64 / 1e6;
    let (model, usage) = (answer.candidate.to_string(), answer.usage.unwrap_or_default());
    Event::Answer { model, usage, cost }
}
