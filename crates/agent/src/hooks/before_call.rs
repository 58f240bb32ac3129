//! The hooks before a call: they may refuse it, change it, or decide whether a person is asked.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::join_all;
use mainstay_message::Redactor;
use mainstay_tools::{Piece, Workplace};
use serde_json::Value;

use super::payload::HookedCall;
use super::session_hooks::show_notices;
use super::{HookReply, Moment, Payload, Permission, fire, names};
use crate::calls::call::ToolCall;
use crate::calls::decide::{CallDecision, decide_call};
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;

/// The longest arguments that a model is shown of a call that a hook changed.
const LONGEST_CHANGE: usize = 2_000;

/// What the hooks before a call said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookVerdict {
    /// Why it must not run.
    pub(crate) refused: Option<String>,
    /// Whether a person is asked.
    pub(crate) permission: Option<Permission>,
    /// Whether its arguments are others than the model's.
    pub(crate) changed: bool,
    /// What the model is to know.
    pub(crate) context: Vec<String>,
}

impl TurnRunner<'_> {
    /// Asks the hooks about the calls of a group that are about to run.
    pub(crate) async fn run_hooks_before(&mut self, group: Range<usize>) -> Result<(), TurnStop> {
        let hooks = self.session.agent.settings().hooks.clone();
        if !hooks.any(Moment::PreToolUse) {
            return Ok(());
        }
        // A message that was paid for is durable before anything slow.
        self.commit(|_| Ok(()))?;
        let (workplace, session) = (self.session.workplace.clone(), self.session.id.to_string());
        let asked = self.calls[group.clone()].iter().map(|call| {
            let arguments = call.arguments.as_ref().ok().filter(|_| self.awaits_hooks(call));
            let (hooks, workplace, session) = (&hooks, &workplace, &session);
            async move {
                let called = HookedCall {
                    id: call.id.as_str(),
                    tool: &call.asked.name,
                    arguments: arguments?,
                    workspace: &workplace.workspace,
                };
                Some(fire(hooks, &Payload::before(&called), session, workplace).await)
            }
        });
        let replies = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(TurnStop::Cancelled),
            replies = join_all(asked) => replies,
        };
        let mut stopped = None;
        for (index, reply) in group.zip(replies) {
            let Some(mut reply) = reply else { continue };
            show_notices(self.observer, std::mem::take(&mut reply.notices));
            stopped = stopped.or(reply.halt.take());
            self.calls[index].take_reply(reply, self.session.agent.redactor(), &workplace);
        }
        match stopped {
            Some(reason) => Err(TurnStop::HookStopped(reason)),
            None => Ok(()),
        }
    }

    /// Whether hooks are yet to see a call. One that was started had its hooks; one that does not run
    /// needs none.
    pub(crate) fn awaits_hooks(&self, call: &ToolCall) -> bool {
        if call.started_at.is_some()
            || call.hooks.is_some()
            || !self.session.agent.settings().hooks.any(Moment::PreToolUse)
        {
            return false;
        }
        match decide_call(call, self.session, &self.limits.loop_guard) {
            CallDecision::Run(_) | CallDecision::AskApproval(_) => true,
            CallDecision::Settle(_)
            | CallDecision::Refuse(_)
            | CallDecision::Withhold(_)
            | CallDecision::AskQuestion { .. }
            | CallDecision::EndTurn(_) => false,
        }
    }
}

/// What the harness says to the model beside a result.
pub(super) fn remark(text: impl AsRef<str>) -> Piece {
    Piece::Said(format!("[Mainstay: {}]", text.as_ref()))
}

impl ToolCall {
    /// Takes in what the hooks before it said.
    fn take_reply(&mut self, reply: HookReply, redactor: &Redactor, workplace: &Workplace) {
        self.forget_act();
        let mut verdict = HookVerdict {
            refused: reply.block,
            permission: reply.permission,
            changed: false,
            context: reply.context,
        };
        if let (Some(input), Ok(arguments)) = (reply.input, &self.arguments) {
            let shown = names::outward(&self.asked.name, arguments, &workplace.workspace);
            if input != shown {
                let mut arguments = names::inward(&self.asked.name, &input);
                // What runs is what is recorded.
                redactor.value(&mut arguments);
                self.arguments = Ok(Arc::new(arguments));
                verdict.changed = true;
            }
        }
        self.hooks = Some(verdict);
    }

    /// The arguments that it runs with, if a hook changed them.
    pub(crate) fn changed_input(&self) -> Option<String> {
        let changed = self.hooks.as_ref().is_some_and(|hooks| hooks.changed);
        self.arguments.as_ref().ok().filter(|_| changed).map(|arguments| arguments.to_string())
    }

    /// What the model is told of hooks with the result.
    pub(crate) fn hook_remarks(&self) -> Vec<Piece> {
        let Some(hooks) = &self.hooks else { return Vec::new() };
        let mut remarks = Vec::new();
        if let (true, Ok(arguments)) = (hooks.changed, &self.arguments) {
            let mut text = Value::to_string(arguments);
            if text.len() > LONGEST_CHANGE {
                text.truncate(text.floor_char_boundary(LONGEST_CHANGE));
                text.push_str(" …");
            }
            remarks.push(format!("a hook changed this call; its arguments were {text}"));
        }
        remarks.extend(hooks.context.iter().map(|text| format!("a hook adds: {text}")));
        remarks.into_iter().map(remark).collect()
    }
}
