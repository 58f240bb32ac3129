//! The commits of a turn: whatever is unwritten goes with each, under the session's lease.

use mainstay_journal::entry::{self, Body};
use mainstay_journal::{TurnRef, call, process};
use mainstay_store::{Lease, WriteTx};
use mainstay_tools::Fact;

use super::runner::TurnRunner;
use super::unwritten::{Unwritten, UnwrittenEntries, UnwrittenMessage, UnwrittenResult};
use crate::agent::Agent;
use crate::budget::Amount;
use crate::session::open::OpenSession;
use crate::{Error, Observer, Result, budget, redaction};

/// Where a turn is written, and by whom.
pub(crate) struct Writer<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) lease: &'a Lease,
    pub(crate) place: TurnRef,
}

impl TurnRunner<'_> {
    /// Commits what is unwritten, and more.
    pub(crate) fn commit<T: Send>(
        &mut self,
        mut more: impl FnMut(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let account = self.limits.account.clone();
        self.commit_with(|tx, correction| {
            budget::correct(tx, &account, &correction)?;
            more(tx)
        })
    }

    /// Commits what is unwritten, and more, which charges the correction of the budgets that is due.
    pub(crate) fn commit_with<T: Send>(
        &mut self,
        more: impl FnMut(&mut WriteTx<'_>, Amount) -> Result<T> + Send,
    ) -> Result<T> {
        let OpenSession { agent, lease, .. } = &*self.session;
        let writer = Writer { agent, lease, place: self.turn.place() };
        writer.write(&mut self.unwritten, self.observer, more)
    }

    /// Commits what is unwritten, how files are now that the turn stops, and more.
    pub(crate) fn commit_with_snapshot(
        &mut self,
        mut more: impl FnMut(&mut WriteTx<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        let (parts, place) = (self.session.agent.parts.clone(), self.turn.place());
        loop {
            let OpenSession { snapshots, workplace, id, .. } = &mut *self.session;
            snapshots.after(&parts.store, *id, workplace, &parts.settings.snapshots)?;
            let saved = snapshots.pending();
            let written = self.commit(|tx| {
                if let Some(saved) = &saved {
                    saved.write(tx, place)?;
                }
                more(tx)
            });
            match written {
                Err(Error::SnapshotsSwept) => self.session.snapshots.doubt(),
                written => {
                    if let Some(saved) = saved.as_ref().filter(|_| written.is_ok()) {
                        self.session.snapshots.written(saved);
                    }
                    return written;
                }
            }
        }
    }

    /// Commits entries, and shows them to the model from the next request on.
    pub(crate) fn commit_entries(&mut self, mut bodies: Vec<Body>) -> Result<()> {
        let place = self.turn.place();
        let redactor = self.session.agent.redactor();
        bodies.iter_mut().for_each(|body| redaction::body(redactor, body));
        self.commit(|tx| {
            for body in &bodies {
                entry::append(tx, place.session, place.turn, body)?;
            }
            Ok(())
        })?;
        bodies.iter().for_each(|body| self.session.apply_entry(body));
        Ok(())
    }

    /// Writes what hooks and memories have for the model and nobody wrote yet.
    pub(crate) fn write_pending_notices(&mut self) -> Result<()> {
        let notices = std::mem::take(&mut self.session.pending_notices);
        if notices.is_empty() { Ok(()) } else { self.commit_entries(notices) }
    }
}

impl Writer<'_> {
    /// Writes all that is unwritten in one transaction with `more`, which is given the correction of
    /// the budgets that is due. Faces are told when it is durable.
    pub(crate) fn write<T: Send>(
        &self,
        unwritten: &mut UnwrittenEntries,
        observer: Observer<'_>,
        mut more: impl FnMut(&mut WriteTx<'_>, Amount) -> Result<T> + Send,
    ) -> Result<T> {
        let items = &unwritten.items;
        let value = self.agent.write(|tx| {
            self.lease.guard(tx)?;
            let mut correction = Amount::default();
            let mut seq = if items.is_empty() { 0 } else { entry::count(tx, self.place.session)? };
            for item in items {
                seq += 1;
                match item {
                    Unwritten::Message(message) => {
                        correction = correction.plus(&self.write_message(tx, seq, message)?);
                    }
                    Unwritten::Result(result) => self.write_result(tx, seq, result)?,
                }
            }
            more(tx, correction)
        })?;
        for item in unwritten.items.drain(..) {
            match item {
                Unwritten::Result(result) => {
                    if let Some(file) = &result.spooled {
                        // One that stays goes with its keeper.
                        let _ = std::fs::remove_file(file);
                    }
                    result.events.into_iter().for_each(&mut *observer);
                }
                Unwritten::Message(_) => {}
            }
        }
        unwritten.events_after_commit.drain(..).for_each(observer);
        Ok(value)
    }

    /// Writes a message and its calls. Returns the correction of the budgets that is due.
    fn write_message(
        &self,
        tx: &mut WriteTx<'_>,
        seq: i64,
        message: &UnwrittenMessage,
    ) -> Result<Amount> {
        let TurnRef { session, turn } = self.place;
        entry::insert(tx, session, turn, seq, &message.body)?;
        for (position, call) in message.calls.iter().enumerate() {
            call::intend(tx, self.place, seq, position, call)?;
        }
        message.reservation.finish(tx, self.agent, self.place, &message.attempts)
    }

    fn write_result(
        &self,
        tx: &mut WriteTx<'_>,
        seq: i64,
        written: &UnwrittenResult,
    ) -> Result<()> {
        let TurnRef { session, turn } = self.place;
        match (&written.whole, &written.body) {
            (Some(whole), Body::Result { result, facts, fingerprint, .. }) => {
                let body = Body::Result {
                    result: result.clone(),
                    facts: facts.clone(),
                    fingerprint: fingerprint.clone(),
                    whole: Some(tx.put_packed_blob(whole)?.to_string()),
                };
                entry::insert(tx, session, turn, seq, &body)?;
            }
            (_, body) => entry::insert(tx, session, turn, seq, body)?,
        }
        call::finish(tx, session, written.id, seq)?;
        for fact in &written.facts {
            match fact {
                Fact::Background { process, keeper, command } => {
                    process::started(tx, session, process, keeper, command)?;
                }
                Fact::Acknowledged { process } => {
                    process::acknowledge(tx, session, process)?;
                }
                Fact::File { .. }
                | Fact::Exit { .. }
                | Fact::Loaded { .. }
                | Fact::Skill { .. }
                | Fact::Proposed { .. }
                | Fact::Outside { .. }
                | Fact::Memories { .. }
                | Fact::Steps { .. }
                | Fact::InDoubt => {}
            }
        }
        Ok(())
    }
}
