//! Taking in what came of a call: what the model will read, the loop guard, the facts.

use mainstay_journal::entry::Body;
use mainstay_message::{CallResult, Content};
use mainstay_tools::{Fact, Outcome, Piece, WholeOutput};

use super::call::CallState;
use super::fingerprint::fingerprint;
use crate::loop_guard::LoopVerdict;
use crate::taint::from_network;
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;
use crate::turn::unwritten::UnwrittenResult;
use crate::{Event, Result, redaction};

/// The longest text that one result may bring into the conversation.
const LONGEST: usize = 100_000;
/// So many results are written at once at most: a transaction is short.
const MOST_UNWRITTEN: usize = 64;

impl TurnRunner<'_> {
    /// Takes in the outcome of a call. Ends the turn if it goes in circles.
    pub(crate) fn record_outcome(
        &mut self,
        index: usize,
        mut outcome: Outcome,
    ) -> std::result::Result<(), TurnStop> {
        let call = &self.calls[index];
        outcome.pieces.extend(call.hook_remarks());
        let print = fingerprint(&outcome);
        let thresholds = call.thresholds(self.session.agent.settings());
        let (name, arguments) = (&call.asked.name, &call.asked.arguments);
        let verdict = self.limits.loop_guard.after(name, arguments, Some(&print), thresholds);
        if let LoopVerdict::Nudge(times) = verdict {
            outcome.pieces.push(Piece::Said(format!(
                "[Mainstay: this is result number {times} of the same call, and it is the same. \
                 Another try will bring nothing new.]"
            )));
            let message = format!("{name} gave the same result {times} times");
            (self.observer)(Event::Notice { about: "loop", message, void: false });
        }
        self.record_result(index, outcome, print)?;
        self.stop_if_stuck(index, verdict)
    }

    /// Tells the model that a call is not run, because it brought the same so often.
    pub(crate) fn record_withheld(
        &mut self,
        index: usize,
        times: u32,
    ) -> std::result::Result<(), TurnStop> {
        let call = &self.calls[index];
        let thresholds = call.thresholds(self.session.agent.settings());
        let (name, arguments) = (&call.asked.name, &call.asked.arguments);
        let verdict = self.limits.loop_guard.after(name, arguments, None, thresholds);
        let outcome = Outcome::failed(format!(
            "[Mainstay: not run. This call gave the same result {times} times in this turn. Do \
             something else, or end your turn and say what is missing.]"
        ));
        self.record_result(index, outcome, String::new())?;
        self.stop_if_stuck(index, verdict)
    }

    fn stop_if_stuck(
        &self,
        index: usize,
        verdict: LoopVerdict,
    ) -> std::result::Result<(), TurnStop> {
        match verdict {
            LoopVerdict::End(times) => Err(TurnStop::Stuck(self.calls[index].repeated(times))),
            LoopVerdict::Go | LoopVerdict::Nudge(_) | LoopVerdict::Withhold(_) => Ok(()),
        }
    }

    /// Takes in what the model will read of a call; the next commit writes it.
    pub(crate) fn record_result(
        &mut self,
        index: usize,
        mut outcome: Outcome,
        fingerprint: String,
    ) -> Result<()> {
        if self.unwritten.count() >= MOST_UNWRITTEN {
            self.commit(|_| Ok(()))?;
        }
        let call = &mut self.calls[index];
        let workspace = &self.session.workplace.workspace;
        outcome.facts.extend(from_network(&outcome.facts, call.known_act(), workspace));
        redaction::outcome(self.session.agent.redactor(), &mut outcome);
        call.state = CallState::Recorded;
        let content = bounded(outcome.content(&nonce()));
        let text: Vec<&str> = content.iter().filter_map(Content::text).collect();
        let mut events = Vec::new();
        if !call.announced {
            // It does not run; whoever reads along still learns what was asked for.
            events.push(call.event());
        }
        events.push(Event::ToolResult {
            id: call.id.to_string(),
            name: call.asked.name.clone(),
            failed: outcome.failed,
            text: text.join("\n"),
        });
        let facts = outcome.facts.iter().filter_map(|fact| serde_json::to_value(fact).ok());
        let body = Body::Result {
            result: CallResult {
                call: call.asked.id.clone(),
                name: call.asked.name.clone(),
                content,
                failed: outcome.failed,
            },
            facts: facts.collect(),
            fingerprint,
            whole: None,
        };
        if outcome.facts.contains(&Fact::InDoubt) {
            let name = &call.asked.name;
            let message = format!("the outcome of {name} is not known; the model is told to check");
            (self.observer)(Event::Notice { about: "in_doubt", message, void: false });
        }
        let id = call.id;
        let WholeOutput { bytes, spooled } = outcome.whole.map(|whole| *whole).unwrap_or_default();
        let whole = match bytes.is_empty() {
            true => None,
            false => self.session.outputs.packed(&self.session.agent, bytes)?,
        };
        self.session.has_processes |=
            outcome.facts.iter().any(|fact| matches!(fact, Fact::Background { .. }));
        self.session.apply_entry(&body);
        self.unwritten.add_result(UnwrittenResult {
            id,
            body,
            whole,
            spooled,
            facts: outcome.facts,
            events,
        });
        Ok(())
    }
}

/// Cuts what no tool should have returned.
fn bounded(content: Vec<Content>) -> Vec<Content> {
    content
        .into_iter()
        .map(|part| match part {
            Content::Text(text) if text.len() > LONGEST => {
                let end = text.floor_char_boundary(LONGEST);
                Content::Text(format!("{}\n[Mainstay: cut here.]", &text[..end]))
            }
            part => part,
        })
        .collect()
}

/// Marks the frame of one result; nobody outside can guess it.
pub(crate) fn nonce() -> String {
    mainstay_store::Id::new().as_str().chars().rev().take(6).collect()
}
