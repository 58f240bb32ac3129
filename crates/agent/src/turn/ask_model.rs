//! ModelReservation a model: the reservation before, the ledger after.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_journal::entry::{Body, Entry};
use mainstay_journal::model_call::{self, Attempt, Purpose};
use mainstay_journal::{SessionId, TurnId};
use mainstay_llm::{Answer, Event as Word, Failure, Memo, Request};
use mainstay_message::{AssistantPart, Content, Message, Redactor, ToolSpec, Usage};
use mainstay_store::{Id, WriteTx};
use tokio::time::Instant;

use crate::agent::{Agent, Parts};
use crate::budget::{self, Account, Amount, Spent};
use crate::{Event, Result, redaction, session::context};

/// What a model that says nothing about its limit may answer, for the reservation.
const USUAL_OUTPUT: i64 = 8_192;
/// Tokens of a result that is not known yet, for the reservation.
const USUAL_RESULT: i64 = 1_000;
/// Bytes of a token, before a provider's own count is known.
pub(crate) const USUAL_BYTES: f64 = 3.5;
/// What a picture counts as: it is some thousand tokens, however many bytes it has.
const IMAGE_BYTES: usize = 6_000;
/// What stands around a call in a request, besides its name and arguments.
const CALL_BYTES: usize = 60;
/// What stands around a result.
pub(crate) const RESULT_BYTES: usize = 40;

/// How large the next request is, by the bytes of its parts and what providers counted before.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    bytes: usize,
    bytes_a_token: f64,
}

/// A call of a model that is written down and not made yet.
#[derive(Debug)]
pub(crate) struct ModelReservation {
    pub(crate) id: Id,
    pub(crate) reserved: Amount,
}

/// What is known of a question while it is being asked.
#[derive(Debug, Default)]
pub(crate) struct FailedAttempts {
    /// The tries that failed.
    failed: Vec<Attempt>,
    /// When the next one is made, where it has to wait.
    next: Option<Instant>,
}

impl FailedAttempts {
    fn note(&mut self, heard: &Word<'_>, redactor: &Redactor) {
        match heard {
            Word::Failed(attempt) => {
                let mut row = row(attempt);
                for text in [&mut row.said, &mut row.request_id].into_iter().flatten() {
                    redactor.string(text);
                }
                self.failed.push(row);
                self.next = None;
            }
            Word::Waiting { wait, .. } => self.next = Some(Instant::now() + *wait),
            Word::Text(_) | Word::Reasoning(_) | Word::Call { .. } => {}
        }
    }
}

impl Sizes {
    pub(crate) fn new(prompt: &str) -> Self {
        Self { bytes: prompt.len(), bytes_a_token: USUAL_BYTES }
    }

    /// Takes in that the prompt grew.
    pub(crate) fn add_prompt(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Takes in that a model is told of these tools.
    pub(crate) fn add_tools(&mut self, specs: &[ToolSpec]) {
        self.bytes += specs.iter().map(crate::session::offered_tools::size).sum::<usize>();
    }

    pub(crate) fn add(&mut self, body: &Body) {
        self.bytes += body_bytes(body);
    }

    /// Takes in that the conversation is another one now, with these bytes.
    pub(crate) fn measure(&mut self, prompt: &str, specs: &[ToolSpec], conversation: usize) {
        self.bytes = prompt.len() + conversation;
        self.add_tools(specs);
    }

    /// Takes in what earlier processes learned of the size of a conversation that is this one.
    pub(crate) fn resume(&mut self, entries: &[Entry], shown: &[Message], counted: Option<u64>) {
        let fixed = self.bytes.saturating_sub(context::bytes(shown));
        if let Some(ratio) = context::scale(fixed, entries, shown, counted) {
            self.bytes_a_token = ratio;
        }
    }

    /// Learns from what a provider counted.
    pub(crate) fn learn(&mut self, usage: &Usage) {
        let tokens = usage.all_input();
        if tokens > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let ratio = self.bytes as f64 / tokens as f64;
            self.bytes_a_token = ratio.clamp(0.5, 20.0);
        }
    }

    /// The bytes of a token, as providers count.
    pub(crate) fn bytes_a_token(&self) -> f64 {
        self.bytes_a_token
    }

    pub(crate) fn tokens(&self) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "an estimate"
        )]
        let tokens = (self.bytes as f64 / self.bytes_a_token) as i64;
        tokens
    }

    /// What the next call may take, after `results` that are not known yet.
    pub(crate) fn reservation(&self, agent: &Agent, results: usize) -> Amount {
        let settings = &agent.parts.settings;
        let first = settings.chain.first();
        let output = settings
            .max_output
            .or_else(|| first.and_then(|candidate| candidate.max_output))
            .map_or(USUAL_OUTPUT, i64::from);
        let results = i64::try_from(results).unwrap_or(i64::MAX);
        let input = self.tokens() + results.saturating_mul(USUAL_RESULT);
        let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
        let usage = Usage { input: count(input), output: count(output), ..Usage::default() };
        // Any of the chain may answer: the dearest counts.
        let prices = settings.chain.iter().filter_map(|candidate| candidate.prices.as_ref());
        let money = prices.map(|prices| prices.cost(&usage)).max().unwrap_or(0);
        Amount { money, tokens: input + output, calls: 1 }
    }
}

/// What an entry adds to a request; a picture counts as some bytes.
pub(crate) fn body_bytes(body: &Body) -> usize {
    match body {
        Body::User { content } => content.iter().map(content_bytes).sum(),
        Body::Result { result, .. } => {
            result.content.iter().map(content_bytes).sum::<usize>() + RESULT_BYTES
        }
        Body::Notice { text } => text.len(),
        // After these the view is measured anew.
        Body::End { .. } | Body::Compaction(_) | Body::Restored { .. } => 0,
        Body::Assistant { parts, .. } => parts.iter().map(part_bytes).sum(),
    }
}

/// The bytes of words or a picture, in an entry as in a message.
pub(crate) fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(_) => IMAGE_BYTES,
    }
}

/// The bytes of a part of what a model said, in an entry as in a message.
pub(crate) fn part_bytes(part: &AssistantPart) -> usize {
    match part {
        AssistantPart::Text(text) => text.len(),
        AssistantPart::Call(call) => call.name.len() + call.arguments.len() + CALL_BYTES,
        AssistantPart::Reasoning(reasoning) => reasoning.text.len(),
    }
}

impl ModelReservation {
    /// Reserves and writes down that the first model is about to be asked; says which budget has no
    /// room where one has none. `correction` belongs to the question before.
    pub(crate) fn begin(
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: (SessionId, TurnId),
        new: &Self,
        correction: &Amount,
    ) -> Result<std::result::Result<(), Spent>> {
        let reserved = budget::reserve(tx, account, &new.reserved, correction)?;
        if reserved.is_ok() {
            let model = agent.parts.settings.chain.first().map(ToString::to_string);
            let model = model.unwrap_or_default();
            model_call::begin(tx, new.id, &purpose(agent, place), &model)?;
        }
        Ok(reserved)
    }

    /// Writes down what became of it, and answers what the reservation differs from what was used.
    pub(crate) fn finish(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        place: (SessionId, TurnId),
        attempts: &[Attempt],
    ) -> Result<Amount> {
        model_call::finish(tx, self.id, &purpose(agent, place), attempts)?;
        Ok(used_by(attempts).minus(&self.reserved))
    }

    /// Writes down a question that is given up in the middle: its tries that failed, and one on its
    /// way, which may have been answered and billed and so keeps what was reserved.
    pub(crate) fn give_up(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: (SessionId, TurnId),
        tried: &FailedAttempts,
    ) -> Result<()> {
        let FailedAttempts { failed, next } = tried;
        if next.is_some_and(|next| Instant::now() < next) {
            let correction = self.finish(tx, agent, place, failed)?;
            return budget::correct(tx, account, &correction);
        }
        let Some(last) = failed.last() else { return Ok(()) };
        let purpose = purpose(agent, place);
        model_call::finish(tx, self.id, &purpose, failed)?;
        model_call::begin(tx, Id::new(), &purpose, &last.model)?;
        budget::correct(tx, account, &used_by(failed))
    }

    /// Takes it back: no model was asked.
    pub(crate) fn withdraw(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        account: &Account,
        place: (SessionId, TurnId),
    ) -> Result<()> {
        model_call::withdraw(tx, self.id, &purpose(agent, place))?;
        budget::correct(tx, account, &Amount::default().minus(&self.reserved))
    }
}

pub(crate) fn used_by(attempts: &[Attempt]) -> Amount {
    let calls = i64::try_from(attempts.len()).unwrap_or(1);
    let mut used = Amount { calls, ..Amount::default() };
    for attempt in attempts {
        used.money += attempt.cost;
        used.tokens += i64::try_from(attempt.usage.total()).unwrap_or(i64::MAX);
    }
    used
}

/// What a model said and nobody was told yet.
#[derive(Default)]
pub(crate) struct EventBuffer(Mutex<Vec<Event>>);

impl EventBuffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// All of it, once.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked.
pub(crate) struct Question<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) session: SessionId,
    pub(crate) prompt: &'a str,
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) messages: &'a [Message],
    pub(crate) memo: &'a Memo,
    /// How long there is for it.
    pub(crate) left: Duration,
}

impl Question<'_> {
    /// Asks the models of the chain. Cancelled by dropping it; `tried` then tells how far it came.
    pub(crate) async fn ask(
        self,
        tried: &mut FailedAttempts,
        heard: &EventBuffer,
    ) -> std::result::Result<Answer, Failure> {
        let Parts { client, settings, .. } = &*self.agent.parts;
        let session = self.session.to_string();
        let request = Request {
            system: self.prompt,
            tools: self.tools,
            messages: self.messages,
            max_output: settings.max_output,
            temperature: settings.temperature,
            effort: settings.effort,
            cache_key: Some(&session),
            memo: Some(self.memo),
        };
        let mut limits = settings.asking.clone();
        limits.chain = limits.chain.min(self.left);
        let mut listener = |word: Word<'_>| {
            tried.note(&word, &settings.redactor);
            if let Some(event) = told(&word) {
                heard.lock().push(event);
            }
        };
        let mut asked = client.call(&settings.chain, &request, &limits, &mut listener).await;
        match &mut asked {
            Ok(answer) => redaction::answer(&settings.redactor, answer),
            Err(failure) => redaction::failure(&settings.redactor, failure),
        }
        asked
    }
}

/// What a face is told of what is heard.
fn told(heard: &Word<'_>) -> Option<Event> {
    Some(match heard {
        Word::Text(delta) => Event::Text { delta: (*delta).to_owned() },
        Word::Reasoning(delta) => Event::Reasoning { delta: (*delta).to_owned() },
        Word::Call { .. } => return None,
        Word::Failed(attempt) => Event::Notice {
            about: "retry",
            message: format!("{}: {}", attempt.candidate, attempt.cause()),
            void: true,
        },
        Word::Waiting { why, wait } => Event::Notice {
            about: "retry",
            message: format!("{why}; waiting {} s", wait.as_secs_f32().ceil()),
            void: false,
        },
    })
}

/// The rows of the ledger.
pub(crate) fn attempts(asked: &std::result::Result<Answer, Failure>) -> Vec<Attempt> {
    let (attempts, cost) = match asked {
        Ok(answer) => (&answer.attempts, answer.cost),
        Err(failure) => (&failure.attempts, None),
    };
    let mut rows: Vec<Attempt> = attempts.iter().map(row).collect();
    if let Some(last) = rows.last_mut() {
        last.cost = cost.unwrap_or(0);
    }
    rows
}

/// The row of one attempt; only an answer has a cost.
fn row(attempt: &mainstay_llm::Attempt) -> Attempt {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Attempt {
        model: attempt.candidate.clone(),
        latency: millis(attempt.latency),
        first_byte: attempt.first_byte.map(millis),
        usage: attempt.usage.unwrap_or_default(),
        cost: 0,
        fault: attempt.fault.map(|fault| fault.as_str().to_owned()),
        said: attempt.fault.map(|_| attempt.said.clone()),
        status: attempt.status.map(i64::from),
        request_id: attempt.request_id.clone(),
    }
}

fn purpose(agent: &Agent, (session, turn): (SessionId, TurnId)) -> Purpose<'static> {
    let owner = agent.parts.owner;
    Purpose { owner, session: Some(session), turn: Some(turn), purpose: "turn" }
}
