//! Child sessions: what a turn gives away is a session of its own, named like the call that began it.
//!
//! So nobody has to remember which child belongs to which call, and a child begins once: after a crash
//! the call finds its session in the record, goes on with it, and takes its answer in when it has one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_journal::{SessionId, session, turn};
use mainstay_message::Content;
use mainstay_store::Acquired;
use mainstay_tools::{Outcome, Waits};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Opened};
use crate::approvals::asker::Asker;
use crate::budget::{self, Limits};
use crate::session::open::{OpenSession, Parent};
use crate::session::submit::Input;
use crate::turn::end::{TurnEnding, TurnReport};
use crate::{Error, Result};
use mainstay_store::lock;

/// How often it is looked whether another process has let a child go.
const LOOK: Duration = Duration::from_millis(100);

/// The children that this process works on.
#[derive(Default)]
pub(crate) struct Children {
    running: Mutex<HashMap<SessionId, RunningChild>>,
    /// Room for those that stand at the same depth. One that waits for its own children must not take
    /// their room.
    room: Mutex<HashMap<usize, Arc<Semaphore>>>,
    /// Who is asked on behalf of a session, and of its children.
    askers: Mutex<HashMap<SessionId, Arc<dyn Asker>>>,
}

/// A child that this process works on.
#[derive(Clone)]
pub(crate) struct RunningChild {
    pub(crate) cancel: CancellationToken,
    end: watch::Receiver<Option<Outcome>>,
}

/// What a child is to do.
#[derive(Clone, Debug)]
pub(crate) struct ChildTask {
    /// The child, named like the call.
    pub(crate) id: SessionId,
    /// The session that began it.
    pub(crate) parent: SessionId,
    pub(crate) workspace: PathBuf,
    pub(crate) task: String,
    /// What it may spend, in millionths of a dollar.
    pub(crate) money: Option<i64>,
}

/// A child on the list of those that this process works on, until its task ends in whatever way.
struct ListedChild {
    children: Arc<Children>,
    id: SessionId,
}

impl Drop for ListedChild {
    fn drop(&mut self) {
        self.children.gone(self.id);
        lock(&self.children.running).remove(&self.id);
    }
}

impl RunningChild {
    /// What came of it.
    pub(crate) async fn outcome(mut self) -> Outcome {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_default(),
            Err(_) => Outcome::failed("The helper was lost. Its session has what it did."),
        }
    }
}

impl Children {
    /// The child of a call, if this process works on it.
    pub(crate) fn running(&self, id: SessionId) -> Option<RunningChild> {
        lock(&self.running).get(&id).cloned()
    }

    /// Begins a child or goes on with it, unless this process does already. `cancel` ends it.
    pub(crate) fn start(agent: &Agent, task: ChildTask, cancel: CancellationToken) -> RunningChild {
        let children = &agent.parts.children;
        let mut running = lock(&children.running);
        if let Some(running) = running.get(&task.id) {
            return running.clone();
        }
        let (sender, end) = watch::channel(None);
        let child = RunningChild { cancel: cancel.clone(), end };
        running.insert(task.id, child.clone());
        drop(running);
        let agent = agent.clone();
        let listed = ListedChild { children: children.clone(), id: task.id };
        tokio::spawn(async move {
            let outcome = carry_out(&agent, &task, &cancel).await;
            let outcome = outcome.unwrap_or_else(|error| outcome_of_error(&error));
            // Whoever hears of its end may start it again.
            drop(listed);
            let _ = sender.send(Some(outcome));
        });
        child
    }

    /// Remembers who is asked on behalf of a session.
    pub(crate) fn asked_here(&self, session: SessionId, asker: Arc<dyn Asker>) {
        lock(&self.askers).insert(session, asker);
    }

    /// Nobody is asked any more on behalf of a session.
    pub(crate) fn gone(&self, session: SessionId) {
        lock(&self.askers).remove(&session);
    }

    fn asker_of(&self, session: SessionId) -> Option<Arc<dyn Asker>> {
        lock(&self.askers).get(&session).cloned()
    }

    fn room(&self, depth: usize, most: usize) -> Arc<Semaphore> {
        let mut room = lock(&self.room);
        room.entry(depth).or_insert_with(|| Arc::new(Semaphore::new(most.max(1)))).clone()
    }
}

/// Works on a child until its turn is over or has to wait.
async fn carry_out(agent: &Agent, task: &ChildTask, cancel: &CancellationToken) -> Result<Outcome> {
    let parent = budget::of_session(task.parent);
    let depth = agent.read(|tx| budget::ancestry(tx, &parent))?.len();
    let room = agent.parts.children.room(depth, agent.settings().children);
    let _place = tokio::select! {
        biased;
        // A child that has begun is opened even so: its end has to be written.
        () = cancel.cancelled(), if !exists(agent, task.id)? => return Ok(not_begun()),
        place = room.acquire_owned() => place,
    };
    let mut session = loop {
        match agent.open_child(task)? {
            Opened::Got(session) => break session,
            Opened::Held(_) => tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(held_elsewhere(task.id)),
                () = tokio::time::sleep(LOOK) => {}
            },
        }
    };
    if let Some(asker) = agent.parts.children.asker_of(task.parent) {
        session.ask_here(asker);
    }
    let input =
        Input { content: vec![Content::Text(task.task.clone())], key: Some(task.id.to_string()) };
    let told = session.turn(&input, &mut |_| {}, cancel).await.map(|ended| {
        let mut outcome = child_outcome(session.id(), &ended);
        // What tainted the child is in its answer.
        outcome.facts.extend(session.origins().facts());
        outcome
    });
    // What it started in the background is ended, also if the turn failed.
    let left = session.leave().await;
    let outcome = told?;
    left?;
    Ok(outcome)
}

fn exists(agent: &Agent, id: SessionId) -> Result<bool> {
    Ok(agent.read(|tx| session::get(tx, id))?.is_some())
}

/// What the parent's model reads of a child.
fn child_outcome(id: SessionId, ended: &TurnReport) -> Outcome {
    let failed = |words: String| {
        let outcome = Outcome::failed(words);
        if ended.answer.is_empty() { outcome } else { outcome.data(&ended.answer) }
    };
    match &ended.ending {
        TurnEnding::Over(turn::Outcome::Answered, _) => {
            Outcome::said(format!("The helper answered (session {id}).")).data(&ended.answer)
        }
        TurnEnding::Over(turn::Outcome::Cancelled, _) => {
            failed(format!("The helper was stopped (session {id})."))
        }
        TurnEnding::Over(how, reason) => {
            let reason = reason.as_deref().unwrap_or(how.as_str());
            failed(format!("The helper did not finish (session {id}): {reason}"))
        }
        TurnEnding::Parked(parked) => {
            Outcome { waits: Some(Waits { reason: parked.text.clone() }), ..Outcome::default() }
        }
    }
}

fn not_begun() -> Outcome {
    Outcome::failed("The helper was stopped before it began. Nothing was done.")
}

fn held_elsewhere(id: SessionId) -> Outcome {
    Outcome::failed(format!(
        "Another process runs the helper, and it was not stopped (session {id}). What it does is in \
         its session."
    ))
}

/// The outcome of an error. The parent waits, and takes the child up again when it is resumed.
fn outcome_of_error(error: &Error) -> Outcome {
    match error {
        Error::TooDeep(_) => Outcome::failed(
            "Helpers cannot be nested any deeper. Nothing was started; do the task yourself.",
        ),
        error => Outcome {
            waits: Some(Waits { reason: format!("a helper could not continue: {error}") }),
            ..Outcome::default()
        },
    }
}

impl Agent {
    /// Takes a child up, which begins if it has not.
    fn open_child(&self, task: &ChildTask) -> Result<Opened> {
        let lease = match self.lease(task.id)? {
            Acquired::Got(lease) => lease,
            Acquired::Held(holder) => return Ok(Opened::Held(holder)),
        };
        if exists(self, task.id)? {
            return Ok(Opened::Got(Box::new(OpenSession::load(self.clone(), task.id, lease)?)));
        }
        let (prompt, above, left) = self.read(|tx| -> Result<_> {
            let unknown = || mainstay_store::Error::UnknownId {
                what: "session".to_owned(),
                typed: task.parent.to_string(),
            };
            let row = session::get(tx, task.parent)?.ok_or_else(unknown)?;
            let above = turn::last(tx, task.parent)?.ok_or_else(unknown)?;
            let above = budget::of_turn(above.id);
            let left = budget::left(tx, &above)?;
            Ok((session::prompt(tx, &row)?, above, left))
        })?;
        let prompt = format!("{}\n\n{ROLE}\n", prompt.trim_end());
        let mut session = OpenSession::fresh(self.clone(), task.id, &task.workspace, prompt, lease);
        let limits = slice(left, task.money);
        session.lineage.parent = Some(Parent { session: task.parent, budget: above, limits });
        Ok(Opened::Got(Box::new(session)))
    }
}

/// What a child is told about itself.
const ROLE: &str = "You are a helper: the task comes from another agent, who sees nothing but your \
                    last message. Put everything that matters into it.";

/// What a child may spend: half of what its parent has left, so that the parent can go on, and no
/// more than it was given.
fn slice(left: Limits, money: Option<i64>) -> Limits {
    let half = |left: Option<i64>| left.map(|left| (left / 2).max(0));
    let all = half(left.money);
    let money = match (all, money) {
        (Some(all), Some(money)) => Some(all.min(money)),
        (all, money) => money.or(all),
    };
    Limits { money, tokens: half(left.tokens), calls: half(left.calls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_half_of_what_is_left_and_no_more_than_it_was_given() {
        let left = Limits { money: Some(1_000), tokens: None, calls: Some(7) };
        let half = Limits { money: Some(500), tokens: None, calls: Some(3) };
        assert_eq!(slice(left, None), half);
        assert_eq!(slice(left, Some(400)).money, Some(400));
        assert_eq!(slice(left, Some(600)).money, Some(500));
        assert_eq!(slice(Limits::default(), Some(5)).money, Some(5));
        assert_eq!(slice(Limits { money: Some(-3), ..left }, None).money, Some(0));
    }
}
