//! Running the calls of a group beside each other, and taking in their outcomes as they come.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use mainstay_tools::{Outcome, Workplace};
use tokio::time::{timeout, timeout_at};

use super::call::{CallState, Readiness, RunnableCall};
use super::settle::{CallEnd, outcome_unknown, settle};
use crate::hooks::{self, HookReply};
use crate::turn::end::{TurnStop, duration};
use crate::turn::runner::TurnRunner;

/// Time that a tool is given beyond its own limit before the engine ends it.
const SLACK: Duration = Duration::from_secs(10);

/// A call that ran, with what the hooks after it said.
struct Ran {
    index: usize,
    end: CallEnd,
    reply: HookReply,
}

impl TurnRunner<'_> {
    /// Runs the ready calls of a group. A call that has to wait for something outside parks the turn
    /// once the others have their ends.
    pub(crate) async fn run_group(&mut self, group: Range<usize>) -> Result<(), TurnStop> {
        if self.cancel.is_cancelled() {
            return Err(TurnStop::Cancelled);
        }
        let (workplace, session) = (self.session.workplace.clone(), self.session.id.to_string());
        let hooks = self.session.agent.settings().hooks.clone();
        let cancel = self.cancel;
        let running: Vec<usize> =
            group.filter(|index| self.calls[*index].readiness().is_some()).collect();
        let mut flights: FuturesUnordered<_> = running
            .iter()
            .filter_map(|index| {
                let call = &self.calls[*index];
                let (readiness, runnable) = (call.readiness()?, call.runnable()?);
                let (index, workplace, session, hooks) = (*index, &workplace, &session, &hooks);
                Some(async move {
                    let mut end = match readiness {
                        Readiness::Run => {
                            CallEnd::Done(run_call(&runnable, workplace, session).await)
                        }
                        Readiness::Settle => settle(&runnable, workplace, session).await,
                    };
                    let reply = match &mut end {
                        CallEnd::Done(outcome) => {
                            hooks::run_hooks_after(
                                hooks, &runnable, outcome, session, workplace, cancel,
                            )
                            .await
                        }
                        CallEnd::NeverRan | CallEnd::Unknown(_) => HookReply::default(),
                    };
                    Ran { index, end, reply }
                })
            })
            .collect();
        // All begin, and then faces are told: telling takes its time.
        let mut early = VecDeque::new();
        while let Some(Some(ran)) = flights.next().now_or_never() {
            early.push_back(ran);
        }
        for index in running {
            (self.observer)(self.calls[index].event());
            self.calls[index].announced = true;
        }
        let mut parked = None;
        loop {
            let ran = match early.pop_front() {
                Some(ran) => Ok(Some(ran)),
                None => tokio::select! {
                    biased;
                    () = cancel.cancelled() => {
                        // What has its outcome and waits for hooks only is done.
                        while let Some(Some(ran)) = flights.next().now_or_never() {
                            if let CallEnd::Done(outcome) = ran.end {
                                self.record_outcome(ran.index, outcome)?;
                            }
                        }
                        return Err(TurnStop::Cancelled);
                    }
                    ran = timeout_at(self.limits.deadline, flights.next()) => ran,
                },
            };
            let Ran { index, end, reply } = match ran {
                Ok(Some(ran)) => ran,
                Ok(None) => return parked.map_or(Ok(()), Err),
                Err(_) => {
                    drop(flights);
                    self.close_calls("the turn's time was over").await?;
                    return Ok(());
                }
            };
            hooks::show_notices(self.observer, reply.notices);
            match end {
                CallEnd::Done(Outcome { waits: Some(waits), .. }) => {
                    // The others go on until they have an end or wait too.
                    let stop = self.wait_for_child(index, &waits)?;
                    parked.get_or_insert(stop);
                    self.calls[index].state = CallState::Undecided;
                }
                CallEnd::Done(outcome) => {
                    self.record_outcome(index, outcome)?;
                    if let Some(reason) = reply.halt {
                        return Err(TurnStop::HookStopped(reason));
                    }
                    // The last one is written together with what comes next.
                    if !flights.is_empty() || !early.is_empty() {
                        self.commit(|_| Ok(()))?;
                    }
                }
                CallEnd::NeverRan => self.calls[index].never_ran(),
                CallEnd::Unknown(known) => {
                    let outcome = outcome_unknown(self.calls[index].started_at, &known);
                    self.record_outcome(index, outcome)?;
                }
            }
        }
    }
}

/// Runs a call within its limit.
async fn run_call(call: &RunnableCall, workplace: &Arc<Workplace>, session: &str) -> Outcome {
    let limit = call.tool.traits().wall;
    let running = call.tool.run(call.invocation(session, workplace), call.plan());
    match timeout(limit.saturating_add(SLACK), running).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::failed(format!(
            "The call was ended after {}. It may have had a part of its effect.",
            duration(limit)
        )),
    }
}
