//! A trial: whether a model calls a tool when it is asked to.

use std::sync::Arc;

use mainstay_journal::model_call::Purpose;
use mainstay_llm::{Candidate, Client, Request};
use mainstay_message::{AssistantPart, Content, Message, Redactor, ToolSpec, Usage};
use mainstay_store::{Id, OwnerId, Store};
use serde_json::json;

use crate::agent::blocking;
use crate::budget::reservations::{self, NewReservation, Stage};
use crate::budget::{self, Account, Amount, Limits};
use crate::turn::answer::spoken_text;
use crate::turn::ask_model;
use crate::{Result, redaction};

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It called the tool.
    CallsTools,
    /// It said this instead.
    OnlySpeaks(String),
    /// There was no answer, for this reason.
    Failed(String),
}

const TOOL: &str = "report";
/// Models that think aloud need room before they call.
const MOST_OUTPUT: u32 = 2_000;
/// An upper bound on the tokens of the question.
const MOST_INPUT: u64 = 1_000;

/// Asks a model to call a tool, once. Like every call it is reserved, and written into the ledger.
pub async fn trial(
    store: &Store,
    owner: OwnerId,
    client: &Client,
    candidate: &Arc<Candidate>,
    day: Limits,
    limits: &mainstay_llm::Limits,
    redactor: &Redactor,
) -> Result<Trial> {
    let account = Account { owner, path: Vec::new(), day };
    let purpose = Purpose { owner, session: None, turn: None, purpose: "trial" };
    let id = Id::new();
    let usage = Usage { input: MOST_INPUT, output: u64::from(MOST_OUTPUT), ..Usage::default() };
    let money = candidate.price_list().map_or(0, |prices| prices.cost(&usage));
    let tokens = i64::try_from(usage.total()).unwrap_or(i64::MAX);
    let amount = Amount { money, tokens, calls: 1 };
    let reserved = blocking(|| {
        let model = candidate.to_string();
        let reservation = NewReservation {
            id,
            purpose,
            model: &model,
            account: &account,
            amount,
            stage: Stage::Sent,
        };
        store.write(|tx| reservation.make(tx, &Amount::default()))
    })?;
    if let Err(spent) = reserved {
        return Ok(Trial::Failed(spent.text));
    }

    let tools = [ToolSpec {
        name: TOOL.to_owned(),
        description: "Reports that you are ready.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "word": { "type": "string" } },
            "required": ["word"],
        })
        .into(),
    }];
    let question = "Call the tool `report` with the word \"ready\". Say nothing else.";
    let messages = [Message::User(vec![Content::Text(question.to_owned())])];
    let request = Request {
        system: "You work with the tools you are given.",
        tools: &tools,
        messages: &messages,
        max_output: Some(candidate.max_output.unwrap_or(MOST_OUTPUT).min(MOST_OUTPUT)),
        ..Request::default()
    };
    let mut asked =
        client.call(std::slice::from_ref(candidate), &request, limits, &mut |_| {}).await;

    match &mut asked {
        Ok(answer) => redaction::answer(redactor, answer),
        Err(failure) => redaction::failure(redactor, failure),
    }
    let attempts = ask_model::attempts(&asked);
    blocking(|| {
        store.write(|tx| -> Result<_> {
            let correction = reservations::finish(tx, id, &purpose, &attempts, &amount)?;
            budget::correct(tx, &account, &correction)
        })
    })?;
    Ok(match asked {
        Err(failure) => Trial::Failed(failure.to_string()),
        Ok(answer) => {
            let called = |part: &AssistantPart| matches!(part, AssistantPart::Call(call) if call.name == TOOL);
            if answer.parts.iter().any(called) {
                Trial::CallsTools
            } else {
                Trial::OnlySpeaks(spoken_text(&answer.parts))
            }
        }
    })
}
