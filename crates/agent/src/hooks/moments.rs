//! Where a turn meets its hooks.

use std::sync::Arc;

use futures_util::future::join_all;
use mainstay_journal::entry::Body;
use mainstay_message::{Content, Redactor};
use mainstay_tools::{Outcome, Piece, Workplace};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::payload::Called;
use super::{HookReply, Hooks, Moment, Payload, Permission, fire, names};
use crate::calls::call::{CallDecision, ToolCall};
use crate::session::open::{Input, OpenSession};
use crate::turn::runner::{TurnRunner, TurnStop};
use crate::{Error, Event, Observer, Result};

/// How often hooks may send a turn on that was about to end.
const MOST_STOPS: u32 = 5;
/// How a notice begins that sends a turn on; it is counted again after a crash.
const GO_ON: &str = "a hook wants you to go on";
/// The longest arguments that a model is told of a call that a hook changed.
const LONGEST_CHANGE: usize = 2_000;

/// What the hooks before a call said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooked {
    /// Why it must not run.
    pub(crate) refused: Option<String>,
    /// Whether a person is asked.
    pub(crate) permission: Option<Permission>,
    /// Whether its arguments are others than the model's.
    pub(crate) changed: bool,
    /// What the model is to know.
    pub(crate) context: Vec<String>,
}

impl OpenSession {
    /// Tells the hooks that a session is taken up, and what the user sent, where something was.
    /// Answers what the user is to know; what the model is to know waits in `context`.
    pub(crate) async fn consult(
        &mut self,
        input: Option<&Input>,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>> {
        if self.is_child() {
            // A helper's session is no session of the user's, and its task none of their words.
            return Ok(Vec::new());
        }
        let hooks = self.agent.parts.settings.hooks.clone();
        let mut payloads = Vec::new();
        if !std::mem::replace(&mut self.greeted, true) && hooks.any(Moment::SessionStart) {
            payloads.push(Payload::session(if self.is_new { "startup" } else { "resume" }));
        }
        if let Some(input) = input
            && hooks.any(Moment::UserPromptSubmit)
        {
            let words: Vec<&str> = input.content.iter().filter_map(Content::text).collect();
            payloads.push(Payload::prompt(&words.join("\n")));
        }
        let mut notices = Vec::new();
        for payload in payloads {
            let (session, workplace) = (self.id.to_string(), self.workplace.clone());
            let heard = tokio::select! {
                biased;
                // The turn finds out itself that it is cancelled.
                () = cancel.cancelled() => return Ok(notices),
                heard = fire(&hooks, &payload, &session, &workplace) => heard,
            };
            notices.extend(heard.notices);
            let redactor = &self.agent.parts.settings.redactor;
            self.context.extend(
                heard.context.iter().map(|words| format!("a hook adds: {}", redactor.text(words))),
            );
            if let Some(reason) = heard.halt.or(heard.block)
                && input.is_some()
            {
                self.context.clear();
                return Err(Error::Blocked(redactor.text(&reason).into_owned()));
            }
        }
        Ok(notices)
    }
}

/// Tells a user what hooks want known.
pub(crate) fn tell(observer: Observer<'_>, notices: Vec<String>) {
    for message in notices {
        observer(Event::Notice { about: "hook", message, void: false });
    }
}

impl TurnRunner<'_> {
    /// Asks the hooks about calls that are about to run.
    pub(crate) async fn before_calls(
        &mut self,
        mut group: Vec<ToolCall>,
    ) -> std::result::Result<Vec<ToolCall>, TurnStop> {
        let hooks = self.work.agent.parts.settings.hooks.clone();
        if !hooks.any(Moment::PreToolUse) {
            return Ok(group);
        }
        // A message that was paid for is durable before anything slow.
        self.commit(|_| Ok(()))?;
        let (workplace, session) = (self.work.workplace.clone(), self.work.id.to_string());
        let asked = group.iter().map(|pending| {
            // One that was started had its hooks; one that does not run needs none.
            let open = pending.started_at.is_none() && pending.hooked.is_none();
            let runs = open
                && matches!(
                    pending.step(self.work, &self.guard),
                    CallDecision::Run | CallDecision::Ask(_)
                );
            let arguments = pending.arguments.as_ref().ok().filter(|_| runs);
            let (hooks, workplace, session) = (&hooks, &workplace, &session);
            async move {
                let call = called(pending, arguments?, workplace);
                Some(fire(hooks, &Payload::before(&call), session, workplace).await)
            }
        });
        let heard = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
            heard = join_all(asked) => heard,
        };
        let mut stopped = None;
        for (pending, mut heard) in group.iter_mut().zip(heard) {
            let Some(heard) = heard.as_mut() else { continue };
            tell(self.observer, std::mem::take(&mut heard.notices));
            stopped = stopped.or(heard.halt.take());
            pending.take_hooks(heard, &self.work.agent.parts.settings.redactor, &workplace);
            if let Some(flying) = self.flying.iter_mut().find(|other| other.id == pending.id) {
                *flying = pending.clone();
            }
        }
        match stopped {
            Some(reason) => Err(TurnStop::Stopped(reason)),
            None => Ok(group),
        }
    }

    /// Whether a call is yet to be seen by hooks.
    pub(crate) fn owes_hooks(&self, pending: &ToolCall) -> bool {
        pending.hooked.is_none()
            && self.work.agent.parts.settings.hooks.any(Moment::PreToolUse)
            && !matches!(pending.step(self.work, &self.guard), CallDecision::Question(..))
    }

    /// Asks the hooks whether the turn may end with this answer. True where it goes on.
    pub(crate) async fn is_sent_on(&mut self, answer: &str) -> std::result::Result<bool, TurnStop> {
        let hooks = self.work.agent.parts.settings.hooks.clone();
        // The end of a helper's turn is in the middle of the user's.
        if !hooks.any(Moment::Stop) || self.work.is_child() {
            return Ok(false);
        }
        // An answer that was paid for is durable before anything slow.
        self.commit(|_| Ok(()))?;
        let (workplace, session) = (self.work.workplace.clone(), self.work.id.to_string());
        let payload = Payload::stop(answer, self.stops > 0);
        let mut heard = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
            heard = fire(&hooks, &payload, &session, &workplace) => heard,
        };
        tell(self.observer, std::mem::take(&mut heard.notices));
        let Some(reason) = heard.block.filter(|_| heard.halt.is_none()) else {
            return Ok(false);
        };
        if self.stops >= MOST_STOPS {
            let words = format!("a hook wanted the turn to go on more than {MOST_STOPS} times");
            tell(self.observer, vec![words]);
            return Ok(false);
        }
        self.stops += 1;
        let mut bodies = vec![Body::Notice { text: format!("{GO_ON}: {reason}") }];
        bodies.extend(heard.context.into_iter().map(|text| Body::Notice { text }));
        self.commit_entries(&bodies)?;
        tell(
            self.observer,
            vec![format!("a hook sends the turn on: {}", super::answer::one_line(&reason))],
        );
        Ok(true)
    }

    /// Writes down what hooks told of a session that was taken up.
    pub(crate) fn pass_on_context(&mut self) -> Result<()> {
        let context = std::mem::take(&mut self.work.context);
        if context.is_empty() {
            return Ok(());
        }
        let bodies: Vec<Body> = context.into_iter().map(|text| Body::Notice { text }).collect();
        self.commit_entries(&bodies)
    }
}

/// Whether a notice sent the turn on.
pub(crate) fn sends_on(notice: &str) -> bool {
    notice.starts_with(GO_ON)
}

/// Tells the hooks after a call of its outcome, and the outcome what they say.
pub(crate) async fn after_call(
    hooks: &Arc<Hooks>,
    pending: &ToolCall,
    outcome: &mut Outcome,
    (session, workplace): (&str, &Workplace),
    cancel: &CancellationToken,
) -> HookReply {
    let moment = match outcome.failed {
        true => Moment::PostToolUseFailure,
        false => Moment::PostToolUse,
    };
    let Some(arguments) = pending.arguments.as_ref().ok().filter(|_| hooks.any(moment)) else {
        return HookReply::default();
    };
    let call = called(pending, arguments, workplace);
    let payload = Payload::after(&call, outcome);
    let mut heard = tokio::select! {
        biased;
        // The outcome is there, and is written down without their words.
        () = cancel.cancelled() => return HookReply::default(),
        heard = fire(hooks, &payload, session, workplace) => heard,
    };
    let block = heard.block.take().map(|reason| format!("a hook objects: {reason}"));
    let context = heard.context.drain(..).map(|words| format!("a hook adds: {words}"));
    for words in block.into_iter().chain(context) {
        outcome.pieces.push(Piece::Said(format!("[Mainstay: {words}]")));
    }
    heard
}

fn called<'a>(pending: &'a ToolCall, arguments: &'a Value, workplace: &'a Workplace) -> Called<'a> {
    Called {
        id: pending.id.as_str(),
        tool: &pending.call.name,
        arguments,
        workspace: &workplace.workspace,
    }
}

impl ToolCall {
    /// Takes in what the hooks before it said.
    fn take_hooks(&mut self, heard: &mut HookReply, redactor: &Redactor, workplace: &Workplace) {
        self.read_anew();
        let mut hooked = Hooked {
            refused: heard.block.take(),
            permission: heard.permission.take(),
            changed: false,
            context: std::mem::take(&mut heard.context),
        };
        if let (Some(input), Ok(arguments)) = (heard.input.take(), &self.arguments) {
            let told = names::outward(&self.call.name, arguments, &workplace.workspace);
            if input != told {
                let mut arguments = names::inward(&self.call.name, &input);
                // What runs is what is recorded.
                redactor.value(&mut arguments);
                self.arguments = Ok(arguments);
                hooked.changed = true;
            }
        }
        self.hooked = Some(hooked);
    }

    /// What it is given instead of what the model wrote, where a hook changed it.
    pub(crate) fn changed_input(&self) -> Option<String> {
        let changed = self.hooked.as_ref().is_some_and(|hooked| hooked.changed);
        self.arguments.as_ref().ok().filter(|_| changed).map(Value::to_string)
    }

    /// What the model is told with the result.
    pub(crate) fn hook_words(&self) -> Vec<Piece> {
        let Some(hooked) = &self.hooked else { return Vec::new() };
        let mut words: Vec<String> = Vec::new();
        if let (true, Ok(arguments)) = (hooked.changed, &self.arguments) {
            let mut text = arguments.to_string();
            if text.len() > LONGEST_CHANGE {
                text.truncate(text.floor_char_boundary(LONGEST_CHANGE));
                text.push_str(" …");
            }
            words.push(format!("a hook changed this call; its arguments were {text}"));
        }
        words.extend(hooked.context.iter().map(|words| format!("a hook adds: {words}")));
        words.into_iter().map(|words| Piece::Said(format!("[Mainstay: {words}]"))).collect()
    }
}
