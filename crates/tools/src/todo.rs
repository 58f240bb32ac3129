//! The `todo` tool: the steps that a model means to take.
//!
//! The list in force is the one of the last call that went well. It leaves the call as a fact, so
//! the journal has it: a session that is taken up or forked has the list, without a table for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_message::ToolSpec;
use mainstay_store::lock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::{Action, Concurrency, Invocation, Replay, Tool, Traits};
use crate::{Fact, Outcome, schema};

/// The most steps of a list, and the most bytes of one.
const MOST: usize = 50;
const LONGEST: usize = 500;

/// Keeps the list of steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Todo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole list, in order.
    steps: Option<Vec<TodoStep>>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub struct TodoStep {
    #[schemars(description = "")]
    /// What is to be done.
    pub content: String,
    #[schemars(description = "")]
    /// How far it is.
    pub status: Progress,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Done,
}

impl JsonSchema for Progress {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Progress".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["pending", "in_progress", "done"] })
    }
}

/// The list in force. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Steps(Arc<Mutex<Vec<TodoStep>>>);

impl Steps {
    /// Takes note of what a call left.
    pub fn note(&self, fact: &Fact) {
        if let Fact::Steps { steps } = fact {
            steps.clone_into(&mut lock(&self.0));
        }
    }

    /// The steps, in order.
    pub fn all(&self) -> Vec<TodoStep> {
        lock(&self.0).clone()
    }
}

impl Tool for Todo {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "todo".to_owned(),
            description: "Replaces your list of steps, for work of several; without steps, shows \
                          it."
            .to_owned(),
            parameters: schema::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        // Two lists in one message: the later one holds.
        Traits {
            replay: Replay::Idempotent,
            concurrency: Concurrency::Exclusive,
            wall: Duration::from_secs(10),
        }
    }

    fn action(&self, _call: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let done = schema::arguments::<Arguments>(call.arguments).and_then(|given| match given
                .steps
            {
                Some(steps) => replaced(steps),
                None => Ok(Outcome::said(step_lines(&call.workplace.steps.all()))),
            });
            match done {
                Ok(outcome) | Err(outcome) => outcome,
            }
        })
    }
}

fn replaced(steps: Vec<TodoStep>) -> Result<Outcome, Outcome> {
    let wrong = |what: String| Outcome::failed(format!("{what} The list is unchanged."));
    if steps.len() > MOST {
        return Err(wrong(format!("{} steps are too many; the limit is {MOST}.", steps.len())));
    }
    for (number, step) in (1..).zip(&steps) {
        if step.content.trim().is_empty() {
            return Err(wrong(format!("Step {number} is empty.")));
        }
        if step.content.len() > LONGEST {
            return Err(wrong(format!("Step {number} is longer than {LONGEST} bytes.")));
        }
    }
    Ok(Outcome::said(step_lines(&steps)).fact(Fact::Steps { steps }))
}

/// The list, a line each.
fn step_lines(steps: &[TodoStep]) -> String {
    if steps.is_empty() {
        return "The list is empty.".to_owned();
    }
    let lines = steps.iter().map(|step| {
        let mark = match step.status {
            Progress::Pending => "[ ]",
            Progress::InProgress => "[>]",
            Progress::Done => "[x]",
        };
        let content: Vec<&str> = step.content.split_whitespace().collect();
        format!("{mark} {}", content.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Grant;
    use crate::keeper::Launch;
    use crate::{Keeper, Workplace};

    fn workplace() -> Workplace {
        // Nothing here starts it.
        let keeper = Keeper::new(Launch {
            program: "/nonexistent".into(),
            arguments: Vec::new(),
            spool: "/nonexistent".into(),
            grace: Duration::ZERO,
        });
        Workplace::new("/", keeper)
    }

    async fn call(workplace: &Workplace, arguments: Value) -> Outcome {
        let call = Invocation {
            id: "c",
            session: "s",
            arguments: &arguments,
            workplace,
            grant: Grant::NONE,
            target: None,
        };
        let outcome = Todo.run(call, None).await;
        outcome.facts.iter().for_each(|fact| workplace.steps.note(fact));
        outcome
    }

    #[tokio::test]
    async fn the_last_list_that_went_well_is_in_force() {
        let workplace = workplace();
        let empty = call(&workplace, json!({})).await;
        assert_eq!(empty, Outcome::said("The list is empty."));
        let list = json!({ "steps": [
            { "content": "look\n around", "status": "done" },
            { "content": "act", "status": "in_progress" },
            { "content": "check", "status": "pending" },
        ] });
        let set = call(&workplace, list).await;
        assert!(!set.failed, "{set:?}");
        let expected = Outcome::said("[x] look around\n[>] act\n[ ] check");
        assert_eq!(call(&workplace, json!({})).await, expected);

        let many: Vec<Value> =
            (0..51).map(|n| json!({ "content": n.to_string(), "status": "pending" })).collect();
        let wrong = [
            json!({ "steps": many }),
            json!({ "steps": [{ "content": " ", "status": "done" }] }),
            json!({ "steps": [{ "content": "x".repeat(501), "status": "done" }] }),
            json!({ "steps": [{ "content": "x", "status": "begun" }] }),
            json!({ "steps": [{ "content": "x" }] }),
            json!({ "steps": "x" }),
        ];
        for arguments in wrong {
            let outcome = call(&workplace, arguments).await;
            assert!(outcome.failed && outcome.facts.is_empty(), "{outcome:?}");
            assert_eq!(call(&workplace, json!({})).await, expected);
        }
        call(&workplace, json!({ "steps": [] })).await;
        assert_eq!(workplace.steps.all(), []);
    }

    #[test]
    fn a_model_is_told_of_it_in_few_bytes() {
        let spec = serde_json::to_string(&Todo.spec()).unwrap();
        assert!(spec.len() <= 450, "{} bytes: {spec}", spec.len());
    }
}
