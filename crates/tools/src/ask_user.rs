//! The `ask_user` tool: a question of the model to the person it works for.
//!
//! Who is asked, and where, is the engine's business: it writes the question down and gives the answer
//! as the outcome of the call. Nothing is run here.

use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tool::{Action, Concurrency, Invocation, Replay, Tool, Traits};
use crate::{Outcome, schema};

/// Asks the person.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    question: String,
    /// Answers to choose from.
    choices: Option<Vec<String>>,
}

impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ask_user".to_owned(),
            description: "Asks the user a question and waits for the answer. Only for what you \
                          cannot find out or decide yourself."
                .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            replay: Replay::Pure,
            concurrency: Concurrency::Exclusive,
            wall: Duration::from_secs(1),
        }
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        match schema::arguments::<Arguments>(call.arguments) {
            Ok(Arguments { question, choices }) if !question.trim().is_empty() => {
                Action::Ask { question, choices: choices.unwrap_or_default() }
            }
            // Nobody is asked: the model is told what is wrong.
            _ => Action::Read,
        }
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        let given = schema::arguments::<Arguments>(call.arguments);
        Box::pin(async move {
            match given {
                Err(outcome) => outcome,
                Ok(_) => Outcome::failed("The question is empty. Nobody was asked."),
            }
        })
    }
}
