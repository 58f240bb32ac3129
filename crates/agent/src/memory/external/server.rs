//! A provider that is an MCP server.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use mainstay_tools::Keeper;
use mainstay_tools::mcp::{self, Answer, Client, Limits, McpError};
use serde_json::Value;

use super::super::{Memory, NewMemory, ProviderError, Query, Reply};
use super::answer;
use super::choice::{Choice, ChosenTool, Wishes};
use mainstay_store::lock;

/// How long letting a server go may take; it is ended in any case.
const PARTING: Duration = Duration::from_millis(500);
/// How much of what a server says of a failure is told.
const TOLD: usize = 300;

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerProvider {
    /// Where it is.
    pub server: mcp::Server,
    /// Which of its tools mean what.
    pub wishes: Wishes,
}

pub(super) struct ServerClient {
    client: Client,
    wishes: Wishes,
    /// What was chosen of what the server has, while it lives.
    choice: Mutex<Option<Choice>>,
}

impl ServerClient {
    pub(super) fn new(server: &ServerProvider, keeper: &Keeper, limit: Duration) -> Self {
        let limits = Limits { start: limit, answer: limit };
        Self {
            client: Client::new(server.server.clone(), keeper.clone(), limits),
            wishes: server.wishes.clone(),
            choice: Mutex::default(),
        }
    }

    /// What was chosen, as far as it was asked.
    pub(super) fn choice(&self) -> Choice {
        self.chosen().clone().unwrap_or_default()
    }

    pub(super) async fn recall(&self, query: Query<'_>) -> Reply<Vec<Memory>> {
        let Some(recall) = self.choose().await?.recall else {
            return Err(nothing_for("recall", "recall_tool"));
        };
        let answer = self.call(&recall, query.text, Some(query.limit)).await?;
        let answer = succeeded(answer)?;
        Ok(match &answer.structured {
            Some(value @ (Value::Array(_) | Value::Object(_))) => answer::memories(value),
            _ => answer::memories_in_words(&answer.texts),
        })
    }

    /// Keeps a memory. That the server refuses one says nothing of how well it is.
    pub(super) async fn remember(&self, new: NewMemory<'_>) -> Reply<Reply<String>> {
        let Some(remember) = self.choose().await?.remember else {
            return Ok(Err(nothing_for("remember", "remember_tool")));
        };
        let answer = self.call(&remember, new.text, None).await?;
        Ok(succeeded(answer).map(|answer| {
            let id = answer.structured.as_ref().and_then(answer::id);
            id.unwrap_or_else(|| new.key.to_owned())
        }))
    }

    pub(super) async fn forget(&self, id: &str) -> Reply<Reply<bool>> {
        let Some(forget) = self.choose().await?.forget else { return Ok(Ok(false)) };
        Ok(succeeded(self.call(&forget, id, None).await?).map(|_| true))
    }

    /// Lets the server go: what failed may be stuck.
    pub(super) async fn reset(&self) {
        *self.chosen() = None;
        let _ = tokio::time::timeout(PARTING, self.client.reset()).await;
    }

    async fn choose(&self) -> Reply<Choice> {
        if let Some(choice) = self.chosen().clone() {
            return Ok(choice);
        }
        let tools = self.client.list_tools().await?;
        let choice = Choice::among(&tools, &self.wishes)?;
        *self.chosen() = Some(choice.clone());
        Ok(choice)
    }

    async fn call(&self, used: &ChosenTool, words: &str, limit: Option<usize>) -> Reply<Answer> {
        Ok(self.client.call(&used.tool, used.arguments(words, limit)).await?)
    }

    fn chosen(&self) -> MutexGuard<'_, Option<Choice>> {
        lock(&self.choice)
    }
}

fn succeeded(answer: Answer) -> Reply<Answer> {
    if !answer.failed {
        return Ok(answer);
    }
    let words = answer.texts.join(" ");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(ProviderError(format!("its tool failed: {}", words.chars().take(TOLD).collect::<String>())))
}

fn nothing_for(what: &str, setting: &str) -> ProviderError {
    ProviderError(format!("it has no tool that seems to {what}; name one with `{setting}`"))
}

impl From<McpError> for ProviderError {
    fn from(error: McpError) -> Self {
        ProviderError(error.to_string())
    }
}
