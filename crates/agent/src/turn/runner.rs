//! The loop of a turn: ask, run what was asked for, ask again, until there is an answer.

use std::sync::Arc;

use mainstay_journal::turn::{Outcome, State, Turn};
use mainstay_llm::Fault;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ask_model::{self, FailedAttempts};
use super::end::{TurnEnding, TurnReport, TurnStop};
use super::reserve::ModelReservation;
use super::unwritten::UnwrittenEntries;
use crate::budget::Account;
use crate::calls::call::OpenCalls;
use crate::loop_guard::LoopGuard;
use crate::session::open::OpenSession;
use crate::{Error, Event, Observer, Result, budget};

/// A turn being worked on.
pub(crate) struct TurnRunner<'a> {
    /// The session, which is this process's alone.
    pub(crate) session: &'a mut OpenSession,
    /// The turn's row, as it was when this process took it.
    pub(crate) turn: Turn,
    pub(crate) observer: Observer<'a>,
    pub(crate) cancel: &'a CancellationToken,
    /// The calls of the last message, until each has its result.
    pub(crate) calls: OpenCalls,
    /// What happened and is not in the store yet; the next commit writes it.
    pub(crate) unwritten: UnwrittenEntries,
    /// The next model call, if it is reserved already.
    pub(crate) reserved: Option<ModelReservation>,
    pub(crate) limits: TurnLimits,
}

/// What bounds a turn.
pub(crate) struct TurnLimits {
    /// When this process has worked on it for long enough.
    pub(crate) deadline: Instant,
    /// Where spending is charged.
    pub(crate) account: Arc<Account>,
    pub(crate) loop_guard: LoopGuard,
    /// How often the model ended the turn without a word.
    pub(crate) empty_answers: u32,
    /// How often hooks sent the turn on when it was about to end.
    pub(crate) hook_continues: u32,
}

impl<'a> TurnRunner<'a> {
    /// Works on a turn that was just begun.
    pub(crate) async fn begin(
        session: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<TurnReport> {
        let mut runner = Self::new(session, turn, observer, cancel);
        runner.find_account()?;
        runner.announce_turn(false);
        runner.run(None).await
    }

    /// Goes on with a turn that another process left, or that was parked.
    pub(crate) async fn resume(
        session: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<TurnReport> {
        let choices = session.agent.choices().clone();
        let mut runner = Self::new(session, turn, observer, cancel);
        let unended_answer = runner.recover(Some(&choices))?;
        runner.announce_turn(true);
        runner.run(unended_answer).await
    }

    pub(crate) fn new(
        session: &'a mut OpenSession,
        turn: Turn,
        observer: Observer<'a>,
        cancel: &'a CancellationToken,
    ) -> Self {
        let budgets = session.agent.settings().budgets;
        let account = Account { owner: session.agent.owner(), path: Vec::new(), day: budgets.day };
        Self {
            limits: TurnLimits {
                deadline: Instant::now() + budgets.wall,
                account: Arc::new(account),
                loop_guard: LoopGuard::default(),
                empty_answers: 0,
                hook_continues: 0,
            },
            session,
            turn,
            observer,
            cancel,
            calls: OpenCalls::default(),
            unwritten: UnwrittenEntries::default(),
            reserved: None,
        }
    }

    /// Finds the budgets that the turn is charged to.
    pub(crate) fn find_account(&mut self) -> Result<()> {
        let id = budget::of_turn(self.turn.id);
        let path = self.session.agent.read(|tx| budget::ancestry(tx, &id))?;
        let account = Account { path, ..(*self.limits.account).clone() };
        self.limits.account = Arc::new(account);
        Ok(())
    }

    fn announce_turn(&mut self, resumed: bool) {
        let (id, number) = (self.turn.id.to_string(), self.turn.number);
        (self.observer)(Event::Turn { id, number, resumed });
    }

    /// Works until the turn is over or has to wait, and reports how it ended.
    async fn run(mut self, unended_answer: Option<String>) -> Result<TurnReport> {
        let (ending, answer) = match self.rounds(unended_answer).await {
            Ok(answer) => (TurnEnding::Over(Outcome::Answered, None), answer),
            Err(stop) => (self.stop(stop).await?, String::new()),
        };
        let mut row = self.turn.clone();
        match &ending {
            TurnEnding::Over(outcome, reason) => {
                row.state = State::Ended;
                row.outcome = Some(*outcome);
                row.reason.clone_from(reason);
                row.parked = None;
            }
            TurnEnding::Parked(parked) => {
                row.state = State::Parked;
                row.reason = Some(parked.text.clone());
                row.parked = Some(parked.reason.clone());
            }
        }
        let report = TurnReport::of(&self.session.agent, &row, answer)?;
        self.session.last_turn.row = Some(row);
        report.announce(self.observer);
        Ok(report)
    }

    /// Asks and runs calls until the model answers. `unended_answer` is an answer that was recorded
    /// before the turn could be ended.
    async fn rounds(
        &mut self,
        unended_answer: Option<String>,
    ) -> std::result::Result<String, TurnStop> {
        if self.session.agent.settings().chain.is_empty() {
            return Err(Error::NoModel.into());
        }
        // An answer that is there only has to be told.
        if unended_answer.is_none() && self.cancel.is_cancelled() {
            return Err(TurnStop::Cancelled);
        }
        self.run_open_calls().await?;
        self.write_pending_notices()?;
        if let Some(answer) = unended_answer.filter(|answer| !answer.is_empty())
            && let Some(answer) = self.conclude(answer).await?
        {
            return Ok(answer);
        }
        loop {
            self.make_room().await?;
            if Instant::now() >= self.limits.deadline {
                return Err(self.out_of_time());
            }
            self.take_in_news()?;
            let reservation = self.reserve_next_call()?;
            let mut failed = FailedAttempts::default();
            let asked = match self.ask_model(&mut failed).await {
                Ok(asked) => asked,
                Err(stop) => return Err(self.give_up_asking(&reservation, &failed, stop)?),
            };
            let attempts = ask_model::attempts(&asked);
            match asked {
                Ok(answer) => {
                    self.record_answer(reservation, attempts, &answer);
                    if self.calls.is_empty() {
                        if let Some(answer) = self.finish_with(&answer).await? {
                            return Ok(answer);
                        }
                    } else {
                        self.run_open_calls().await?;
                    }
                }
                Err(failure) => {
                    self.record_failure(&reservation, &attempts)?;
                    if failure.fault != Fault::TooLong || Instant::now() >= self.limits.deadline {
                        return Err(self.stop_after(&failure));
                    }
                    self.make_room_after(&failure).await?;
                }
            }
        }
    }
}
