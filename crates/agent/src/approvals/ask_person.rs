//! Asking a person in the middle of a turn: whether a call may run, or what a model wants to know.
//!
//! What is asked is a row before anybody sees it, and what is answered is a commit before anything is
//! done with it. Whoever answers first is heard: the person at hand, or another process. Where nobody
//! answers, the turn is parked and says what it waits for.

use std::sync::Arc;
use std::time::Duration;

use mainstay_journal::TurnRef;
use mainstay_journal::turn::{ParkReason, Parked};
use mainstay_store::{Id, Listener};
use mainstay_tools::Outcome;
use mainstay_tools::aside::aside;
use tokio::time::{sleep, sleep_until};

use crate::agent::Agent;
use crate::approvals::requests::{self, Approval, Decider, Effort, NewRequest, RequestStanding};
use crate::calls::decide::{CallDecision, decide_call};
use crate::policy::Judgement;
use crate::turn::end::TurnStop;
use crate::turn::runner::TurnRunner;
use crate::{Question, Request, Result, Verdict, approvals::questions, approvals::rules};

/// Who decided, for whoever comes too late.
const HERE: &str = "the person at the turn's terminal";
/// The shortest time that a request waits.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long one wait for news from other processes takes at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is asked of a call that the policy asks about.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalNeeded {
    pub(crate) judged: Judgement,
    /// The action in words.
    pub(crate) action: String,
    /// Binds a decision to it.
    pub(crate) bound: String,
}

/// What a person, or a rule of theirs, decided about a call.
pub(crate) enum PersonsDecision {
    /// It may run.
    Allowed {
        /// The request that was answered; `None` if a rule covers the call.
        request: Option<Id>,
    },
    /// It may not, and the model reads this.
    Refused(Outcome),
}

/// Something that was put to a person.
enum Put<T> {
    Answered(T),
    /// Look at the row again: somebody else may have answered, or its time is over.
    Elsewhere,
    Nobody,
}

impl TurnRunner<'_> {
    /// Has a person decide about a call that the policy asks about.
    pub(crate) async fn ask_approval(
        &mut self,
        index: usize,
        needed: &ApprovalNeeded,
    ) -> std::result::Result<PersonsDecision, TurnStop> {
        if self.is_covered(needed)? {
            return Ok(PersonsDecision::Allowed { request: None });
        }
        loop {
            let approval = self.find_or_make_request(index, needed)?;
            match &approval.standing {
                RequestStanding::Allowed(_) => {
                    return Ok(PersonsDecision::Allowed { request: Some(approval.request.id) });
                }
                RequestStanding::Denied(decided) => {
                    return Ok(PersonsDecision::Refused(denied(&decided.verdict)));
                }
                RequestStanding::Open | RequestStanding::Expired | RequestStanding::Lapsed => {}
            }
            let request = &approval.request;
            let until = Some(request.expires_at);
            let asker = self.session.trust.asker.clone();
            let asked = async {
                match &asker {
                    Some(asker) => asker.decide(request).await,
                    None => None,
                }
            };
            match self.put(asked, until, |tx| still_asked(tx, &approval)).await? {
                Put::Answered(verdict) => self.note_verdict(request.id, &verdict)?,
                Put::Elsewhere => {}
                Put::Nobody => return Err(self.wait_for_people()?),
            }
        }
    }

    /// Has a person answer a question that a call asks.
    pub(crate) async fn ask_question(
        &mut self,
        index: usize,
        text: &str,
        choices: &[String],
    ) -> std::result::Result<Outcome, TurnStop> {
        loop {
            let asked = self.find_or_make_question(index, text, choices)?;
            if let questions::QuestionStanding::Answered { answer, .. } = &asked.standing {
                return Ok(Outcome::said(answer.as_str()));
            }
            let question = &asked.question;
            let asker = self.session.trust.asker.clone();
            let answer = async {
                match &asker {
                    Some(asker) => asker.answer(question).await,
                    None => None,
                }
            };
            let (session, call) = (question.session, question.call);
            let open = move |tx: &mut mainstay_store::ReadTx<'_>| {
                let found = questions::of_call(tx, session, call)?;
                Ok(found.is_some_and(|asked| asked.standing == questions::QuestionStanding::Open))
            };
            match self.put(answer, None, open).await? {
                Put::Answered(answer) => self.note_answer(question.id, &answer)?,
                Put::Elsewhere => {}
                Put::Nobody => return Err(self.wait_for_people()?),
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
        if self.session.trust.asker.is_none() {
            return Ok(Put::Nobody);
        }
        let agent = self.session.agent.clone();
        // Listen first, then look: nothing falls in between.
        let listener = Arc::new(agent.parts.store.listen([requests::TOPIC])?);
        let left = until.map_or(Duration::MAX, |until| {
            let left = until.saturating_sub(mainstay_store::wall_millis());
            Duration::from_millis(u64::try_from(left).unwrap_or(0))
        });
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(TurnStop::Cancelled),
            answer = asked => Ok(answer.map_or(Put::Nobody, Put::Answered)),
            changed = elsewhere(&agent, &listener, open) => {
                changed?;
                Ok(Put::Elsewhere)
            }
            () = sleep(left) => Ok(Put::Elsewhere),
            () = sleep_until(self.limits.deadline) => Err(self.out_of_time()),
        }
    }

    /// Whether somebody said "always" to all that a call needs. The rules are read for every such call:
    /// one that another process has forgotten must not hold a moment longer.
    fn is_covered(&self, needed: &ApprovalNeeded) -> Result<bool> {
        let Some(needs) = needed.judged.needs.as_ref().filter(|needs| !needs.is_empty()) else {
            return Ok(false);
        };
        let agent = &self.session.agent;
        let workspace = &self.session.workplace.workspace;
        let sealer = agent.settings().sealer.as_ref();
        let (owner, session) = (agent.parts.owner, self.session.id);
        let known = agent.read(|tx| rules::rules_of(tx, owner, workspace, session, sealer))?;
        Ok(needs.iter().all(|need| known.iter().any(|rule| rule.covers(need))))
    }

    /// The request for a call as it stands, or a new one: none was asked about exactly this, or its
    /// time is over.
    fn find_or_make_request(&mut self, index: usize, needed: &ApprovalNeeded) -> Result<Approval> {
        let parts = self.session.agent.parts.clone();
        let TurnRef { session, turn } = self.turn.place();
        let call = self.calls[index].id;
        let found = self.session.agent.read(|tx| requests::of_call(tx, session, call))?;
        let holds = |approval: &Approval| {
            approval.is_about(&needed.bound)
                // What somebody else wrote is no decision: it is asked again.
                && approval.is_proven(parts.settings.sealer.as_ref())
                && !matches!(approval.standing, RequestStanding::Expired | RequestStanding::Lapsed)
        };
        if let Some(found) = found.filter(holds) {
            return Ok(found);
        }
        let needs = needed.judged.needs.iter().flatten();
        let mut rules = Vec::new();
        for rule in needs.filter_map(crate::policy::Need::rule) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let tool = self.calls[index].asked.name.clone();
        let arguments = self.calls[index].arguments.as_ref().ok().cloned().unwrap_or_default();
        let workspace = self.session.workplace.workspace.display().to_string();
        let new = NewRequest {
            owner: parts.owner,
            session,
            turn,
            call,
            tool: &tool,
            class: needed.judged.class,
            action: &needed.action,
            arguments: &arguments,
            reason: needed.judged.reason.as_deref(),
            rules: &rules,
            bound: &needed.bound,
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
    fn find_or_make_question(
        &mut self,
        index: usize,
        text: &str,
        choices: &[String],
    ) -> Result<questions::RecordedQuestion> {
        let owner = self.session.agent.owner();
        let sealer = self.session.agent.settings().sealer.clone();
        let TurnRef { session, turn } = self.turn.place();
        let call = self.calls[index].id;
        let found = self.session.agent.read(|tx| questions::of_call(tx, session, call))?;
        let same = |asked: &questions::RecordedQuestion| {
            asked.question.text == requests::storable(text)
                && asked.question.choices == choices
                && asked.is_proven(sealer.as_ref())
        };
        if let Some(found) = found.filter(same) {
            return Ok(found);
        }
        let id = Id::new();
        self.commit(|tx| {
            let new = questions::NewQuestion { owner, session, turn, call, text, choices };
            questions::ask(tx, id, &new)?;
            questions::get(tx, owner, id)
        })
    }

    /// Writes down what the person at hand decided, unless somebody was faster.
    fn note_verdict(&mut self, id: Id, verdict: &Verdict) -> Result<()> {
        let owner = self.session.agent.owner();
        let sealer = self.session.agent.settings().sealer.clone();
        // Whoever asks was told what a yes takes.
        let given = Decider { by: HERE, effort: Effort::Word, sealer: sealer.as_ref() };
        let came = self.commit(|tx| requests::decide(tx, owner, id, verdict, given))?;
        if let requests::DecideOutcome::TooLate(approval) = came
            && let Some(asker) = &self.session.trust.asker
        {
            asker.overtaken(&approval.standing_text());
        }
        Ok(())
    }

    fn note_answer(&mut self, id: Id, answer: &str) -> Result<()> {
        let parts = self.session.agent.parts.clone();
        let answer = parts.settings.redactor.text(answer);
        let given = questions::Answerer { by: HERE, sealer: parts.settings.sealer.as_ref() };
        let came = self.commit(|tx| questions::answer(tx, parts.owner, id, &answer, given))?;
        if let questions::AnswerOutcome::TooLate(asked) = came
            && let Some(asker) = &self.session.trust.asker
        {
            asker.overtaken(&asked.standing_text());
        }
        Ok(())
    }

    /// Parks the turn. Whatever else of this message a person has to be asked about is asked too, so
    /// that one visit settles it all.
    fn wait_for_people(&mut self) -> Result<TurnStop> {
        let (mut waiting, mut asked) = (Vec::new(), Vec::new());
        for index in 0..self.calls.len() {
            let call = &self.calls[index];
            // What will be asked about it is known when hooks have seen it.
            if call.is_recorded() || self.awaits_hooks(call) {
                continue;
            }
            match decide_call(call, self.session, &self.limits.loop_guard) {
                CallDecision::AskApproval(needed) => {
                    if self.is_covered(&needed)? {
                        continue;
                    }
                    let approval = self.find_or_make_request(index, &needed)?;
                    if approval.standing == RequestStanding::Open {
                        waiting.push(approval.request);
                    }
                }
                CallDecision::AskQuestion { text, choices } => {
                    let question = self.find_or_make_question(index, &text, &choices)?;
                    if question.standing == questions::QuestionStanding::Open {
                        asked.push(question.question);
                    }
                }
                CallDecision::Run(_)
                | CallDecision::Settle(_)
                | CallDecision::Refuse(_)
                | CallDecision::Withhold(_)
                | CallDecision::EndTurn(_) => {}
            }
        }
        let parked = waiting_for(&waiting, &asked);
        Ok(TurnStop::Parked { parked, requests: waiting, questions: asked })
    }
}

/// Why a turn is parked that waits for these decisions and answers.
fn waiting_for(requests: &[Request], questions: &[Question]) -> Parked {
    let (reason, first) = match (requests.first(), questions.first()) {
        (Some(request), _) => {
            let text = format!(
                "{}, and the policy requires approval (request {})",
                request.wants(),
                request.id
            );
            (ParkReason::Approval, text)
        }
        (None, Some(question)) => {
            let text = format!("the model asks: {} (question {})", question.text, question.id);
            (ParkReason::Answer, text)
        }
        (None, None) => (ParkReason::Approval, "a decision is needed".to_owned()),
    };
    let text = match (requests.len() + questions.len()).saturating_sub(1) {
        0 => first,
        1 => format!("{first}; one more waits"),
        more => format!("{first}; {more} more wait"),
    };
    Parked { reason, text }
}

impl Approval {
    /// How it stands, in a sentence for whoever came too late.
    pub fn standing_text(&self) -> String {
        match &self.standing {
            RequestStanding::Open => "it waits for a decision".to_owned(),
            RequestStanding::Allowed(decided) => {
                format!("it was already approved by {}", decided.by)
            }
            RequestStanding::Denied(decided) => format!("it was already denied by {}", decided.by),
            RequestStanding::Expired => {
                "it has expired; the turn asks again when it is resumed".to_owned()
            }
            RequestStanding::Lapsed => "the turn went on without it".to_owned(),
        }
    }
}

impl questions::RecordedQuestion {
    /// How it stands, in a sentence for whoever came too late.
    pub fn standing_text(&self) -> String {
        match &self.standing {
            questions::QuestionStanding::Open => "it waits for an answer".to_owned(),
            questions::QuestionStanding::Answered { by, .. } => {
                format!("it was already answered by {by}")
            }
            questions::QuestionStanding::Lapsed => "the turn went on without an answer".to_owned(),
        }
    }
}

/// Waits until a row is no longer open, whoever changed it.
async fn elsewhere(
    agent: &Agent,
    listener: &Arc<Listener>,
    open: impl Fn(&mut mainstay_store::ReadTx<'_>) -> Result<bool>,
) -> Result<()> {
    while agent.read(&open)? {
        let listener = listener.clone();
        // A wait that nobody waits for any longer ends by itself.
        let _ = aside("listener", move || listener.wait(PATIENCE)).await;
    }
    Ok(())
}

fn still_asked(tx: &mut mainstay_store::ReadTx<'_>, approval: &Approval) -> Result<bool> {
    let request = &approval.request;
    let found = requests::of_call(tx, request.session, request.call)?;
    Ok(found.is_some_and(|found| found.standing == RequestStanding::Open))
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

#[cfg(test)]
mod tests;
