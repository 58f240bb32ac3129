//! Asking a model: the reservation before, the ledger after.

use std::time::Duration;

use mainstay_journal::entry::Body;
use mainstay_journal::model_call::{self, Attempt, Purpose};
use mainstay_journal::{SessionId, TurnId};
use mainstay_llm::{Answer, Event as Heard, Failure, Request};
use mainstay_message::{AssistantPart, Content, Usage};
use mainstay_store::{Id, WriteTx};

use crate::agent::Agent;
use crate::budget::{self, Account, Amount, Spent};
use crate::work::Work;
use crate::{Event, Observer, Result};

/// What a model that says nothing about its limit may answer, for the reservation.
const USUAL_OUTPUT: i64 = 8_192;
/// Bytes of a token, before a provider's own count is known.
const USUAL_BYTES: f64 = 3.5;

/// How large the next request is, by the bytes of its parts and what providers counted before.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    bytes: usize,
    bytes_a_token: f64,
}

/// A call of a model that is written down and not made yet.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) id: Id,
    pub(crate) reserved: Amount,
}

impl Sizes {
    pub(crate) fn new(agent: &Agent, prompt: &str) -> Self {
        let tools: usize = agent
            .parts
            .specs
            .iter()
            .map(|spec| {
                spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
            })
            .sum();
        Self { bytes: tools + prompt.len(), bytes_a_token: USUAL_BYTES }
    }

    pub(crate) fn add(&mut self, body: &Body) {
        let content = |content: &[Content]| -> usize {
            content
                .iter()
                .map(|part| match part {
                    Content::Text(text) => text.len(),
                    // A picture is some thousand tokens, however many bytes it has.
                    Content::Image(_) => 6_000,
                })
                .sum()
        };
        self.bytes += match body {
            Body::User { content: parts } => content(parts),
            Body::Result { result, .. } => content(&result.content) + 40,
            Body::Notice { text } => text.len(),
            Body::End { .. } => 0,
            Body::Assistant { parts, .. } => parts
                .iter()
                .map(|part| match part {
                    AssistantPart::Text(text) => text.len(),
                    AssistantPart::Call(call) => call.name.len() + call.arguments.len() + 60,
                    AssistantPart::Reasoning(reasoning) => reasoning.text.len(),
                })
                .sum(),
        };
    }

    /// Learns from what a provider counted.
    fn learn(&mut self, usage: &Usage) {
        let tokens = usage.all_input();
        if tokens > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let ratio = self.bytes as f64 / tokens as f64;
            self.bytes_a_token = ratio.clamp(0.5, 20.0);
        }
    }

    fn tokens(&self) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "an estimate"
        )]
        let tokens = (self.bytes as f64 / self.bytes_a_token) as i64;
        tokens
    }

    /// What the next call may take.
    pub(crate) fn reservation(&self, agent: &Agent) -> Amount {
        let settings = &agent.parts.settings;
        let first = settings.chain.first();
        let output = settings
            .max_output
            .or_else(|| first.and_then(|candidate| candidate.max_output))
            .map_or(USUAL_OUTPUT, i64::from);
        let input = self.tokens();
        let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
        let usage = Usage { input: count(input), output: count(output), ..Usage::default() };
        let money = first
            .and_then(|candidate| candidate.prices.as_ref())
            .map_or(0, |prices| prices.cost(&usage));
        Amount { money, tokens: input + output, calls: 1 }
    }
}

impl Asking {
    /// Reserves and writes down that the first model is about to be asked; says which budget has no
    /// room where one has none.
    pub(crate) fn begin(
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        place: (SessionId, TurnId),
        reserved: Amount,
        id: Id,
    ) -> Result<std::result::Result<Self, Spent>> {
        let model = agent.parts.settings.chain.first().map(ToString::to_string);
        if let Err(spent) =
            budget::reserve(tx, &account(agent, &budget::of_turn(place.1)), &reserved)?
        {
            return Ok(Err(spent));
        }
        model_call::begin(tx, id, &purpose(agent, place), &model.unwrap_or_default())?;
        Ok(Ok(Self { id, reserved }))
    }

    /// Writes down what became of it.
    pub(crate) fn finish(
        &self,
        tx: &mut WriteTx<'_>,
        agent: &Agent,
        place: (SessionId, TurnId),
        attempts: &[Attempt],
    ) -> Result<()> {
        model_call::finish(tx, self.id, &purpose(agent, place), attempts)?;
        let mut used =
            Amount { calls: i64::try_from(attempts.len()).unwrap_or(1), ..Amount::default() };
        for attempt in attempts {
            used.money += attempt.cost;
            used.tokens += i64::try_from(attempt.usage.total()).unwrap_or(i64::MAX);
        }
        budget::settle(tx, &account(agent, &budget::of_turn(place.1)), &self.reserved, &used)
    }
}

/// Asks the models of the chain. Cancelled by dropping it.
pub(crate) async fn ask(
    work: &mut Work,
    left: Duration,
    observer: Observer<'_>,
) -> std::result::Result<Answer, Failure> {
    let agent = work.agent.clone();
    let settings = &agent.parts.settings;
    let session = work.id.to_string();
    let request = Request {
        system: &work.prompt,
        tools: &agent.parts.specs,
        messages: work.transcript.messages(),
        max_output: settings.max_output,
        temperature: settings.temperature,
        effort: settings.effort,
        cache_key: Some(&session),
    };
    let mut limits = settings.asking.clone();
    limits.chain = limits.chain.min(left);
    let mut listener = |heard: Heard<'_>| match heard {
        Heard::Text(delta) => observer(Event::Text { delta: delta.to_owned() }),
        Heard::Reasoning(delta) => observer(Event::Reasoning { delta: delta.to_owned() }),
        Heard::Call { .. } => {}
        Heard::Failed(attempt) => {
            observer(Event::Notice {
                about: "retry",
                message: format!("{}: {}", attempt.candidate, attempt.cause()),
                void: true,
            });
        }
        Heard::Waiting { why, wait } => observer(Event::Notice {
            about: "retry",
            message: format!("{why}; waiting {} s", wait.as_secs_f32().ceil()),
            void: false,
        }),
    };
    let asked = agent.parts.client.call(&settings.chain, &request, &limits, &mut listener).await;
    if let Ok(answer) = &asked
        && let Some(usage) = &answer.usage
    {
        work.sizes.learn(usage);
    }
    asked
}

/// The rows of the ledger.
pub(crate) fn attempts(asked: &std::result::Result<Answer, Failure>) -> Vec<Attempt> {
    let (attempts, cost) = match asked {
        Ok(answer) => (&answer.attempts, answer.cost),
        Err(failure) => (&failure.attempts, None),
    };
    let last = attempts.len().saturating_sub(1);
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    attempts
        .iter()
        .enumerate()
        .map(|(number, attempt)| Attempt {
            model: attempt.candidate.clone(),
            latency: millis(attempt.latency),
            first_byte: attempt.first_byte.map(millis),
            usage: attempt.usage.unwrap_or_default(),
            cost: if number == last { cost.unwrap_or(0) } else { 0 },
            fault: attempt.fault.map(|fault| fault.as_str().to_owned()),
            said: attempt.fault.map(|_| attempt.said.clone()),
            status: attempt.status.map(i64::from),
            request_id: attempt.request_id.clone(),
        })
        .collect()
}

fn purpose(agent: &Agent, (session, turn): (SessionId, TurnId)) -> Purpose<'static> {
    let owner = agent.parts.owner;
    Purpose { owner, session: Some(session), turn: Some(turn), purpose: "turn" }
}

fn account<'a>(agent: &Agent, id: &'a str) -> Account<'a> {
    Account { owner: agent.parts.owner, id, day: agent.parts.settings.budgets.day }
}
