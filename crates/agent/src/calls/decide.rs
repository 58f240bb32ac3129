//! What is to be done with a call, before anything is: the guards, the hooks' word, the policy, a
//! person.

use std::ops::Range;

use mainstay_tools::{Action, Grant, Outcome, Replay};
use serde_json::Value;

use super::call::{CallState, Readiness, ToolCall};
use crate::Settings;
use crate::approvals::ask_person::{ApprovalNeeded, PersonsDecision};
use crate::approvals::binding::{BoundAction, hash_action};
use crate::hooks::Permission;
use crate::loop_guard::{LoopGuard, LoopVerdict};
use crate::policy::{self, ActionClass, Decision, Judgement};
use crate::session::open::OpenSession;
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;

/// What is to be done with a call.
#[derive(Clone, Debug)]
pub(crate) enum CallDecision {
    /// Run it, with what it may do beyond the sandbox.
    Run(Grant),
    /// Find out how it ended: it was started before.
    Settle(Grant),
    /// Tell the model this instead.
    Refuse(Outcome),
    /// Tell the model that it brought the same this often, and do not run it.
    Withhold(u32),
    /// Ask a person first.
    AskApproval(Box<ApprovalNeeded>),
    /// Ask a person what the model wants to know.
    AskQuestion {
        /// The question.
        text: String,
        /// Answers to choose from.
        choices: Vec<String>,
    },
    /// It goes in circles: end the turn, for this reason.
    EndTurn(String),
}

impl TurnRunner<'_> {
    /// Decides about the calls of a group and carries it out as far as they do not run: what is to
    /// run is [`CallState::Ready`] then, and the others have their results.
    pub(crate) async fn decide_group(&mut self, group: Range<usize>) -> Result<(), TurnStop> {
        // All are decided before the first is carried out: they were asked for together.
        for index in group.clone() {
            let decision = decide_call(&self.calls[index], self.session, &self.limits.loop_guard);
            self.calls[index].state = CallState::Decided(decision);
        }
        for index in group {
            let state = std::mem::replace(&mut self.calls[index].state, CallState::Undecided);
            let decision = match state {
                CallState::Decided(decision) => decision,
                // A call that has its result must not become one that can run.
                state @ (CallState::Undecided | CallState::Ready(_) | CallState::Recorded) => {
                    self.calls[index].state = state;
                    continue;
                }
            };
            match decision {
                CallDecision::Run(grant) => self.calls[index].make_ready(Readiness::Run, grant),
                CallDecision::Settle(grant) => {
                    self.calls[index].make_ready(Readiness::Settle, grant);
                }
                CallDecision::Refuse(outcome) => self.record_outcome(index, outcome)?,
                CallDecision::Withhold(times) => self.record_withheld(index, times)?,
                CallDecision::AskApproval(needed) => {
                    match self.ask_approval(index, &needed).await? {
                        PersonsDecision::Allowed { request } => {
                            self.calls[index].approval = request;
                            self.calls[index].make_ready(Readiness::Run, needed.judged.grant);
                        }
                        PersonsDecision::Refused(outcome) => self.record_outcome(index, outcome)?,
                    }
                }
                CallDecision::AskQuestion { text, choices } => {
                    let answer = self.ask_question(index, &text, &choices).await?;
                    self.record_outcome(index, answer)?;
                }
                CallDecision::EndTurn(reason) => return Err(TurnStop::Stuck(reason)),
            }
        }
        Ok(())
    }
}

/// What is to be done with a call, as everything stands now. It changes nothing.
pub(crate) fn decide_call(
    call: &ToolCall,
    session: &OpenSession,
    guard: &LoopGuard,
) -> CallDecision {
    let settings = session.agent.settings();
    let Some(tool) = &call.tool else {
        return CallDecision::Refuse(no_such_tool(call, session));
    };
    let arguments = match &call.arguments {
        Ok(arguments) => arguments,
        Err(wrong) => {
            return CallDecision::Refuse(Outcome::failed(format!(
                "The arguments are not a JSON object: {wrong}. Nothing was done; write them again."
            )));
        }
    };
    let workspace = &session.workplace.workspace;
    if call.started_at.is_some() {
        // Whoever let it start let it have what it needs beyond the sandbox.
        let act = call.act(tool, arguments, session);
        let grant = settings.policy.judge(act, workspace).grant;
        return match tool.traits().replay {
            Replay::Pure | Replay::Idempotent => CallDecision::Run(grant),
            Replay::Kept | Replay::Unknown => CallDecision::Settle(grant),
        };
    }
    match guard.before(&call.asked.name, &call.asked.arguments, call.thresholds(settings)) {
        LoopVerdict::End(times) => return CallDecision::EndTurn(call.repeated(times)),
        LoopVerdict::Withhold(times) => return CallDecision::Withhold(times),
        LoopVerdict::Go | LoopVerdict::Nudge(_) => {}
    }
    if let Some(reason) = call.hooks.as_ref().and_then(|hooks| hooks.refused.as_ref()) {
        return CallDecision::Refuse(Outcome::failed(format!(
            "[Mainstay: not run. A hook refused it: {reason}]"
        )));
    }
    let act = call.act(tool, arguments, session);
    let action = act.action();
    if let Action::Write(_) | Action::Execute(_) | Action::Input { .. } = action
        && let Some(mark) = settings.redactor.mark_in(&call.asked.arguments)
    {
        return CallDecision::Refuse(Outcome::failed(format!(
            "Not done: {mark} stands for a secret that you are not shown, and would be written in \
             its place. Leave that text as it is (edit_file changes only other text), or ask the \
             user to do it."
        )));
    }
    if let Action::Ask { question, choices } = action {
        let (text, choices) = (question.clone(), choices.clone());
        return CallDecision::AskQuestion { text, choices };
    }
    let judged = settings.policy.judge_after(&session.trust.origins, act, workspace);
    let judged = heed_hooks(call, judged, settings);
    match judged.decision {
        Decision::Allow => CallDecision::Run(judged.grant),
        Decision::Ask => {
            let bound = hash_action(&BoundAction {
                session: session.id,
                call: call.id,
                tool: &call.asked.name,
                arguments,
                workspace,
                action,
                judged: &judged,
            });
            let action = match judged.grant.describe().filter(|_| runs_a_line(action)) {
                Some(more) => format!("{} ({more})", describe(action, arguments)),
                None => describe(action, arguments),
            };
            CallDecision::AskApproval(Box::new(ApprovalNeeded { judged, action, bound }))
        }
        Decision::Deny => CallDecision::Refuse(forbidden(action, &judged)),
    }
}

/// What the policy makes of a call, with what hooks said of it: they answer its questions or ask
/// their own, and lift no ban.
fn heed_hooks(call: &ToolCall, mut judged: Judgement, settings: &Settings) -> Judgement {
    let permission = call.hooks.as_ref().and_then(|hooks| hooks.permission.as_ref());
    match (judged.decision, permission) {
        (Decision::Ask, Some(Permission::Allow)) => judged.decision = Decision::Allow,
        (Decision::Allow | Decision::Ask, Some(Permission::Ask(reason))) if !settings.yes => {
            judged.decision = Decision::Ask;
            judged.reason = Some(format!("a hook asks: {reason}"));
            // What a hook asks is asked each time.
            judged.needs = None;
        }
        (Decision::Allow | Decision::Ask, Some(Permission::Ask(_)) | None)
        | (Decision::Allow | Decision::Deny, Some(Permission::Allow))
        | (Decision::Deny, Some(Permission::Ask(_)) | None) => {}
    }
    judged
}

/// Whether what it may do beyond the sandbox is not in its own words.
fn runs_a_line(action: &Action) -> bool {
    matches!(action, Action::Execute(_) | Action::Input { .. })
}

/// What a call would do, in words that go on after "wants".
fn describe(action: &Action, arguments: &Value) -> String {
    match action {
        // Which look it is stands in the arguments.
        Action::Read => {
            let arguments: String = arguments.to_string().chars().take(300).collect();
            format!("to read: {arguments}")
        }
        action => policy::describe_action(action),
    }
}

fn no_such_tool(call: &ToolCall, session: &OpenSession) -> Outcome {
    let names: Vec<&str> = session.agent.parts.offer.names().collect();
    Outcome::failed(format!(
        "There is no tool {}. The tools are: {}.",
        call.asked.name,
        names.join(", ")
    ))
}

/// What the model reads of a call that the policy forbids.
fn forbidden(action: &Action, judged: &Judgement) -> Outcome {
    let why = match (&judged.reason, judged.class) {
        (_, ActionClass::Control) => {
            " It runs Mainstay itself, which only the user may do.".to_owned()
        }
        (Some(reason), _) => format!(" The reason: {reason}."),
        (None, _) => String::new(),
    };
    Outcome::failed(format!(
        "Not allowed: the policy forbids {}.{why} Find another way, or say what is needed.",
        policy::describe_action(action)
    ))
}

#[cfg(test)]
mod tests;
