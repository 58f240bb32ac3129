//! The reservation of a model call: no room in a budget, no call.

use mainstay_journal::TurnRef;
use mainstay_journal::model_call::{self, Attempt, Purpose};
use mainstay_journal::turn::{ParkReason, Parked};
use mainstay_store::{Id, WriteTx};
use tokio::time::Instant;

use super::ask_model::FailedAttempts;
use super::end::TurnStop;
use super::runner::TurnRunner;
use crate::Result;
use crate::agent::Agent;
use crate::budget::reservations::{self, NewReservation, Stage};
use crate::budget::{self, Account, Amount, BudgetExhausted};

/// A model call that is reserved and written down, and not made yet.
#[derive(Debug)]
pub(crate) struct ModelReservation {
    pub(crate) id: Id,
    /// What is charged for it until its true figures are known.
    pub(crate) amount: Amount,
}

impl TurnRunner<'_> {
    /// The next model call, reserved and written down. A budget without room parks the turn.
    pub(crate) fn reserve_next_call(&mut self) -> std::result::Result<ModelReservation, TurnStop> {
        if let Some(reserved) = self.reserved.take()
            && let Some(reserved) = self.mark_sent(&reserved)?
        {
            return Ok(reserved);
        }
        let (agent, place) = (self.session.agent.clone(), self.turn.place());
        let account = self.limits.account.clone();
        let amount = self.session.conversation.size.reservation(&agent, 0);
        let reservation = ModelReservation { id: Id::new(), amount };
        let begun = self.commit_with(|tx, correction| {
            reservation.begin(tx, &agent, &account, place, &correction, Stage::Sent)
        })?;
        match begun {
            Ok(()) => Ok(reservation),
            // Nobody can give a child more than it was given; its parent has the rest.
            Err(spent)
                if self.session.is_child()
                    && spent.budget == budget::of_session(self.session.id) =>
            {
                Err(TurnStop::Failed(spent.text))
            }
            Err(spent) => Err(TurnStop::park(Parked {
                reason: ParkReason::Budget { scope: spent.scope(), limit: spent.limit },
                text: spent.text,
            })),
        }
    }
}

impl TurnRunner<'_> {
    /// Writes down that a call which was reserved with the calls before it is about to be sent, with
    /// the size that it has now. Not durably: what must be told apart after a crash is whether this
    /// process got so far, and the results wait for company to be synced with. Returns `None` if the
    /// reservation is gone.
    fn mark_sent(&self, reserved: &ModelReservation) -> Result<Option<ModelReservation>> {
        let (agent, lease) = (&self.session.agent, &self.session.lease);
        let amount = self.session.conversation.size.reservation(agent, 0);
        let is_reserved = agent.note(|tx| {
            lease.guard(tx)?;
            reservations::mark_sent(tx, reserved.id, &amount)
        })?;
        Ok(is_reserved.then_some(ModelReservation { id: reserved.id, amount }))
    }
}

impl ModelReservation {
    /// Reserves and writes down that the first model is about to be asked; says which budget has no
    /// room where one has none. `correction` belongs to the question before.
    pub(crate) fn begin(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: TurnRef,
        correction: &Amount,
        stage: Stage,
    ) -> Result<std::result::Result<(), BudgetExhausted>> {
        let model = agent.settings().chain.first().map(ToString::to_string);
        let reservation = NewReservation {
            id: self.id,
            purpose: purpose(agent, place),
            model: &model.unwrap_or_default(),
            account,
            amount: self.amount,
            stage,
        };
        reservation.make(tx, correction)
    }

    /// Writes down what became of it, and answers what the reservation differs from what was used.
    pub(crate) fn finish(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        place: TurnRef,
        attempts: &[Attempt],
    ) -> Result<Amount> {
        reservations::finish(tx, self.id, &purpose(agent, place), attempts, &self.amount)
    }

    /// Writes down a question that is given up in the middle: its tries that failed, and one on its
    /// way, which may have been answered and billed and so keeps what was reserved.
    pub(crate) fn give_up(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: TurnRef,
        attempts: &FailedAttempts,
    ) -> Result<()> {
        let FailedAttempts { failed, next } = attempts;
        if next.is_some_and(|next| Instant::now() < next) {
            let correction = self.finish(tx, agent, place, failed)?;
            return budget::correct(tx, account, &correction);
        }
        if let Some(last) = failed.last() {
            let purpose = purpose(agent, place);
            model_call::finish(tx, self.id, &purpose, failed)?;
            model_call::begin(tx, Id::new(), &purpose, &last.model)?;
            budget::correct(tx, account, &used_by(failed))?;
        }
        reservations::abandon(tx, place.session)
    }

    /// Takes it back: no model was asked.
    pub(crate) fn withdraw(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: TurnRef,
    ) -> Result<()> {
        let purpose = purpose(agent, place);
        let correction = reservations::withdraw(tx, self.id, &purpose, &self.amount)?;
        budget::correct(tx, account, &correction)
    }
}

pub(crate) fn used_by(attempts: &[Attempt]) -> Amount {
    let calls = i64::try_from(attempts.len()).unwrap_or(1);
    let mut used = Amount { calls, ..Amount::default() };
    for attempt in attempts {
        used.money += attempt.cost;
        used.tokens += i64::try_from(attempt.usage.total()).unwrap_or(i64::MAX);
    }
    used
}

fn purpose(agent: &Agent, place: TurnRef) -> Purpose<'static> {
    let TurnRef { session, turn } = place;
    Purpose { owner: agent.owner(), session: Some(session), turn: Some(turn), purpose: "turn" }
}
