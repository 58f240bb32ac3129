//! Taking a turn over from the process before: its model call, its calls, its counts.

use mainstay_journal::entry::Body;
use mainstay_journal::turn::{self, Outcome, Turn, TurnChoices};
use mainstay_journal::{call, entry};
use mainstay_message::{AssistantPart, Call};
use tokio_util::sync::CancellationToken;

use super::answer::spoken_text;
use super::runner::TurnRunner;
use crate::budget::reservations;
use crate::calls::call::{OpenCalls, ToolCall};
use crate::session::notice::{self, NoticeFact};
use crate::session::open::OpenSession;
use crate::{Event, Observer, Result, budget};

/// Ends a turn that is not over, because something new was asked: what had begun is settled.
pub(crate) async fn abandon_turn(
    session: &mut OpenSession,
    turn: Turn,
    observer: Observer<'_>,
    cancel: &CancellationToken,
) -> Result<()> {
    let mut runner = TurnRunner::new(session, turn, observer, cancel);
    runner.recover(None)?;
    runner.close_calls("something new was asked before it could be run").await?;
    runner.end(Outcome::Interrupted, None)?;
    let message = "the turn before was not finished; what it had begun is recorded".to_owned();
    (runner.observer)(Event::Notice { about: "interrupted", message, void: false });
    Ok(())
}

impl TurnRunner<'_> {
    /// Takes over what the process before left: closes its model call, counts its repeats, takes its
    /// open calls. `choices` are written with it in place of its own. Returns an answer that was
    /// recorded before the turn could be ended.
    pub(crate) fn recover(&mut self, choices: Option<&TurnChoices>) -> Result<Option<String>> {
        let agent = self.session.agent.clone();
        let place = self.turn.place();
        let budgets = agent.settings().budgets;
        let is_child = self.session.lineage.is_child;
        self.commit(|tx| {
            reservations::abandon(tx, place.session)?;
            turn::reopen(tx, place.turn)?;
            if let Some(choices) = choices {
                turn::choose(tx, place.turn, choices)?;
            }
            let parent = budget::of_session(place.session);
            if !is_child {
                budget::open(tx, &parent, None, &budgets.session)?;
            }
            budget::open(tx, &budget::of_turn(place.turn), Some(&parent), &budgets.turn)?;
            Ok(())
        })?;
        if let Some(choices) = choices {
            self.turn.choices = Some(choices.clone());
        }
        self.find_account()?;
        let unended_answer = self.replay_entries()?;
        let open = agent.read(|tx| call::open(tx, place.session))?;
        let calls = open.iter().map(|open| ToolCall::from_record(&agent, open));
        self.calls = OpenCalls::new(calls.collect());
        Ok(unended_answer)
    }

    /// Counts what the turn did before: repeats of calls, and how often hooks sent it on. Returns the
    /// answer it ends with, if one is there.
    fn replay_entries(&mut self) -> Result<Option<String>> {
        let mut entries = std::mem::take(&mut self.session.last_turn.entries);
        if entries.is_empty() {
            // This process worked on the turn before.
            let place = self.turn.place();
            entries = self.session.agent.read(|tx| entry::all(tx, place.session))?;
            entries.retain(|entry| entry.turn == place.turn);
        }
        let mut unended_answer = None;
        let mut asked: Vec<Call> = Vec::new();
        for entry in entries {
            // These change what is shown, not what was said and done.
            if matches!(entry.body, Body::Compaction(_) | Body::Restored { .. }) {
                continue;
            }
            unended_answer = None;
            for fact in notice::facts(&entry.body) {
                match fact {
                    NoticeFact::HookContinued => self.limits.hook_continues += 1,
                    NoticeFact::Recalled { .. } | NoticeFact::Imported => {}
                }
            }
            match entry.body {
                Body::Assistant { parts, .. } => {
                    let before = asked.len();
                    let text = spoken_text(&parts);
                    asked.extend(parts.into_iter().filter_map(|part| match part {
                        AssistantPart::Call(call) => Some(call),
                        AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
                    }));
                    unended_answer = (asked.len() == before).then_some(text);
                }
                Body::Result { result, fingerprint, .. } => {
                    if let Some(call) = asked.iter().find(|call| call.id == result.call) {
                        self.replay_loop_guard(call, &fingerprint);
                    }
                }
                Body::User { .. }
                | Body::Notice { .. }
                | Body::End { .. }
                | Body::Compaction(_)
                | Body::Restored { .. } => {}
            }
        }
        Ok(unended_answer)
    }

    /// Counts a call that has its result. One without a fingerprint was withheld.
    fn replay_loop_guard(&mut self, call: &Call, fingerprint: &str) {
        let agent = &self.session.agent;
        let thresholds = ToolCall::new(agent, call.clone()).thresholds(agent.settings());
        let fingerprint = Some(fingerprint).filter(|print| !print.is_empty());
        self.limits.loop_guard.after(&call.name, &call.arguments, fingerprint, thresholds);
    }
}
