//! A summary that is being made while the rounds go on.

use std::sync::Arc;
use std::time::Duration;

use mainstay_journal::TurnId;
use mainstay_journal::model_call::{Attempt, Purpose};
use mainstay_llm::{Candidate, Request};
use mainstay_message::{Content, Message, Usage};
use mainstay_store::{Id, WriteTx};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::draft::MissingSummary;
use super::{Trigger, summary};
use crate::agent::Agent;
use crate::budget::reservations::{self, NewReservation, Stage};
use crate::budget::{self, Account, Amount, BudgetExhausted};
use crate::session::open::OpenSession;
use crate::{Result, redaction, turn::ask_model};

/// The purpose in the ledger of model calls.
pub(super) const PURPOSE: &str = "summary";
/// Tries at one model: a summary can wait for another time.
const ATTEMPTS: u32 = 2;
/// Tokens for the thoughts of models that think first.
const THOUGHTS: i64 = 2_000;

/// A summary that is being made. Dropped, it is given up; its row in the ledger is settled like that of
/// any call whose process died.
pub(crate) struct SummaryInProgress {
    pub(super) wanted: MissingSummary,
    pub(super) trigger: Trigger,
    pub(super) focus: Option<String>,
    pub(super) bill: SummaryBill,
    task: JoinHandle<SummaryResult>,
}

/// What came of it: every try, and the summary or why there is none.
pub(super) type SummaryResult = (Vec<Attempt>, std::result::Result<String, SummaryFailure>);

/// Why there is no summary.
#[derive(Clone, Debug)]
pub(super) struct SummaryFailure {
    pub(super) words: String,
    /// When a provider said that it serves again, in milliseconds since 1970.
    pub(super) retry_at: Option<i64>,
}

/// What a summary was reserved with, and where it is charged.
pub(super) struct SummaryBill {
    id: Id,
    reserved: Amount,
    account: Arc<Account>,
    turn: TurnId,
}

/// What a model is asked.
pub(super) struct SummaryPrompt {
    pub(super) system: String,
    pub(super) words: String,
    /// The most tokens of the summary.
    pub(super) most: i64,
}

impl SummaryPrompt {
    /// The most tokens that may be written.
    fn max_output(&self) -> u32 {
        u32::try_from(self.most.saturating_mul(2).saturating_add(THOUGHTS)).unwrap_or(u32::MAX)
    }

    /// The tokens it has itself and may be answered with, at so many bytes a token.
    fn usage(&self, tokens: impl Fn(usize) -> i64) -> Usage {
        let input = tokens(self.system.len() + self.words.len());
        let input = u64::try_from(input).unwrap_or(0);
        Usage { input, output: u64::from(self.max_output()), ..Usage::default() }
    }
}

impl SummaryBill {
    /// Reserves a summary and writes down that it is about to be asked for, under the session's lease.
    /// The inner error names the budget that has no room for it.
    pub(super) fn open(
        session: &OpenSession,
        account: &Arc<Account>,
        turn: TurnId,
        prompt: &SummaryPrompt,
        tokens: impl Fn(usize) -> i64,
    ) -> Result<std::result::Result<Self, BudgetExhausted>> {
        let agent = &session.agent;
        let chain = candidates(agent);
        let usage = prompt.usage(tokens);
        let prices = chain.iter().flatten().filter_map(|candidate| candidate.price_list());
        let money = prices.map(|prices| prices.cost(&usage)).max().unwrap_or(0);
        let tokens = i64::try_from(usage.total()).unwrap_or(i64::MAX);
        let reserved = Amount { money, tokens, calls: 1 };
        let bill = Self { id: Id::new(), reserved, account: account.clone(), turn };
        let model = chain.first().and_then(|chain| chain.first()).map(ToString::to_string);
        let model = model.unwrap_or_default();
        let reservation = NewReservation {
            id: bill.id,
            purpose: bill.purpose(session),
            model: &model,
            account,
            amount: bill.reserved,
            stage: Stage::Sent,
        };
        let opened = session.write(|tx| reservation.make(tx, &Amount::default()))?;
        Ok(opened.map(|()| bill))
    }

    /// Writes down what became of it, and what it took.
    pub(super) fn settle(
        &self,
        tx: &mut WriteTx<'_>,
        session: &OpenSession,
        attempts: &[Attempt],
    ) -> Result<()> {
        if attempts.is_empty() {
            // It was given up and may have been billed, so it keeps what was reserved.
            return Ok(());
        }
        let purpose = self.purpose(session);
        let correction = reservations::finish(tx, self.id, &purpose, attempts, &self.reserved)?;
        budget::correct(tx, &self.account, &correction)
    }

    fn purpose(&self, session: &OpenSession) -> Purpose<'static> {
        Purpose {
            owner: session.agent.owner(),
            session: Some(session.id),
            turn: Some(self.turn),
            purpose: PURPOSE,
        }
    }
}

impl SummaryInProgress {
    /// Begins to ask for a summary.
    pub(super) fn begin(
        agent: &Agent,
        wanted: MissingSummary,
        prompt: SummaryPrompt,
        bill: SummaryBill,
        trigger: Trigger,
        focus: Option<String>,
    ) -> Self {
        let task = tokio::spawn(make(agent.clone(), prompt));
        Self { wanted, trigger, focus, bill, task }
    }

    /// Whether there is an answer, or the certainty that there will be none.
    pub(super) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for what comes of it, which takes no longer than its time limit.
    pub(super) async fn made(&mut self) -> SummaryResult {
        match (&mut self.task).await {
            Ok(made) => made,
            Err(error) => {
                let words = format!("Mainstay failed while making it: {error}");
                (Vec::new(), Err(SummaryFailure { words, retry_at: None }))
            }
        }
    }
}

impl Drop for SummaryInProgress {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The models to ask, a chain after the other: the one for summaries, then those of the turn.
fn candidates(agent: &Agent) -> Vec<Vec<Arc<Candidate>>> {
    let settings = agent.settings();
    let own = settings.compaction.model.iter().map(|model| vec![model.clone()]);
    let is_own = |other: &Arc<Candidate>| {
        let own = settings.compaction.model.as_ref();
        own.is_some_and(|own| own.to_string() == other.to_string())
    };
    let others: Vec<_> = settings.chain.iter().filter(|other| !is_own(other)).cloned().collect();
    own.chain([others]).filter(|chain| !chain.is_empty()).collect()
}

/// The window of the model that is asked first. Returns `None` if it is not known.
pub(super) fn first_window(agent: &Agent) -> Option<u64> {
    candidates(agent).first().and_then(|chain| chain.first()).and_then(|first| first.window)
}

async fn make(agent: Agent, prompt: SummaryPrompt) -> SummaryResult {
    let settings = agent.settings();
    let deadline = Instant::now() + settings.compaction.timeout;
    let messages = [Message::User(vec![Content::Text(prompt.words.clone())])];
    let chains = candidates(&agent);
    let mut attempts = Vec::new();
    let mut words = Vec::new();
    let mut retry_at = None;
    for (number, chain) in chains.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        // The next chain needs time too.
        let left = if number + 1 < chains.len() { left / 2 } else { left };
        if left < Duration::from_millis(1) {
            break;
        }
        let most = chain.iter().filter_map(|candidate| candidate.max_output).min();
        let request = Request {
            system: &prompt.system,
            messages: &messages,
            max_output: Some(prompt.max_output().min(most.unwrap_or(u32::MAX))),
            ..Request::default()
        };
        let mut limits = settings.asking.clone();
        limits.chain = limits.chain.min(left);
        limits.attempts = limits.attempts.min(ATTEMPTS);
        let mut asked = agent.parts.client.call(chain, &request, &limits, &mut |_| {}).await;
        match &mut asked {
            Ok(answer) => redaction::answer(&settings.redactor, answer),
            Err(failure) => redaction::failure(&settings.redactor, failure),
        }
        attempts.extend(ask_model::attempts(&asked));
        match asked {
            Ok(answer) => match summary::taken(&answer) {
                Ok(text) => return (attempts, Ok(text)),
                Err(why) => words.push(format!("{}: {why}", answer.candidate)),
            },
            Err(failure) => {
                words.push(failure.to_string());
                retry_at = retry_at.or(failure.retry_at);
            }
        }
    }
    if words.is_empty() {
        let no_model = chains.is_empty();
        let why = if no_model { "no model is configured" } else { "there was no time left" };
        words.push(why.to_owned());
    }
    (attempts, Err(SummaryFailure { words: words.join("; then "), retry_at }))
}
