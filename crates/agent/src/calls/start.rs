//! Starting calls: their plans, what they will change is saved, and that they start is written down.

use std::ops::Range;
use std::sync::Arc;

use mainstay_journal::CallId;
use mainstay_journal::call::{self, Start};
use mainstay_store::Id;
use tokio::time::timeout_at;

use super::call::{Readiness, ToolCall, nothing_done};
use crate::approvals::requests;
use crate::budget::reservations::Stage;
use crate::children::delegate_tool;
use crate::hooks::Moment;
use crate::snapshots::UpcomingChange;
use crate::turn::end::TurnStop;
use crate::turn::reserve::ModelReservation;
use crate::turn::runner::TurnRunner;
use crate::{Error, Event, Result, budget};

impl TurnRunner<'_> {
    /// Plans the ready calls of a group, saves what they are about to change, and writes down that they
    /// start.
    pub(crate) async fn start_group(
        &mut self,
        group: Range<usize>,
    ) -> std::result::Result<(), TurnStop> {
        self.plan_group(group.clone()).await?;
        loop {
            self.save_before(group.clone()).await?;
            match self.commit_starts(group.clone()) {
                // What was saved builds on objects that are gone: it is saved again.
                Err(Error::SnapshotsSwept) => self.session.snapshots.doubt(),
                started => return Ok(started?),
            }
        }
    }

    /// Asks the tools what they must know of calls that begin. One that was started keeps the plan of
    /// that time: a new one would take its own effect for what was there before.
    async fn plan_group(&mut self, group: Range<usize>) -> std::result::Result<(), TurnStop> {
        let session = self.session.id.to_string();
        for index in group {
            if !self.calls[index].begins() {
                continue;
            }
            let Some(call) = self.calls[index].runnable() else {
                self.record_outcome(index, nothing_done())?;
                continue;
            };
            let planning = call.tool.plan(call.invocation(&session, &self.session.workplace));
            let planned = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
                planned = timeout_at(self.limits.deadline, planning) => planned,
            };
            self.calls[index].plan = planned.ok().flatten().map(Arc::new);
        }
        Ok(())
    }

    /// Saves what calls are about to change. A child that goes on changes more than it did before its
    /// parent was parked.
    async fn save_before(&mut self, group: Range<usize>) -> std::result::Result<(), TurnStop> {
        for index in group {
            let call = &self.calls[index];
            let child_goes_on = call.readiness() == Some(Readiness::Settle)
                && call.asked.name == delegate_tool::NAME;
            if !call.begins() && !child_goes_on {
                continue;
            }
            let (Some(tool), Ok(arguments)) = (&call.tool, &call.arguments) else { continue };
            let act = call.act(tool, arguments, self.session).clone();
            let (workplace, parts) =
                (self.session.workplace.clone(), self.session.agent.parts.clone());
            let change = UpcomingChange {
                store: &parts.store,
                session: self.session.id,
                call: call.id,
                act: &act,
                // A hook after the call may change more than the call itself.
                hooked: parts.settings.hooks.any(Moment::PostToolUse),
                workplace: &workplace,
                limits: &parts.settings.snapshots,
            };
            let warning = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
                saved = self.session.snapshots.before(change) => saved?,
            };
            if let Some(message) = warning {
                (self.observer)(Event::Notice { about: "snapshot", message, void: false });
            }
        }
        Ok(())
    }

    /// Writes down that the ready calls of a group start. With a new message the next model call is
    /// reserved too, so that it can be made the moment the results are there.
    fn commit_starts(&mut self, group: Range<usize>) -> Result<()> {
        let runs = |call: &&ToolCall| call.readiness() == Some(Readiness::Run);
        let starting: Vec<&ToolCall> = self.calls[group.clone()].iter().filter(runs).collect();
        let saved = self.session.snapshots.pending();
        if starting.is_empty() && saved.is_none() {
            return Ok(());
        }
        let session_id = self.session.id.to_string();
        for call in starting.iter().filter_map(|call| call.runnable()) {
            call.tool.prepare(call.invocation(&session_id, &self.session.workplace), call.plan());
        }
        // Calls of the message that is about to be written are written with it, started.
        let of_written_messages: Vec<(CallId, Start)> = starting
            .iter()
            .filter_map(|call| {
                let plan = call.plan.as_ref().map(|plan| plan.to_string());
                self.unwritten.start(call.id, Start { plan, input: call.changed_input() })
            })
            .collect();
        let approvals: Vec<Id> = starting.iter().filter_map(|call| call.approval).collect();
        let agent = self.session.agent.clone();
        let (place, account) = (self.turn.place(), self.limits.account.clone());
        let next = self.unwritten.has_message().then(|| ModelReservation {
            id: Id::new(),
            amount: self.session.conversation.size.reservation(&agent, self.calls.open()),
        });
        let (now, reserved) = self.commit_with(|tx, correction| {
            if let Some(saved) = &saved {
                saved.write(tx, place)?;
            }
            for (id, start) in &of_written_messages {
                call::start(tx, place.session, *id, start)?;
            }
            for approval in &approvals {
                requests::spend(tx, *approval)?;
            }
            let reserved = match &next {
                Some(next) => next.begin(tx, &agent, &account, place, &correction, Stage::Ready)?,
                None => {
                    budget::correct(tx, &account, &correction)?;
                    Ok(())
                }
            };
            Ok((tx.now(), reserved))
        })?;
        if let Some(saved) = &saved {
            self.session.snapshots.written(saved);
        }
        // A reservation that failed is tried again when it is due, and parks the turn then.
        if reserved.is_ok() && next.is_some() {
            self.reserved = next;
        }
        for call in &mut self.calls[group] {
            match call.readiness() {
                Some(Readiness::Run | Readiness::Settle) => {
                    call.started_at.get_or_insert(now);
                }
                None => {}
            }
        }
        Ok(())
    }
}
