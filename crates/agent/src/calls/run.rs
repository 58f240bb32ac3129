//! Running the calls of a message: prepared, started, run, written down.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use mainstay_journal::CallId;
use mainstay_journal::call::{self, Start};
use mainstay_journal::entry::{self, Body};
use mainstay_message::{AssistantPart, Call, CallResult, Content};
use mainstay_store::{BLOB_LIMIT, Id, WriteTx};
use mainstay_tools::{Fact, Outcome, Piece, Replay, Settled, Waits, Workplace};
use serde_json::Value;
use tokio::time::{timeout, timeout_at};

use crate::agent::blocking;
use crate::budget::{self, Amount};
use crate::calls::call::{CallDecision, ToolCall, fingerprint};
use crate::hooks::Moment;
use crate::hooks::{self, HookReply};
use crate::loop_guard::Verdict;
use crate::session::open::words;
use crate::snapshots::Change;
use crate::taint::from_network;
use crate::turn::ask_model::ModelReservation;
use crate::turn::runner::{TurnRunner, TurnStop, spoken};
use crate::turn::unwritten::Written;
use crate::{Error, Event, Result, approvals::requests, children::delegate_tool, redaction};

/// Time that a tool is given beyond its own limit before the engine ends it.
const SLACK: Duration = Duration::from_secs(10);
/// How long the engine waits for a cancelled call to tell how it ended.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The longest text that one result may bring into the conversation.
const LONGEST: usize = 100_000;
/// So many results are written down at once at most: a transaction is short.
const TOGETHER: usize = 64;

impl TurnRunner<'_> {
    /// Runs every call that flies, group by group. What the last ones brought is known, and written
    /// down by the next commit.
    pub(crate) async fn run_calls(&mut self) -> std::result::Result<(), TurnStop> {
        while !self.flying.is_empty() {
            let group = self.before_calls(self.next_group()).await?;
            let steps: Vec<CallDecision> =
                group.iter().map(|pending| pending.step(self.work, &self.guard)).collect();
            let mut running = Vec::new();
            for (mut pending, step) in group.into_iter().zip(steps) {
                match step {
                    CallDecision::Run => {
                        // One that was started keeps the plan of that time: a new one would take
                        // its own effect for what was there before.
                        if pending.started_at.is_none() {
                            pending.plan = self.plan(&pending).await?;
                        }
                        running.push((pending, CallDecision::Run));
                    }
                    CallDecision::Settle => running.push((pending, CallDecision::Settle)),
                    CallDecision::Refuse(outcome) => self.finish(&pending, outcome)?,
                    CallDecision::Withhold(times) => self.withhold(&pending, times)?,
                    CallDecision::Ask(doubt) => match self.decided(&pending, &doubt).await? {
                        (CallDecision::Refuse(outcome), _) => self.finish(&pending, outcome)?,
                        (_, approval) => {
                            pending.approval = approval;
                            pending.plan = self.plan(&pending).await?;
                            running.push((pending, CallDecision::Run));
                        }
                    },
                    CallDecision::Question(text, choices) => {
                        let answer = self.answered_by_person(&pending, &text, &choices).await?;
                        self.finish(&pending, answer)?;
                    }
                    CallDecision::End(reason) => return Err(TurnStop::Stuck(reason)),
                }
            }
            self.save(&running).await?;
            while !self.start(&running)? {
                self.save(&running).await?;
            }
            self.run_group(running).await?;
        }
        Ok(())
    }

    /// The next calls that may run beside each other.
    fn next_group(&self) -> Vec<ToolCall> {
        let mut group: Vec<ToolCall> = Vec::new();
        for pending in &self.flying {
            let together = pending.may_run_beside_others()
                && group.iter().all(ToolCall::may_run_beside_others);
            if !group.is_empty() && !together {
                break;
            }
            group.push(pending.clone());
        }
        group
    }

    /// What must be known of a call before it starts. Cancelled like the call itself.
    async fn plan(&mut self, pending: &ToolCall) -> std::result::Result<Option<Value>, TurnStop> {
        let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) else {
            return Ok(None);
        };
        let session = self.work.id.to_string();
        let call = pending.invocation(&session, arguments, &self.work.workplace);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(TurnStop::Cancelled),
            planned = timeout_at(self.deadline, tool.plan(call)) => Ok(planned.ok().flatten()),
        }
    }

    /// Saves what these calls are about to change. A child that goes on changes more than it did
    /// before its parent was parked.
    async fn save(
        &mut self,
        running: &[(ToolCall, CallDecision)],
    ) -> std::result::Result<(), TurnStop> {
        for (pending, step) in running {
            let begins = matches!(step, CallDecision::Run) && pending.started_at.is_none();
            if begins
                || (matches!(step, CallDecision::Settle)
                    && pending.call.name == delegate_tool::NAME)
            {
                self.save_before(pending).await?;
            }
        }
        Ok(())
    }

    async fn save_before(&mut self, pending: &ToolCall) -> std::result::Result<(), TurnStop> {
        let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) else {
            return Ok(());
        };
        let act = pending.act(tool, arguments, self.work);
        let workplace = self.work.workplace.clone();
        let parts = self.work.agent.parts.clone();
        let change = Change {
            store: &parts.store,
            session: self.work.id,
            call: pending.id,
            act,
            // A hook after the call may change more than the call itself.
            hooked: parts.settings.hooks.any(Moment::PostToolUse),
            workplace: &workplace,
            limits: &parts.settings.snapshots,
        };
        let words = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
            saved = self.work.snapshots.before(change) => saved?,
        };
        if let Some(message) = words {
            (self.observer)(Event::Notice { about: "snapshot", message, void: false });
        }
        Ok(())
    }

    /// Writes down that calls are about to have their effect. With a new message the next question
    /// is reserved too, so that it can be asked the moment the results are there. Answers false where
    /// what they change has to be saved again first.
    fn start(&mut self, running: &[(ToolCall, CallDecision)]) -> Result<bool> {
        let starting = running.iter().filter(|(_, step)| matches!(step, CallDecision::Run));
        let starting: Vec<_> = starting.map(|(pending, _)| pending).collect();
        let saved = self.work.snapshots.pending();
        if !starting.is_empty() || saved.is_some() {
            let session = self.work.id.to_string();
            for pending in &starting {
                if let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) {
                    let call = pending.invocation(&session, arguments, &self.work.workplace);
                    tool.prepare(call, pending.plan.as_ref());
                }
            }
            // Those of the message that is about to be written down are written with it.
            let of_before: Vec<(CallId, Start)> = starting
                .iter()
                .filter_map(|pending| {
                    let plan = pending.plan.as_ref().map(Value::to_string);
                    let input = pending.changed_input();
                    self.known.start(pending.id, Start { plan, input })
                })
                .collect();
            let approvals: Vec<Id> =
                starting.iter().filter_map(|pending| pending.approval).collect();
            let agent = self.work.agent.clone();
            let (place, account) = (self.place(), self.account.clone());
            let next = self.known.has_message().then(|| ModelReservation {
                id: Id::new(),
                reserved: self.work.sizes.reservation(&agent, self.flying.len()),
            });
            let begun = self.commit_with(|tx, correction| {
                if let Some(saved) = &saved {
                    saved.write(tx, place)?;
                }
                for (id, start) in &of_before {
                    call::start(tx, place.0, *id, start)?;
                }
                for approval in &approvals {
                    requests::spend(tx, *approval)?;
                }
                let correction = correction.unwrap_or_default();
                let reserved = match &next {
                    Some(next) => {
                        ModelReservation::begin(tx, &agent, &account, place, next, &correction)?
                    }
                    None => {
                        budget::correct(tx, &account, &correction)?;
                        Ok(())
                    }
                };
                Ok((tx.now(), reserved))
            });
            let (now, reserved) = match begun {
                Err(Error::SnapshotsSwept) => {
                    self.work.snapshots.doubt();
                    return Ok(false);
                }
                begun => begun?,
            };
            if let Some(saved) = &saved {
                self.work.snapshots.written(saved);
            }
            // One that could not be reserved is tried again when it is due, and then told.
            if reserved.is_ok()
                && let Some(next) = next
            {
                self.next = Some(next);
            }
            for (pending, _) in running {
                if let Some(flying) = self.flying.iter_mut().find(|other| other.id == pending.id) {
                    flying.plan.clone_from(&pending.plan);
                    flying.started_at.get_or_insert(now);
                }
            }
        }
        Ok(true)
    }

    /// Runs calls beside each other and takes in their outcomes as they come.
    async fn run_group(
        &mut self,
        running: Vec<(ToolCall, CallDecision)>,
    ) -> std::result::Result<(), TurnStop> {
        if self.cancel.is_cancelled() {
            return Err(TurnStop::Cancelled);
        }
        let mut waits = None;
        let mut flights: FuturesUnordered<_> = running
            .iter()
            .map(|(pending, step)| {
                let (workplace, session) = (self.work.workplace.clone(), self.work.id.to_string());
                let hooks = self.work.agent.parts.settings.hooks.clone();
                let cancel = self.cancel;
                async move {
                    let mut landed = match step {
                        CallDecision::Settle => settle(pending, &workplace, &session).await,
                        _ => CallEnd::Done(fly(pending, &workplace, &session).await),
                    };
                    let heard = match &mut landed {
                        CallEnd::Done(outcome) => {
                            let place = (session.as_str(), &*workplace);
                            hooks::after_call(&hooks, pending, outcome, place, cancel).await
                        }
                        _ => HookReply::default(),
                    };
                    (pending, landed, heard)
                }
            })
            .collect();
        // All begin, and then it is told that they do: telling takes its time.
        let mut early = VecDeque::new();
        while let Some(Some(landed)) = flights.next().now_or_never() {
            early.push_back(landed);
        }
        for (pending, _) in &running {
            (self.observer)(pending.event());
            self.told.push(pending.id);
        }
        loop {
            let landed = match early.pop_front() {
                Some(landed) => Ok(Some(landed)),
                None => tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => {
                        // What has its outcome and waits for hooks only is done.
                        while let Some(Some((pending, landed, _))) = flights.next().now_or_never() {
                            if let CallEnd::Done(outcome) = landed {
                                self.finish(pending, outcome)?;
                            }
                        }
                        return Err(TurnStop::Cancelled);
                    }
                    landed = timeout_at(self.deadline, flights.next()) => landed,
                },
            };
            let (pending, landed, heard) = match landed {
                Ok(Some(landed)) => landed,
                Ok(None) => return waits.map_or(Ok(()), Err),
                Err(_) => {
                    drop(flights);
                    self.close_calls("the turn's time was over").await?;
                    return Ok(());
                }
            };
            hooks::tell(self.observer, heard.notices);
            match landed {
                // The others go on until they have an end or wait too.
                CallEnd::Done(Outcome { waits: Some(Waits { reason, resume_at }), .. }) => {
                    waits.get_or_insert(TurnStop::Parked { reason, resume_at });
                }
                CallEnd::Done(outcome) => {
                    self.finish(pending, outcome)?;
                    if let Some(reason) = heard.halt {
                        return Err(TurnStop::Stopped(reason));
                    }
                    // The last one is written down together with what comes next.
                    if !flights.is_empty() || !early.is_empty() {
                        self.commit(|_| Ok(()))?;
                    }
                }
                // It never ran: it comes back as a call like any other.
                CallEnd::NotStarted => self.put_back(pending),
                CallEnd::InDoubt(words) => {
                    self.finish(pending, in_doubt(pending.started_at, &words))?;
                }
            }
        }
    }

    fn put_back(&mut self, pending: &ToolCall) {
        if let Some(flying) = self.flying.iter_mut().find(|flying| flying.id == pending.id) {
            (flying.started_at, flying.plan) = (None, None);
        }
    }

    /// Takes in the outcome of a call.
    fn finish(
        &mut self,
        pending: &ToolCall,
        mut outcome: Outcome,
    ) -> std::result::Result<(), TurnStop> {
        outcome.pieces.extend(pending.hook_words());
        let print = fingerprint(&outcome);
        let thresholds = pending.thresholds(&self.work.agent.parts.settings);
        let verdict =
            self.guard.after(&pending.call.name, &pending.call.arguments, Some(&print), thresholds);
        if let Verdict::Nudge(times) = verdict {
            outcome.pieces.push(Piece::Said(format!(
                "[Mainstay: this is result number {times} of the same call, and it is the same. \
                 Another try will bring nothing new.]"
            )));
            let message = format!("{} gave the same result {times} times", pending.call.name);
            (self.observer)(Event::Notice { about: "loop", message, void: false });
        }
        self.land(pending, outcome, print)?;
        match verdict {
            Verdict::End(times) => Err(TurnStop::Stuck(pending.in_circles(times))),
            _ => Ok(()),
        }
    }

    /// Tells the model that a call is not run, because it brought the same so often.
    fn withhold(&mut self, pending: &ToolCall, times: u32) -> std::result::Result<(), TurnStop> {
        let thresholds = pending.thresholds(&self.work.agent.parts.settings);
        let (name, arguments) = (&pending.call.name, &pending.call.arguments);
        let verdict = self.guard.after(name, arguments, None, thresholds);
        let outcome = Outcome::failed(format!(
            "[Mainstay: not run. This call gave the same result {times} times in this turn. Do \
             something else, or end your turn and say what is missing.]"
        ));
        self.land(pending, outcome, String::new())?;
        match verdict {
            Verdict::End(times) => Err(TurnStop::Stuck(pending.in_circles(times))),
            _ => Ok(()),
        }
    }

    /// Takes in what the model will read of a call.
    fn land(
        &mut self,
        pending: &ToolCall,
        mut outcome: Outcome,
        fingerprint: String,
    ) -> Result<()> {
        outcome.facts.extend(from_network(
            &outcome.facts,
            pending.act.get().map(Arc::as_ref),
            &self.work.workplace.workspace,
        ));
        redaction::outcome(&self.work.agent.parts.settings.redactor, &mut outcome);
        if self.known.count() >= TOGETHER {
            self.commit(|_| Ok(()))?;
        }
        self.flying.retain(|flying| flying.id != pending.id);
        let nonce = nonce();
        let content = bounded(outcome.content(&nonce));
        let text: Vec<&str> = content.iter().filter_map(Content::text).collect();
        let mut events = Vec::new();
        match self.told.iter().position(|told| *told == pending.id) {
            Some(place) => drop(self.told.swap_remove(place)),
            // It does not run; whoever reads along still learns what was asked for.
            None => events.push(pending.event()),
        }
        events.push(Event::ToolResult {
            id: pending.id.to_string(),
            name: pending.call.name.clone(),
            failed: outcome.failed,
            text: text.join("\n"),
        });
        let facts = outcome.facts.iter().filter_map(|fact| serde_json::to_value(fact).ok());
        let body = Body::Result {
            result: CallResult {
                call: pending.call.id.clone(),
                name: pending.call.name.clone(),
                content,
                failed: outcome.failed,
            },
            facts: facts.collect(),
            fingerprint,
            whole: None,
        };
        if outcome.facts.contains(&Fact::InDoubt) {
            let name = &pending.call.name;
            let message = format!("the outcome of {name} is not known; the model is told to check");
            (self.observer)(Event::Notice { about: "in_doubt", message, void: false });
        }
        if outcome.facts.iter().any(|fact| matches!(fact, Fact::Background { .. })) {
            self.work.has_processes = true;
        }
        self.work.take_in(&body);
        self.known.land(Written {
            id: pending.id,
            body,
            whole: outcome.whole.map(storable),
            facts: outcome.facts,
            events,
        });
        Ok(())
    }

    /// Gives every call that flies an outcome: what had begun tells how far it came, the rest is not
    /// run, for this reason.
    pub(crate) async fn close_calls(&mut self, why: &str) -> Result<()> {
        let (workplace, session) = (self.work.workplace.clone(), self.work.id.to_string());
        for pending in std::mem::take(&mut self.flying) {
            let pure = pending.traits().is_some_and(|traits| traits.replay == Replay::Pure);
            let outcome = if pending.started_at.is_some() && !pure {
                match last_words(&pending, &workplace, &session).await {
                    CallEnd::Done(outcome) => outcome,
                    CallEnd::NotStarted => not_run(why),
                    CallEnd::InDoubt(words) => in_doubt(pending.started_at, &words),
                }
            } else {
                not_run(why)
            };
            let print = fingerprint(&outcome);
            self.land(&pending, outcome, print)?;
        }
        Ok(())
    }

    /// Counts the calls that the turn made before this process.
    pub(crate) fn recount(&mut self) -> Result<()> {
        let settings = self.work.agent.parts.settings.clone();
        if self.work.recent.is_empty() {
            // This process worked on the turn before.
            let (session, turn) = self.place();
            let store = &self.work.agent.parts.store;
            let entries = blocking(|| store.read(|tx| entry::all(tx, session)))?;
            self.work.recent = entries.into_iter().filter(|entry| entry.turn == turn).collect();
        }
        let mut asked: Vec<Call> = Vec::new();
        for entry in std::mem::take(&mut self.work.recent) {
            // These change what is shown, not what was said and done.
            if matches!(entry.body, Body::Compaction(_) | Body::Restored { .. }) {
                continue;
            }
            self.unended = match &entry.body {
                Body::Assistant { parts, .. }
                    if !parts.iter().any(|part| matches!(part, AssistantPart::Call(_))) =>
                {
                    Some(words(parts))
                }
                _ => None,
            };
            match entry.body {
                Body::Assistant { parts, .. } => {
                    asked.extend(parts.into_iter().filter_map(|part| match part {
                        AssistantPart::Call(call) => Some(call),
                        _ => None,
                    }));
                }
                Body::Result { result, fingerprint, .. } => {
                    let Some(call) = asked.iter().find(|call| call.id == result.call) else {
                        continue;
                    };
                    let pending = ToolCall::new(&self.work.agent, call.clone());
                    let thresholds = pending.thresholds(&settings);
                    // One without a fingerprint was withheld.
                    let print = Some(fingerprint.as_str()).filter(|print| !print.is_empty());
                    self.guard.after(&call.name, &call.arguments, print, thresholds);
                }
                Body::Notice { text } if hooks::sends_on(&text) => self.stops += 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Commits what is known, and more, which is given the correction of the budgets that is due.
    pub(crate) fn commit_with<T: Send>(
        &mut self,
        more: impl FnMut(&mut WriteTx<'_>, Option<Amount>) -> Result<T> + Send,
    ) -> Result<T> {
        let agent = self.work.agent.clone();
        let place = self.place();
        self.known.write(&agent, &self.work.lease, place, self.observer, more)
    }
}

/// How a flight ended.
enum CallEnd {
    Done(Outcome),
    NotStarted,
    InDoubt(String),
}

/// Runs a call within its limit.
async fn fly(pending: &ToolCall, workplace: &Arc<Workplace>, session: &str) -> Outcome {
    let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) else {
        return Outcome::failed("Nothing was done.");
    };
    let wall = tool.traits().wall;
    let call = pending.invocation(session, arguments, workplace);
    match timeout(wall.saturating_add(SLACK), tool.run(call, pending.plan.as_ref())).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::failed(format!(
            "The call was ended after {}. It may have had a part of its effect.",
            spoken(wall)
        )),
    }
}

/// Finds out how a call ended that was started.
async fn settle(pending: &ToolCall, workplace: &Arc<Workplace>, session: &str) -> CallEnd {
    let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) else {
        return CallEnd::InDoubt(String::new());
    };
    let call = pending.invocation(session, arguments, workplace);
    match tool.settle(call, pending.plan.as_ref()).await {
        Settled::Done(outcome) => CallEnd::Done(outcome),
        Settled::NotStarted => CallEnd::NotStarted,
        Settled::Unknown(words) => CallEnd::InDoubt(words),
    }
}

/// Finds out how a call ended that is not waited for any longer.
async fn last_words(pending: &ToolCall, workplace: &Arc<Workplace>, session: &str) -> CallEnd {
    if let Some(outcome) = abandon(pending, workplace, session).await {
        return CallEnd::Done(outcome);
    }
    // A wait that is given up ends what it waited for; then there is an end to be told.
    for _ in 0..2 {
        if let Ok(landed) = timeout(LAST_WORDS, settle(pending, workplace, session)).await {
            return landed;
        }
    }
    CallEnd::InDoubt(String::new())
}

/// Ends a call that is not waited for any longer, where its tool can.
async fn abandon(pending: &ToolCall, workplace: &Arc<Workplace>, session: &str) -> Option<Outcome> {
    let (Some(tool), Ok(arguments)) = (&pending.tool, &pending.arguments) else { return None };
    let call = pending.invocation(session, arguments, workplace);
    timeout(2 * LAST_WORDS, tool.abandon(call)).await.ok().flatten()
}

fn in_doubt(started_at: Option<i64>, words: &str) -> Outcome {
    let minutes = started_at.unwrap_or(0).div_euclid(60_000).rem_euclid(24 * 60);
    let known = if words.is_empty() { String::new() } else { format!(" {words}") };
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

/// All of an output, as much of it as the store takes.
fn storable(mut whole: Vec<u8>) -> Vec<u8> {
    const CUT: &[u8] = b"\n[Mainstay: cut here.]";
    if whole.len() > BLOB_LIMIT {
        whole.truncate(BLOB_LIMIT - CUT.len());
        whole.extend_from_slice(CUT);
    }
    whole
}

/// Marks the frame of one result; nobody outside can guess it.
pub(crate) fn nonce() -> String {
    mainstay_store::Id::new().as_str().chars().rev().take(6).collect()
}
