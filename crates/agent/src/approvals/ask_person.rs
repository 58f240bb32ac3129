//! Asking a person in the middle of a turn: whether a call may run, or what a model wants to know.
//!
//! What is asked is a row before anybody sees it, and what is answered is a commit before anything is
//! done with it. Whoever answers first is heard: the person at hand, or another process. Where nobody
//! answers, the turn is parked and says what it waits for.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{Id, Listener, Store};
use mainstay_tools::Outcome;
use tokio::time::{sleep, sleep_until};

use crate::agent::blocking;
use crate::approvals::requests::{self, Approval, Effort, Given, New, Standing};
use crate::calls::call::{CallDecision, ToolCall};
use crate::policy::Judged;
use crate::turn::runner::{TurnRunner, TurnStop};
use crate::{Question, Request, Result, Verdict, approvals::questions};

/// Who decided, for whoever comes too late.
const HERE: &str = "the person at the terminal of the turn";
/// The shortest time that a request waits.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long one wait for news from other processes takes at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a parked turn waits for.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) requests: Vec<Request>,
    pub(crate) questions: Vec<Question>,
}

/// What is asked of a call that the policy asks about.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalNeeded {
    pub(crate) judged: Judged,
    /// The action in words.
    pub(crate) action: String,
    /// Binds a decision to it.
    pub(crate) bound: String,
}

/// Something that was put to a person.
enum Put<T> {
    Answered(T),
    /// Look at the row again: somebody else may have answered, or its time is over.
    Elsewhere,
    Nobody,
}

impl TurnRunner<'_> {
    /// What is to be done with a call that the policy asks about; with a yes, whose.
    pub(crate) async fn decided(
        &mut self,
        pending: &ToolCall,
        doubt: &ApprovalNeeded,
    ) -> std::result::Result<(CallDecision, Option<Id>), TurnStop> {
        if self.covered(doubt)? {
            return Ok((CallDecision::Run, None));
        }
        loop {
            let approval = self.request(pending, doubt)?;
            match &approval.standing {
                Standing::Allowed(_) => return Ok((CallDecision::Run, Some(approval.request.id))),
                Standing::Denied(decided) => {
                    return Ok((CallDecision::Refuse(denied(&decided.verdict)), None));
                }
                Standing::Open | Standing::Expired | Standing::Lapsed => {}
            }
            let request = &approval.request;
            let until = Some(request.expires_at);
            let asker = self.work.asker.clone();
            let asked = async {
                match &asker {
                    Some(asker) => asker.decide(request).await,
                    None => None,
                }
            };
            match self.put(asked, until, |tx| still_asked(tx, &approval)).await? {
                Put::Answered(verdict) => self.note_verdict(request.id, &verdict)?,
                Put::Elsewhere => {}
                Put::Nobody => return Err(self.wait_for_somebody()?),
            }
        }
    }

    /// The answer to a question that a call asks.
    pub(crate) async fn answered_by_person(
        &mut self,
        pending: &ToolCall,
        text: &str,
        choices: &[String],
    ) -> std::result::Result<Outcome, TurnStop> {
        loop {
            let asked = self.question(pending, text, choices)?;
            if let questions::Standing::Answered { answer, .. } = &asked.standing {
                return Ok(Outcome::said(answer.as_str()));
            }
            let question = &asked.question;
            let asker = self.work.asker.clone();
            let answer = async {
                match &asker {
                    Some(asker) => asker.answer(question).await,
                    None => None,
                }
            };
            let (session, call) = (question.session, question.call);
            let open = move |tx: &mut mainstay_store::ReadTx<'_>| {
                let found = questions::of_call(tx, session, call)?;
                Ok(found.is_some_and(|asked| asked.standing == questions::Standing::Open))
            };
            match self.put(answer, None, open).await? {
                Put::Answered(answer) => self.note_answer(question.id, &answer)?,
                Put::Elsewhere => {}
                Put::Nobody => return Err(self.wait_for_somebody()?),
            }
        }
    }

    /// Puts something to the person at hand, until an answer, somebody else's answer or a time.
    async fn put<T>(
        &mut self,
        asked: impl Future<Output = Option<T>>,
        until: Option<i64>,
        open: impl Fn(&mut mainstay_store::ReadTx<'_>) -> Result<bool>,
    ) -> std::result::Result<Put<T>, TurnStop> {
        if self.work.asker.is_none() {
            return Ok(Put::Nobody);
        }
        let store = self.work.agent.parts.store.clone();
        // Listen first, then look: nothing falls in between.
        let listener = Arc::new(store.listen([requests::TOPIC])?);
        let left = until.map_or(Duration::MAX, |until| {
            let left = until.saturating_sub(mainstay_store::wall_millis());
            Duration::from_millis(u64::try_from(left).unwrap_or(0))
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(TurnStop::Cancelled),
            answer = asked => Ok(answer.map_or(Put::Nobody, Put::Answered)),
            changed = elsewhere(&store, &listener, open) => {
                changed?;
                Ok(Put::Elsewhere)
            }
            () = sleep(left) => Ok(Put::Elsewhere),
            () = sleep_until(self.deadline) => Err(self.out_of_time()),
        }
    }

    /// Whether somebody said "always" to all that a call needs.
    fn covered(&mut self, doubt: &ApprovalNeeded) -> Result<bool> {
        let parts = self.work.agent.parts.clone();
        let workspace = &self.work.workplace.workspace;
        self.work.rules.cover(&doubt.judged, &parts.store, parts.owner, workspace)
    }

    /// The request for a call as it stands, or a new one: none was asked about exactly this, or its
    /// time is over.
    fn request(&mut self, pending: &ToolCall, doubt: &ApprovalNeeded) -> Result<Approval> {
        let parts = self.work.agent.parts.clone();
        let (session, turn) = self.place();
        let found = blocking(|| parts.store.read(|tx| requests::of_call(tx, session, pending.id)))?;
        let holds = |approval: &Approval| {
            approval.is_about(&doubt.bound)
                && !matches!(approval.standing, Standing::Expired | Standing::Lapsed)
        };
        if let Some(found) = found.filter(holds) {
            return Ok(found);
        }
        let needs = doubt.judged.needs.iter().flatten();
        let mut rules = Vec::new();
        for rule in needs.filter_map(crate::policy::Need::rule) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let nothing = serde_json::Value::Null;
        let workspace = self.work.workplace.workspace.display().to_string();
        let new = New {
            owner: parts.owner,
            session,
            turn,
            call: pending.id,
            tool: &pending.call.name,
            class: doubt.judged.class,
            action: &doubt.action,
            arguments: pending.arguments.as_ref().unwrap_or(&nothing),
            reason: doubt.judged.reason.as_deref(),
            rules: &rules,
            bound: &doubt.bound,
            workspace: &workspace,
            // What is over before anybody can read it would be asked for ever.
            limit: parts.settings.approval.max(SHORTEST),
        };
        let id = Id::new();
        self.commit(|tx| {
            requests::ask(tx, id, &new)?;
            requests::get(tx, parts.owner, id)
        })
    }

    /// The question that a call asks, written down where it is not.
    fn question(
        &mut self,
        pending: &ToolCall,
        text: &str,
        choices: &[String],
    ) -> Result<questions::Asked> {
        let parts = self.work.agent.parts.clone();
        let (session, turn) = self.place();
        let found =
            blocking(|| parts.store.read(|tx| questions::of_call(tx, session, pending.id)))?;
        let same = |asked: &questions::Asked| {
            asked.question.text == requests::storable(text) && asked.question.choices == choices
        };
        if let Some(found) = found.filter(same) {
            return Ok(found);
        }
        let id = Id::new();
        self.commit(|tx| {
            let place = (session, turn, pending.id);
            questions::ask(tx, id, parts.owner, place, (text, choices))?;
            questions::get(tx, parts.owner, id)
        })
    }

    /// Writes down what the person at hand decided, unless somebody was faster.
    fn note_verdict(&mut self, id: Id, verdict: &Verdict) -> Result<()> {
        let owner = self.work.agent.parts.owner;
        // Whoever asks was told what a yes takes.
        let given = Given { by: HERE, effort: Effort::Word };
        let came = self.commit(|tx| requests::decide(tx, owner, id, verdict, given))?;
        if let requests::Outcome::TooLate(approval) = came
            && let Some(asker) = &self.work.asker
        {
            asker.overtaken(&approval.told());
        }
        Ok(())
    }

    fn note_answer(&mut self, id: Id, answer: &str) -> Result<()> {
        let parts = self.work.agent.parts.clone();
        let answer = parts.settings.redactor.text(answer);
        let came = self.commit(|tx| questions::answer(tx, parts.owner, id, &answer, HERE))?;
        if let questions::Outcome::TooLate(asked) = came
            && let Some(asker) = &self.work.asker
        {
            asker.overtaken(&asked.told());
        }
        Ok(())
    }

    /// Parks the turn. Whatever else of this message a person has to be asked about is asked too, so
    /// that one visit settles it all.
    fn wait_for_somebody(&mut self) -> std::result::Result<TurnStop, TurnStop> {
        let mut waiting = Waiting::default();
        for pending in self.flying.clone() {
            match pending.step(self.work, &self.guard) {
                // What will be asked about it is known when hooks have seen it.
                _ if self.owes_hooks(&pending) => {}
                CallDecision::Ask(doubt) if !self.covered(&doubt)? => {
                    let approval = self.request(&pending, &doubt)?;
                    if approval.standing == Standing::Open {
                        waiting.requests.push(approval.request);
                    }
                }
                CallDecision::Question(text, choices) => {
                    let asked = self.question(&pending, &text, &choices)?;
                    if asked.standing == questions::Standing::Open {
                        waiting.questions.push(asked.question);
                    }
                }
                _ => {}
            }
        }
        let reason = waiting.reason();
        self.waiting = waiting;
        Ok(TurnStop::Parked { reason, resume_at: None })
    }
}

impl Waiting {
    /// Why the turn waits, in words.
    fn reason(&self) -> String {
        let first = match (self.requests.first(), self.questions.first()) {
            (Some(request), _) => format!(
                "{} wants {}, and the policy asks a person first (request {})",
                request.tool, request.action, request.id
            ),
            (None, Some(question)) => {
                format!("the model asks: {} (question {})", question.text, question.id)
            }
            (None, None) => "somebody has to be asked".to_owned(),
        };
        match (self.requests.len() + self.questions.len()).saturating_sub(1) {
            0 => first,
            1 => format!("{first}; one more waits"),
            more => format!("{first}; {more} more wait"),
        }
    }
}

impl Approval {
    /// How it stands, in a sentence for whoever came too late.
    pub fn told(&self) -> String {
        match &self.standing {
            Standing::Open => "it waits for a decision".to_owned(),
            Standing::Allowed(decided) => format!("it was approved already, by {}", decided.by),
            Standing::Denied(decided) => format!("it was denied already, by {}", decided.by),
            Standing::Expired => "its time is over; the turn asks anew when it goes on".to_owned(),
            Standing::Lapsed => "the turn went on without it".to_owned(),
        }
    }
}

impl questions::Asked {
    /// How it stands, in a sentence for whoever came too late.
    pub fn told(&self) -> String {
        match &self.standing {
            questions::Standing::Open => "it waits for an answer".to_owned(),
            questions::Standing::Answered { by, .. } => {
                format!("it was answered already, by {by}")
            }
            questions::Standing::Lapsed => "the turn went on without an answer".to_owned(),
        }
    }
}

/// Waits until a row is no longer open, whoever changed it.
async fn elsewhere(
    store: &Store,
    listener: &Arc<Listener>,
    open: impl Fn(&mut mainstay_store::ReadTx<'_>) -> Result<bool>,
) -> Result<()> {
    while blocking(|| store.read(&open))? {
        let listener = listener.clone();
        // A wait that nobody waits for any longer ends by itself.
        let _ = tokio::task::spawn_blocking(move || listener.wait(PATIENCE)).await;
    }
    Ok(())
}

fn still_asked(tx: &mut mainstay_store::ReadTx<'_>, approval: &Approval) -> Result<bool> {
    let request = &approval.request;
    let found = requests::of_call(tx, request.session, request.call)?;
    Ok(found.is_some_and(|found| found.standing == Standing::Open))
}

/// What the model reads of a call that a person refused.
fn denied(verdict: &Verdict) -> Outcome {
    let why = match verdict {
        Verdict::Deny { reason: Some(reason) } if !reason.trim().is_empty() => {
            format!(" They say: {}", reason.trim())
        }
        _ => String::new(),
    };
    Outcome::failed(format!(
        "[Mainstay: not run. A person was asked and said no.{why} Do not try the same in another \
         way; find another way to the goal, or say what is needed.]"
    ))
}
