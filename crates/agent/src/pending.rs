//! A call on its way: what is to be done with it, before anything is.

use std::sync::{Arc, OnceLock};

use mainstay_journal::CallId;
use mainstay_journal::call::{self, State};
use mainstay_message::Call;
use mainstay_store::Id;
use mainstay_tools::{Action, Concurrency, Fact, Invocation, Outcome, Piece, Replay, Tool, Traits};
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::approval::bound;
use crate::deciding::Doubt;
use crate::guard::{LoopGuard, Thresholds, Verdict};
use crate::hooks::{Hooked, Permission};
use crate::policy::{self, Act, Class, Decision, Judged};
use crate::work::Work;
use crate::{Event, Settings};

/// A call that has no outcome yet.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) id: CallId,
    pub(crate) call: Call,
    pub(crate) tool: Option<Arc<dyn Tool>>,
    /// The arguments, or what is wrong with them.
    pub(crate) arguments: Result<Value, String>,
    pub(crate) plan: Option<Value>,
    /// When it was started, by this process or one that is gone; nothing before that.
    pub(crate) started_at: Option<i64>,
    /// What the hooks before it said; nothing before they were asked.
    pub(crate) hooked: Option<Hooked>,
    /// The request that a person said yes to.
    pub(crate) approval: Option<Id>,
    /// What it is to do, once that was read.
    pub(crate) act: OnceLock<Arc<Act>>,
}

/// What is to be done with a call.
pub(crate) enum Step {
    /// Run it.
    Run,
    /// Find out how it ended.
    Settle,
    /// Tell the model this instead.
    Refuse(Outcome),
    /// Tell the model that it brought the same this often, and is not run.
    Withhold(u32),
    /// Ask a person first.
    Ask(Box<Doubt>),
    /// Ask a person what the model wants to know: the question, and answers to choose from.
    Question(String, Vec<String>),
    /// It goes in circles: end the turn, in these words.
    End(String),
}

impl Pending {
    /// A call that a model just asked for.
    pub(crate) fn new(agent: &Agent, call: Call) -> Self {
        Self {
            id: CallId::new(),
            tool: agent.tool(&call.name).cloned(),
            arguments: arguments(&call.arguments),
            call,
            plan: None,
            started_at: None,
            hooked: None,
            approval: None,
            act: OnceLock::new(),
        }
    }

    /// Has it read anew what it is to do: its arguments may be others by now, or the workspace.
    pub(crate) fn read_anew(&mut self) {
        self.act = OnceLock::new();
    }

    /// What it is to do, read once.
    pub(crate) fn act(&self, tool: &Arc<dyn Tool>, arguments: &Value, work: &Work) -> &Act {
        self.act.get_or_init(|| {
            let session = work.id.to_string();
            let action = tool.action(&self.invocation(&session, arguments, &work.workplace));
            Arc::new(Act::new(action, &work.workplace.workspace))
        })
    }

    /// A call that was there before this process.
    pub(crate) fn from_record(agent: &Agent, open: &call::Open) -> Self {
        let plan = open.plan.as_deref().and_then(|plan| serde_json::from_str(plan).ok());
        let started = matches!(open.state, State::Started);
        let mut pending = Self {
            id: open.id,
            plan,
            started_at: started.then(|| open.started_at.unwrap_or(0)),
            ..Self::new(agent, open.call.clone())
        };
        if started {
            let changed = open.input.is_some();
            pending.hooked = Some(Hooked { changed, ..Hooked::default() });
        }
        if let Some(input) = &open.input {
            pending.arguments = arguments(input);
        }
        pending
    }

    /// How the tool is to be treated; a tool that is not there does nothing.
    pub(crate) fn traits(&self) -> Option<Traits> {
        self.tool.as_ref().map(|tool| tool.traits())
    }

    /// Whether it may run beside others.
    pub(crate) fn may_run_beside_others(&self) -> bool {
        self.traits().is_none_or(|traits| traits.concurrency == Concurrency::Parallel)
    }

    /// When repeats of this call are a loop.
    pub(crate) fn thresholds(&self, settings: &Settings) -> Thresholds {
        match self.traits().map(|traits| traits.replay) {
            Some(Replay::Pure) | None => settings.guards.looking,
            Some(_) => settings.guards.acting,
        }
    }

    /// The call as the tool is given it.
    pub(crate) fn invocation<'a>(
        &'a self,
        session: &'a str,
        arguments: &'a Value,
        workplace: &'a mainstay_tools::Workplace,
    ) -> Invocation<'a> {
        Invocation { id: self.id.as_str(), session, arguments, workplace }
    }

    /// What a face is told of it.
    pub(crate) fn event(&self) -> Event {
        let arguments = match &self.arguments {
            Ok(arguments) => arguments.clone(),
            Err(_) => Value::String(self.call.arguments.clone()),
        };
        Event::ToolCall { id: self.id.to_string(), name: self.call.name.clone(), arguments }
    }

    /// What is to be done with it.
    pub(crate) fn step(&self, work: &Work, guard: &LoopGuard) -> Step {
        let Some(tool) = &self.tool else { return Step::Refuse(self.no_such_tool(work)) };
        let arguments = match &self.arguments {
            Ok(arguments) => arguments,
            Err(wrong) => {
                return Step::Refuse(Outcome::failed(format!(
                    "The arguments are not a JSON object: {wrong}. Nothing was done; write them \
                     anew."
                )));
            }
        };
        if self.started_at.is_some() {
            return match tool.traits().replay {
                Replay::Pure | Replay::Idempotent => Step::Run,
                Replay::Kept | Replay::Unknown => Step::Settle,
            };
        }
        let settings = &work.agent.parts.settings;
        match guard.before(&self.call.name, &self.call.arguments, self.thresholds(settings)) {
            Verdict::End(times) => return Step::End(self.in_circles(times)),
            Verdict::Withhold(times) => return Step::Withhold(times),
            Verdict::Go | Verdict::Nudge(_) => {}
        }
        if let Some(reason) = self.hooked.as_ref().and_then(|hooked| hooked.refused.as_ref()) {
            return Step::Refuse(Outcome::failed(format!(
                "[Mainstay: not run. A hook refused it: {reason}]"
            )));
        }
        let act = self.act(tool, arguments, work);
        let action = act.action();
        if let Action::Write(_) | Action::Execute(_) = action
            && let Some(mark) = settings.redactor.mark_in(&self.call.arguments)
        {
            return Step::Refuse(Outcome::failed(format!(
                "Not done: {mark} stands for a secret that you are not shown, and would be written \
                 in its place. Leave those words as they are (edit_file changes only others), or \
                 ask the user to do it."
            )));
        }
        if let Action::Ask { question, choices } = action {
            return Step::Question(question.clone(), choices.clone());
        }
        let workspace = &work.workplace.workspace;
        let judged = settings.policy.judge_after(&work.origins, act, workspace);
        let judged = self.heeding_hooks(judged, settings);
        match judged.decision {
            Decision::Allow => Step::Run,
            Decision::Ask => {
                let call = (self.call.name.as_str(), arguments);
                let bound = bound((work.id, self.id), call, workspace, (action, &judged));
                let action = self.in_words(action);
                Step::Ask(Box::new(Doubt { judged, action, bound }))
            }
            Decision::Deny => Step::Refuse(forbidden(action, &judged)),
        }
    }

    /// What the policy makes of it, with what hooks said of it: they answer its questions or ask
    /// their own, and lift no ban.
    fn heeding_hooks(&self, mut judged: Judged, settings: &Settings) -> Judged {
        let permission = self.hooked.as_ref().and_then(|hooked| hooked.permission.as_ref());
        match (judged.decision, permission) {
            (Decision::Ask, Some(Permission::Allow)) => judged.decision = Decision::Allow,
            (Decision::Allow | Decision::Ask, Some(Permission::Ask(reason))) if !settings.yes => {
                judged.decision = Decision::Ask;
                judged.reason = Some(format!("a hook asks: {reason}"));
                // What a hook asks is asked each time.
                judged.needs = None;
            }
            _ => {}
        }
        judged
    }

    /// What it would do, in words that go on after "wants".
    fn in_words(&self, action: &Action) -> String {
        match action {
            // Which look it is stands in the arguments.
            Action::Read => {
                let arguments = self.arguments.as_ref().map(Value::to_string).unwrap_or_default();
                let arguments: String = arguments.chars().take(300).collect();
                format!("to look at something: {arguments}")
            }
            action => policy::spoken(action),
        }
    }

    /// Why the turn is ended.
    pub(crate) fn in_circles(&self, times: u32) -> String {
        let arguments: String = self.call.arguments.chars().take(200).collect();
        format!(
            "the call {} {arguments} was asked for {times} times with the same result",
            self.call.name
        )
    }

    fn no_such_tool(&self, work: &Work) -> Outcome {
        let names: Vec<&str> = work.agent.parts.offer.names().collect();
        Outcome::failed(format!(
            "There is no tool {}. There are: {}.",
            self.call.name,
            names.join(", ")
        ))
    }
}

/// What the model reads of a call that the policy forbids.
fn forbidden(action: &Action, judged: &Judged) -> Outcome {
    let why = match (&judged.reason, judged.class) {
        (_, Class::Control) => {
            " It calls Mainstay itself, which only the person does who works with it.".to_owned()
        }
        (Some(reason), _) => format!(" The reason: {reason}."),
        (None, _) => String::new(),
    };
    Outcome::failed(format!(
        "Not allowed: the policy forbids {}.{why} Find another way, or say what is needed.",
        policy::spoken(action)
    ))
}

fn arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err("they are JSON of another kind".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Tells whether two outcomes are the same, whatever time they took. What the harness says of a
/// command names its time; its code and output do not.
pub(crate) fn fingerprint(outcome: &Outcome) -> String {
    use sha2::{Digest, Sha256};
    let code = outcome.facts.iter().find_map(|fact| match fact {
        Fact::Exit { code, .. } => Some(*code),
        _ => None,
    });
    let mut hasher = Sha256::new();
    hasher.update(format!("{code:?} {}", outcome.failed));
    for piece in &outcome.pieces {
        match piece {
            Piece::Said(words) if code.is_none() => hasher.update(words),
            Piece::Said(_) => {}
            Piece::Data(words) | Piece::Instructions(words) => hasher.update(words),
            Piece::Image(image) => hasher.update(&image.base64),
        }
        hasher.update([0]);
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
