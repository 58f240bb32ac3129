//! The hooks after a call: they add to its outcome, or stop the turn.

use std::sync::Arc;

use mainstay_tools::{Outcome, Workplace};
use tokio_util::sync::CancellationToken;

use super::before_call::remark;
use super::payload::Called;
use super::{HookReply, Hooks, Moment, Payload, fire};
use crate::calls::call::RunnableCall;

/// Tells the hooks after a call of its outcome, and adds to the outcome what they say.
pub(crate) async fn run_hooks_after(
    hooks: &Arc<Hooks>,
    call: &RunnableCall,
    outcome: &mut Outcome,
    session: &str,
    workplace: &Workplace,
    cancel: &CancellationToken,
) -> HookReply {
    let moment = if outcome.failed { Moment::PostToolUseFailure } else { Moment::PostToolUse };
    if !hooks.any(moment) {
        return HookReply::default();
    }
    let called = Called {
        id: call.id.as_str(),
        tool: &call.name,
        arguments: &call.arguments,
        workspace: &workplace.workspace,
    };
    let payload = Payload::after(&called, outcome);
    let mut reply = tokio::select! {
        biased;
        // The outcome is there, and is recorded without their words.
        () = cancel.cancelled() => return HookReply::default(),
        reply = fire(hooks, &payload, session, workplace) => reply,
    };
    let block = reply.block.take().map(|reason| format!("a hook objects: {reason}"));
    let context = reply.context.drain(..).map(|text| format!("a hook adds: {text}"));
    outcome.pieces.extend(block.into_iter().chain(context).map(remark));
    reply
}
