//! How a call ended that nobody waited for: one that was started before, or is given up now.

use std::sync::Arc;
use std::time::Duration;

use mainstay_tools::{Fact, Outcome, Replay, Settled, Workplace};
use tokio::time::timeout;

use super::call::RunnableCall;
use crate::Result;
use crate::calls::fingerprint::fingerprint;
use crate::turn::runner::TurnRunner;

/// How long the engine waits for a call that is given up to tell how it ended.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How a call ended.
pub(crate) enum CallEnd {
    /// With an outcome.
    Done(Outcome),
    /// It was written down that it starts, and it never ran.
    NeverRan,
    /// Nobody knows; this is what is known.
    Unknown(String),
}

impl TurnRunner<'_> {
    /// Gives every open call a result: what had begun tells how far it came, the rest is not run, for
    /// this reason.
    pub(crate) async fn close_calls(&mut self, why: &str) -> Result<()> {
        let (workplace, session) = (self.session.workplace.clone(), self.session.id.to_string());
        for index in 0..self.calls.len() {
            let call = &self.calls[index];
            if call.is_recorded() {
                continue;
            }
            let pure = call.traits().is_some_and(|traits| traits.replay == Replay::Pure);
            let started_at = call.started_at.filter(|_| !pure);
            let outcome = match (started_at, call.runnable()) {
                (None, _) => not_run(why),
                (started_at, None) => outcome_unknown(started_at, ""),
                (started_at, Some(runnable)) => {
                    match give_up(&runnable, &workplace, &session).await {
                        CallEnd::Done(outcome) => outcome,
                        CallEnd::NeverRan => not_run(why),
                        CallEnd::Unknown(known) => outcome_unknown(started_at, &known),
                    }
                }
            };
            let print = fingerprint(&outcome);
            self.record_result(index, outcome, print)?;
        }
        Ok(())
    }
}

/// Finds out how a call ended that was started.
pub(crate) async fn settle(
    call: &RunnableCall,
    workplace: &Arc<Workplace>,
    session: &str,
) -> CallEnd {
    match call.tool.settle(call.invocation(session, workplace), call.plan()).await {
        Settled::Done(outcome) => CallEnd::Done(outcome),
        Settled::NotStarted => CallEnd::NeverRan,
        Settled::Unknown(known) => CallEnd::Unknown(known),
    }
}

/// Ends a call that is not waited for any longer, and finds out how it ended.
async fn give_up(call: &RunnableCall, workplace: &Arc<Workplace>, session: &str) -> CallEnd {
    let abandoning = call.tool.abandon(call.invocation(session, workplace));
    if let Ok(Some(outcome)) = timeout(2 * LAST_WORDS, abandoning).await {
        return CallEnd::Done(outcome);
    }
    // A wait that is given up ends what it waited for; then there is an end to be told.
    for _ in 0..2 {
        if let Ok(end) = timeout(LAST_WORDS, settle(call, workplace, session)).await {
            return end;
        }
    }
    CallEnd::Unknown(String::new())
}

/// What the model reads of a call of which nobody knows how it ended.
pub(crate) fn outcome_unknown(started_at: Option<i64>, known: &str) -> Outcome {
    let minutes = started_at.unwrap_or(0).div_euclid(60_000).rem_euclid(24 * 60);
    let known = if known.is_empty() { String::new() } else { format!(" {known}") };
    Outcome::failed(format!(
        "[Mainstay: outcome unknown. This call was started at {:02}:{:02} UTC and did not report \
         back.{known} It may have had its effect, wholly or in part; check before repeating it.]",
        minutes / 60,
        minutes % 60
    ))
    .fact(Fact::InDoubt)
}

fn not_run(why: &str) -> Outcome {
    Outcome::failed(format!("[Mainstay: not run: {why}.]"))
}
