//! A call of a model that has no result yet, and all of one message.

use std::ops::{Deref, DerefMut, Range};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mainstay_journal::CallId;
use mainstay_journal::call::{self, State};
use mainstay_message::Call;
use mainstay_store::Id;
use mainstay_tools::{
    Action, Concurrency, Grant, Invocation, Outcome, Replay, Tool, Traits, Workplace,
};
use serde_json::{Map, Value};

use super::decide::CallDecision;
use crate::agent::Agent;
use crate::hooks::HookVerdict;
use crate::loop_guard::Thresholds;
use crate::policy::Act;
use crate::session::open::OpenSession;
use crate::{Event, Settings};

/// A call of a model that has no result yet.
pub(crate) struct ToolCall {
    /// Its name for ever, made with the call: processes, requests and children are known by it.
    pub(crate) id: CallId,
    /// The call as the model wrote it.
    pub(crate) asked: Call,
    /// Its tool. It is `None` if there is no tool of that name.
    pub(crate) tool: Option<Arc<dyn Tool>>,
    /// The arguments that it runs with, or what is wrong with them.
    pub(crate) arguments: Result<Arc<Value>, String>,
    /// What its tool has to know after a crash.
    pub(crate) plan: Option<Arc<Value>>,
    /// When it was started, by this process or one that is gone, in milliseconds since 1970.
    pub(crate) started_at: Option<i64>,
    /// What the hooks before it said. It is `None` before they ran.
    pub(crate) hooks: Option<HookVerdict>,
    /// The request that a person said yes to.
    pub(crate) approval: Option<Id>,
    /// What it may do beyond the sandbox, as it was judged.
    pub(crate) grant: Grant,
    /// How far it is.
    pub(crate) state: CallState,
    /// Whether a face was told that it runs.
    pub(crate) announced: bool,
    /// What it is to do, once that was read.
    act: OnceLock<Arc<Act>>,
}

/// How far a call is.
pub(crate) enum CallState {
    /// Nothing is decided.
    Undecided,
    /// It is decided what is to be done with it, and not done yet.
    Decided(CallDecision),
    /// It may have its effect once that is written down.
    Ready(Readiness),
    /// Its result is taken in; it only keeps its place in the list.
    Recorded,
}

/// What a call is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// To run.
    Run,
    /// To find out how it ended, because it was started before.
    Settle,
}

/// The calls of one message, in the order in which the model asked for them.
#[derive(Default)]
pub(crate) struct OpenCalls(Vec<ToolCall>);

impl OpenCalls {
    pub(crate) fn new(calls: Vec<ToolCall>) -> Self {
        Self(calls)
    }

    /// Forgets what is recorded and returns the next calls that may run beside each other. Returns
    /// `None` if every call has its result.
    pub(crate) fn next_group(&mut self) -> Option<Range<usize>> {
        self.0.retain(|call| !call.is_recorded());
        let beside_others = self.0.iter().take_while(|call| call.may_run_beside_others()).count();
        match (self.0.len(), beside_others) {
            (0, _) => None,
            // The first one runs alone.
            (_, 0) => Some(0..1),
            (_, together) => Some(0..together),
        }
    }

    /// How many have no result.
    pub(crate) fn open(&self) -> usize {
        self.0.iter().filter(|call| !call.is_recorded()).count()
    }
}

impl Deref for OpenCalls {
    type Target = [ToolCall];

    fn deref(&self) -> &[ToolCall] {
        &self.0
    }
}

impl DerefMut for OpenCalls {
    fn deref_mut(&mut self) -> &mut [ToolCall] {
        &mut self.0
    }
}

impl ToolCall {
    /// A call that a model just asked for.
    pub(crate) fn new(agent: &Agent, asked: Call) -> Self {
        Self {
            id: CallId::new(),
            tool: agent.tool(&asked.name).cloned(),
            arguments: parse_arguments(&asked.arguments),
            asked,
            plan: None,
            started_at: None,
            hooks: None,
            approval: None,
            grant: Grant::default(),
            state: CallState::Undecided,
            announced: false,
            act: OnceLock::new(),
        }
    }

    /// A call that was recorded before this process, or before the turn was taken up again.
    pub(crate) fn from_record(agent: &Agent, open: &call::Open) -> Self {
        let plan = open.plan.as_deref().and_then(|plan| serde_json::from_str(plan).ok());
        let mut call =
            Self { id: open.id, plan: plan.map(Arc::new), ..Self::new(agent, open.call.clone()) };
        if let Some(input) = &open.input {
            call.arguments = parse_arguments(input);
        }
        match open.state {
            State::Started => {
                call.started_at = Some(open.started_at.unwrap_or(0));
                let changed = open.input.is_some();
                call.hooks = Some(HookVerdict { changed, ..HookVerdict::default() });
            }
            State::Intended | State::Done => {}
        }
        call
    }

    /// Forgets what it was read to do: its arguments may be others by now, or the workspace.
    pub(crate) fn forget_act(&mut self) {
        self.act = OnceLock::new();
    }

    /// What it was read to do. Returns `None` if nobody had to know.
    pub(crate) fn known_act(&self) -> Option<&Act> {
        self.act.get().map(Arc::as_ref)
    }

    /// What it is to do. A command line is read once a call: policy, snapshot and taint go by the
    /// same reading.
    pub(crate) fn act(
        &self,
        tool: &Arc<dyn Tool>,
        arguments: &Value,
        session: &OpenSession,
    ) -> &Arc<Act> {
        self.act.get_or_init(|| {
            let id = session.id.to_string();
            let workplace = &session.workplace;
            let invocation = Invocation {
                id: self.id.as_str(),
                session: &id,
                arguments,
                workplace,
                grant: Grant::NONE,
                target: None,
            };
            let act = Act::new(tool.action(&invocation), &workplace.workspace);
            Arc::new(act.wanting(tool.wants(&invocation)))
        })
    }

    /// The call with all that its tool needs. Returns `None` if there is no such tool, or if its
    /// arguments cannot be read.
    pub(crate) fn runnable(&self) -> Option<RunnableCall> {
        Some(RunnableCall {
            id: self.id,
            name: self.asked.name.clone(),
            tool: self.tool.clone()?,
            arguments: self.arguments.as_ref().ok()?.clone(),
            plan: self.plan.clone(),
            grant: self.grant.clone(),
            target: self.judged_target(),
        })
    }

    /// The real path that it was judged to change.
    fn judged_target(&self) -> Option<PathBuf> {
        match self.known_act()?.action() {
            Action::Write(path) => Some(path.clone()),
            _ => None,
        }
    }

    pub(crate) fn is_recorded(&self) -> bool {
        match self.state {
            CallState::Recorded => true,
            CallState::Undecided | CallState::Decided(_) | CallState::Ready(_) => false,
        }
    }

    /// What it is ready for. Returns `None` if it is not, or if its result is there.
    pub(crate) fn readiness(&self) -> Option<Readiness> {
        match self.state {
            CallState::Ready(readiness) => Some(readiness),
            CallState::Undecided | CallState::Decided(_) | CallState::Recorded => None,
        }
    }

    /// Whether it is about to be started: it runs, and not for the second time.
    pub(crate) fn begins(&self) -> bool {
        self.readiness() == Some(Readiness::Run) && self.started_at.is_none()
    }

    /// It may have its effect once that is written down.
    pub(crate) fn make_ready(&mut self, readiness: Readiness, grant: Grant) {
        self.grant = grant;
        self.state = CallState::Ready(readiness);
    }

    /// Takes back that it was started: it never ran, and is decided like any other.
    pub(crate) fn never_ran(&mut self) {
        self.started_at = None;
        self.plan = None;
        self.state = CallState::Undecided;
    }

    /// How its tool is to be treated. Returns `None` if there is no such tool.
    pub(crate) fn traits(&self) -> Option<Traits> {
        self.tool.as_ref().map(|tool| tool.traits())
    }

    fn may_run_beside_others(&self) -> bool {
        self.traits().is_none_or(|traits| traits.concurrency == Concurrency::Parallel)
    }

    /// When repeats of this call are a loop.
    pub(crate) fn thresholds(&self, settings: &Settings) -> Thresholds {
        match self.traits().map(|traits| traits.replay) {
            Some(Replay::Pure) | None => settings.guards.looking,
            Some(Replay::Idempotent | Replay::Kept | Replay::Unknown) => settings.guards.acting,
        }
    }

    /// What a face is told of it.
    pub(crate) fn event(&self) -> Event {
        let arguments = match &self.arguments {
            Ok(arguments) => arguments.as_ref().clone(),
            Err(_) => Value::String(self.asked.arguments.clone()),
        };
        Event::ToolCall { id: self.id.to_string(), name: self.asked.name.clone(), arguments }
    }

    /// Why a turn is ended that asks for it again and again.
    pub(crate) fn repeated(&self, times: u32) -> String {
        let arguments: String = self.asked.arguments.chars().take(200).collect();
        format!(
            "the call {} {arguments} was asked for {times} times with the same result",
            self.asked.name
        )
    }
}

/// A call with all that its tool needs. It runs beside the turn, which goes on owning the call.
pub(crate) struct RunnableCall {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) arguments: Arc<Value>,
    plan: Option<Arc<Value>>,
    grant: Grant,
    target: Option<PathBuf>,
}

impl RunnableCall {
    /// The call as its tool is given it.
    pub(crate) fn invocation<'a>(
        &'a self,
        session: &'a str,
        workplace: &'a Workplace,
    ) -> Invocation<'a> {
        Invocation {
            id: self.id.as_str(),
            session,
            arguments: &self.arguments,
            workplace,
            grant: &self.grant,
            target: self.target.as_deref(),
        }
    }

    pub(crate) fn plan(&self) -> Option<&Value> {
        self.plan.as_deref()
    }
}

/// The result of a call that cannot be run, which nobody decided to run.
pub(crate) fn nothing_done() -> Outcome {
    Outcome::failed("Nothing was done.")
}

fn parse_arguments(text: &str) -> Result<Arc<Value>, String> {
    if text.trim().is_empty() {
        return Ok(Arc::new(Value::Object(Map::new())));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Arc::new(Value::Object(object))),
        Ok(_) => Err("they are another kind of JSON".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_session::TestSession;

    /// The groups of these calls, each with the names of its tools.
    fn groups(test: &TestSession, tools: &[&str]) -> Vec<Vec<String>> {
        let calls = tools.iter().map(|tool| test.call(tool, &json!({}))).collect();
        let mut open = OpenCalls::new(calls);
        let mut groups = Vec::new();
        while let Some(group) = open.next_group() {
            let calls = &mut open[group];
            groups.push(calls.iter().map(|call| call.asked.name.clone()).collect());
            calls.iter_mut().for_each(|call| call.state = CallState::Recorded);
        }
        assert_eq!(open.open(), 0);
        groups
    }

    #[test]
    fn calls_that_may_run_together_do_and_the_order_is_kept() {
        let test = TestSession::new(Settings::default());
        let cases: [(&[&str], &[&[&str]]); 6] = [
            (&[], &[]),
            (&["shell"], &[&["shell"]]),
            (&["read_file", "grep"], &[&["read_file", "grep"]]),
            (
                &["read_file", "grep", "shell", "read_file"],
                &[&["read_file", "grep"], &["shell"], &["read_file"]],
            ),
            (&["write_file", "write_file"], &[&["write_file"], &["write_file"]]),
            // A call of no tool is refused, which harms no other call.
            (&["read_file", "nope", "shell"], &[&["read_file", "nope"], &["shell"]]),
        ];
        for (tools, expected) in cases {
            assert_eq!(groups(&test, tools), expected, "{tools:?}");
        }
    }

    #[test]
    fn a_call_without_a_result_keeps_the_next_group_from_starting() {
        let test = TestSession::new(Settings::default());
        let calls = ["read_file", "grep", "shell"].map(|tool| test.call(tool, &json!({})));
        let mut open = OpenCalls::new(calls.into());
        assert_eq!(open.next_group(), Some(0..2));
        open[0].state = CallState::Recorded;
        assert_eq!(open.next_group(), Some(0..1), "grep has no result yet");
        assert_eq!((open[0].asked.name.as_str(), open.open()), ("grep", 2));
    }
}
