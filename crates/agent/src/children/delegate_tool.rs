//! The `delegate` tool: a task for a helper with a session of its own.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_journal::SessionId;
use mainstay_message::ToolSpec;
use mainstay_store::Id;
use mainstay_tools::{Action, Concurrency, Invocation, Outcome, Replay, Settled, Tool, Traits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Parts};
use crate::children::runner::{Children, Errand};

/// The tool's name.
pub(crate) const NAME: &str = "delegate";
/// A child's own limits end it; this is for one that cannot be ended.
const WALL: Duration = Duration::from_secs(24 * 60 * 60);

/// Gives tasks to helpers.
pub(crate) struct Delegate {
    /// The agent has this tool, so it must not be held by it.
    agent: Weak<Parts>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// All the helper has to know.
    task: String,
    /// Dollars it may spend.
    budget: Option<f64>,
}

impl Delegate {
    pub(crate) fn new(agent: Weak<Parts>) -> Self {
        Self { agent }
    }

    fn agent(&self) -> Result<Agent, Outcome> {
        let parts: Arc<Parts> = self.agent.upgrade().ok_or_else(gone)?;
        Ok(Agent { parts })
    }

    /// Works on the child of a call until it has an end, with or without letting it go on. Dropped
    /// before that, it stops the child.
    async fn see_through(
        &self,
        call: Invocation<'_>,
        cancel: CancellationToken,
    ) -> Result<Outcome, Outcome> {
        let agent = self.agent()?;
        let errand = errand(call)?;
        let running = Children::start(&agent, errand, cancel);
        let _stop = running.cancel.clone().drop_guard();
        Ok(running.outcome().await)
    }
}

impl Tool for Delegate {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Gives a task to a helper, who has the same tools and sees nothing of this \
                          conversation, and waits for its answer. Several calls in one message work \
                          side by side."
                .to_owned(),
            parameters: mainstay_tools::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits { replay: Replay::Kept, concurrency: Concurrency::Parallel, wall: WALL }
    }

    fn action(&self, call: &Invocation<'_>) -> Action {
        match errand(*call) {
            Ok(errand) => Action::Delegate(errand.task),
            // Nothing is begun: the model is told what is wrong.
            Err(_) => Action::Read,
        }
    }

    fn settle<'a>(
        &'a self,
        call: Invocation<'a>,
        _plan: Option<&'a Value>,
    ) -> BoxFuture<'a, Settled> {
        // A child that has begun is found by its name and goes on; one that has not begins.
        Box::pin(async move {
            match self.see_through(call, CancellationToken::new()).await {
                Ok(outcome) | Err(outcome) => Settled::Done(outcome),
            }
        })
    }

    fn abandon<'a>(&'a self, call: Invocation<'a>) -> BoxFuture<'a, Option<Outcome>> {
        Box::pin(async move {
            let stopped = CancellationToken::new();
            stopped.cancel();
            if let Ok(agent) = self.agent()
                && let Ok(errand) = errand(call)
                && let Some(running) = agent.parts.children.running(errand.id)
            {
                running.cancel.cancel();
            }
            match self.see_through(call, stopped).await {
                // Nobody waits for it any longer.
                Ok(Outcome { waits: Some(waits), .. }) => Some(Outcome::failed(format!(
                    "The helper did not finish (session {}): {}",
                    call.id, waits.reason
                ))),
                Ok(outcome) | Err(outcome) => Some(outcome),
            }
        })
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _plan: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.see_through(call, CancellationToken::new()).await {
                Ok(outcome) | Err(outcome) => outcome,
            }
        })
    }
}

/// What a call asks for, or what is wrong with it.
fn errand(call: Invocation<'_>) -> Result<Errand, Outcome> {
    let Arguments { task, budget } = mainstay_tools::arguments(call.arguments)?;
    if task.trim().is_empty() {
        return Err(Outcome::failed("The task is empty. Nothing was begun."));
    }
    let money = match budget {
        None => None,
        #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest integer")]
        Some(dollars) if dollars > 0.0 => Some((dollars * 1e6) as i64),
        Some(_) => {
            return Err(Outcome::failed("The budget must be above 0 dollars. Nothing was begun."));
        }
    };
    let id = |text: &str| text.parse::<Id>().map(SessionId::from).map_err(|_| gone());
    Ok(Errand {
        id: id(call.id)?,
        parent: id(call.session)?,
        workspace: call.workplace.workspace.clone(),
        task,
        money,
    })
}

fn gone() -> Outcome {
    Outcome::failed("The agent is going. Nothing was begun.")
}
