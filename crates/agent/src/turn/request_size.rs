//! How large the next request is, by the bytes of its parts and what providers counted before.

use mainstay_journal::entry::{Body, Entry};
use mainstay_message::{AssistantPart, Content, Message, ToolSpec, Usage};

use crate::agent::Agent;
use crate::budget::Amount;
use crate::session::{context, offered_tools};

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
pub(crate) struct RequestSize {
    bytes: usize,
    bytes_per_token: f64,
}

impl RequestSize {
    pub(crate) fn new(prompt: &str) -> Self {
        Self { bytes: prompt.len(), bytes_per_token: USUAL_BYTES }
    }

    /// Takes in that the prompt grew.
    pub(crate) fn add_prompt(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Takes in that a model is told of these tools.
    pub(crate) fn add_tools(&mut self, specs: &[ToolSpec]) {
        self.bytes += specs.iter().map(offered_tools::size).sum::<usize>();
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
    pub(crate) fn learn_from_record(
        &mut self,
        entries: &[Entry],
        shown: &[Message],
        counted: Option<u64>,
    ) {
        let fixed = self.bytes.saturating_sub(context::bytes(shown));
        if let Some(ratio) = context::scale(fixed, entries, shown, counted) {
            self.bytes_per_token = ratio;
        }
    }

    /// Learns from what a provider counted.
    pub(crate) fn learn(&mut self, usage: &Usage) {
        let tokens = usage.all_input();
        if tokens > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let ratio = self.bytes as f64 / tokens as f64;
            self.bytes_per_token = ratio.clamp(0.5, 20.0);
        }
    }

    /// The bytes of a token, as providers count.
    pub(crate) fn bytes_per_token(&self) -> f64 {
        self.bytes_per_token
    }

    pub(crate) fn tokens(&self) -> i64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "an estimate"
        )]
        let tokens = (self.bytes as f64 / self.bytes_per_token) as i64;
        tokens
    }

    /// What the next call may take, after `results` that are not known yet.
    pub(crate) fn reservation(&self, agent: &Agent, results: usize) -> Amount {
        let settings = agent.settings();
        let results = i64::try_from(results).unwrap_or(i64::MAX);
        let input = self.tokens() + results.saturating_mul(USUAL_RESULT);
        let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
        // Any of the chain may answer: the dearest counts, and the one that may write most.
        let mut amount = Amount { money: 0, tokens: input, calls: 1 };
        for candidate in &settings.chain {
            let most = settings.max_output.or(candidate.max_output);
            let output = most.map_or(USUAL_OUTPUT, i64::from);
            let usage = Usage { input: count(input), output: count(output), ..Usage::default() };
            let money = candidate.price_list().map_or(0, |prices| prices.cost(&usage));
            amount.money = amount.money.max(money);
            amount.tokens = amount.tokens.max(input + output);
        }
        amount
    }
}

/// What an entry adds to a request; a picture counts as some bytes.
pub(crate) fn body_bytes(body: &Body) -> usize {
    match body {
        Body::User { content } => content.iter().map(content_bytes).sum(),
        Body::Result { result, .. } => {
            result.content.iter().map(content_bytes).sum::<usize>() + RESULT_BYTES
        }
        Body::Notice { text, .. } => text.len(),
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
