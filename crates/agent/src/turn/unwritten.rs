//! What happened in a turn and is not in the store yet. The conversation has it already.

use std::path::PathBuf;

use mainstay_journal::CallId;
use mainstay_journal::call::{Intended, Start};
use mainstay_journal::entry::Body;
use mainstay_journal::model_call::Attempt;
use mainstay_store::PackedBlob;
use mainstay_tools::Fact;

use super::reserve::ModelReservation;
use crate::Event;
use crate::calls::call::ToolCall;

/// What happened in a turn and is not in the store yet, in the order in which it happened.
#[derive(Default)]
pub(crate) struct UnwrittenEntries {
    pub(super) items: Vec<Unwritten>,
    /// What faces are told when all of it is durable, after the results.
    pub(crate) events_after_commit: Vec<Event>,
}

pub(super) enum Unwritten {
    Message(UnwrittenMessage),
    Result(UnwrittenResult),
}

/// A model's message as it will be written.
pub(super) struct UnwrittenMessage {
    pub(super) reservation: ModelReservation,
    pub(super) attempts: Vec<Attempt>,
    pub(super) body: Body,
    /// The calls it asks for.
    pub(super) calls: Vec<Intended>,
}

/// A result as it will be written.
pub(crate) struct UnwrittenResult {
    pub(crate) id: CallId,
    pub(crate) body: Body,
    /// All of the output, where the result shows a part.
    pub(crate) whole: Option<PackedBlob>,
    /// The keeper's file of it, which goes when the result is durable.
    pub(crate) spooled: Option<PathBuf>,
    pub(crate) facts: Vec<Fact>,
    /// What faces are told when it is durable.
    pub(crate) events: Vec<Event>,
}

impl UnwrittenEntries {
    /// Takes in what a model said, and the calls it asks for.
    pub(crate) fn add_message(
        &mut self,
        reservation: ModelReservation,
        attempts: Vec<Attempt>,
        body: Body,
        calls: &[ToolCall],
    ) {
        let intended =
            |call: &ToolCall| Intended { id: call.id, tool: call.asked.name.clone(), start: None };
        let calls = calls.iter().map(intended).collect();
        let message = UnwrittenMessage { reservation, attempts, body, calls };
        self.items.push(Unwritten::Message(message));
    }

    /// Takes in what came of a call.
    pub(crate) fn add_result(&mut self, result: UnwrittenResult) {
        self.items.push(Unwritten::Result(result));
    }

    /// Takes in that a call is about to have its effect. Gives it back if the call's message is in the
    /// store already: then the start is written by itself.
    pub(crate) fn start(&mut self, id: CallId, start: Start) -> Option<(CallId, Start)> {
        let calls = self.items.iter_mut().filter_map(|item| match item {
            Unwritten::Message(message) => Some(&mut message.calls),
            Unwritten::Result(_) => None,
        });
        match calls.flatten().find(|call| call.id == id) {
            None => Some((id, start)),
            Some(call) => {
                call.start = Some(start);
                None
            }
        }
    }

    /// How many entries there are to write.
    pub(crate) fn count(&self) -> usize {
        self.items.len()
    }

    /// Whether a model's message is to be written.
    pub(crate) fn has_message(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Unwritten::Message(_)))
    }

    /// Whether results are to be written.
    pub(crate) fn has_results(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Unwritten::Result(_)))
    }
}

#[cfg(test)]
mod tests {
    use mainstay_store::Id;
    use serde_json::json;

    use super::*;
    use crate::Settings;
    use crate::budget::Amount;
    use crate::test_session::TestSession;

    fn start(plan: &str) -> Start {
        Start { plan: Some(plan.to_owned()), input: None }
    }

    #[test]
    fn a_start_goes_with_its_message_or_is_given_back_if_that_is_written() {
        let test = TestSession::new(Settings::default());
        let calls = ["shell", "read_file"].map(|tool| test.call(tool, &json!({})));
        let written = test.call("shell", &json!({}));
        let mut unwritten = UnwrittenEntries::default();
        let reservation = ModelReservation { id: Id::new(), amount: Amount::default() };
        let body = Body::Assistant { parts: Vec::new(), model: "local/m".to_owned() };
        unwritten.add_message(reservation, Vec::new(), body, &calls);
        assert!(unwritten.has_message() && !unwritten.has_results());

        assert!(unwritten.start(calls[1].id, start("second")).is_none());
        let given_back = unwritten.start(written.id, start("written"));
        assert_eq!(
            given_back.map(|(id, start)| (id, start.plan)),
            Some((written.id, start("written").plan))
        );
        let [Unwritten::Message(message)] = unwritten.items.as_slice() else {
            panic!("{} items", unwritten.count());
        };
        let plans: Vec<Option<&str>> = message
            .calls
            .iter()
            .map(|call| call.start.as_ref().and_then(|start| start.plan.as_deref()))
            .collect();
        assert_eq!(plans, [None, Some("second")]);
    }
}
