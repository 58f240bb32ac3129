//! What happened and is not written down yet, and how it is.

use mainstay_journal::call::{Intended, Start};
use mainstay_journal::entry::{self, Body};
use mainstay_journal::model_call::Attempt;
use mainstay_journal::{CallId, SessionId, TurnId, call, process};
use mainstay_llm::Answer;
use mainstay_message::Call;
use mainstay_store::{Lease, WriteTx};
use mainstay_tools::Fact;

use crate::agent::Agent;
use crate::budget::Amount;
use crate::turn::ask_model::ModelReservation;
use crate::{Event, Observer, Result};

/// What happened and is not written down yet. The view has it already.
#[derive(Default)]
pub(crate) struct UnwrittenEntries {
    /// In the order in which it happened.
    items: Vec<Item>,
    /// The names of the calls in the last message.
    pub(crate) call_ids: Vec<CallId>,
    /// What is to be told after the results.
    pub(crate) later: Vec<Event>,
}

enum Item {
    Said(Said),
    Result(Written),
}

/// A model's message.
struct Said {
    asking: ModelReservation,
    attempts: Vec<Attempt>,
    body: Body,
    /// The calls it asks for.
    calls: Vec<Intended>,
}

/// A result as it will be written.
pub(crate) struct Written {
    pub(crate) id: CallId,
    pub(crate) body: Body,
    pub(crate) whole: Option<Vec<u8>>,
    pub(crate) facts: Vec<Fact>,
    /// What is told when it is durable.
    pub(crate) events: Vec<Event>,
}

impl UnwrittenEntries {
    /// Takes in what a model said.
    pub(crate) fn say(
        &mut self,
        asking: ModelReservation,
        attempts: Vec<Attempt>,
        answer: &Answer,
        calls: &[Call],
    ) -> Body {
        let body =
            Body::Assistant { parts: answer.parts.clone(), model: answer.candidate.to_string() };
        let intended = |call: &Call| {
            let (id, tool) = (CallId::new(), call.name.clone());
            Intended { id, tool, start: None }
        };
        let calls: Vec<_> = calls.iter().map(intended).collect();
        self.call_ids = calls.iter().map(|call| call.id).collect();
        self.items.push(Item::Said(Said { asking, attempts, body: body.clone(), calls }));
        body
    }

    /// Takes in what came of a call.
    pub(crate) fn land(&mut self, written: Written) {
        self.items.push(Item::Result(written));
    }

    /// Takes in that a call is about to have its effect. One whose message was written down before is
    /// given back.
    pub(crate) fn start(&mut self, id: CallId, start: Start) -> Option<(CallId, Start)> {
        let calls = self.items.iter_mut().filter_map(|item| match item {
            Item::Said(said) => Some(&mut said.calls),
            Item::Result(_) => None,
        });
        match calls.flatten().find(|call| call.id == id) {
            None => Some((id, start)),
            Some(call) => {
                call.start = Some(start);
                None
            }
        }
    }

    /// How many things there are to be written down.
    pub(crate) fn count(&self) -> usize {
        self.items.len()
    }

    /// Whether a model's message is to be written down.
    pub(crate) fn has_message(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Said(_)))
    }

    /// Whether results are to be written down.
    pub(crate) fn has_results(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Result(_)))
    }

    /// Writes it all down, with `more`, which is given the correction of the budgets that is due.
    /// What can be told is told when it is durable.
    pub(crate) fn write<T: Send>(
        &mut self,
        agent: &Agent,
        lease: &Lease,
        place: (SessionId, TurnId),
        observer: Observer<'_>,
        mut more: impl FnMut(&mut WriteTx<'_>, Option<Amount>) -> Result<T> + Send,
    ) -> Result<T> {
        let known = &*self;
        let value = agent.write(|tx| {
            lease.guard(tx)?;
            let mut correction = None;
            let mut seq = if known.items.is_empty() { 0 } else { entry::count(tx, place.0)? };
            for item in &known.items {
                seq += 1;
                match item {
                    Item::Said(said) => correction = Some(said.write(tx, agent, place, seq)?),
                    Item::Result(written) => written.write(tx, place, seq)?,
                }
            }
            more(tx, correction)
        })?;
        for item in self.items.drain(..) {
            if let Item::Result(written) = item {
                written.events.into_iter().for_each(&mut *observer);
            }
        }
        for event in self.later.drain(..) {
            observer(event);
        }
        Ok(value)
    }
}

impl Said {
    /// Writes the message and its calls down; answers the correction of the budgets that is due.
    fn write(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        place: (SessionId, TurnId),
        seq: i64,
    ) -> Result<Amount> {
        entry::insert(tx, place.0, place.1, seq, &self.body)?;
        for (position, call) in self.calls.iter().enumerate() {
            call::intend(tx, place, (seq, position), call)?;
        }
        self.asking.finish(tx, agent, place, &self.attempts)
    }
}

impl Written {
    fn write(
        &self,
        tx: &mut WriteTx<'_>,
        (session, turn): (SessionId, TurnId),
        seq: i64,
    ) -> Result<()> {
        match (&self.whole, &self.body) {
            (Some(bytes), Body::Result { result, facts, fingerprint, .. }) => {
                let body = Body::Result {
                    result: result.clone(),
                    facts: facts.clone(),
                    fingerprint: fingerprint.clone(),
                    whole: Some(tx.put_blob(bytes)?.to_string()),
                };
                entry::insert(tx, session, turn, seq, &body)?;
            }
            (_, body) => entry::insert(tx, session, turn, seq, body)?,
        }
        call::finish(tx, session, self.id, seq)?;
        for fact in &self.facts {
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
                | Fact::Steps { .. }
                | Fact::InDoubt => {}
            }
        }
        Ok(())
    }
}
