//! Looking whether external providers of memories answer.

use std::time::Duration;

use futures_util::future::join_all;
use mainstay_agent::memory::external::{Choice, Description, External, ProviderKind};
use mainstay_agent::memory::{Memory, MemoryPlace, Query};
use mainstay_tools::{keeper, mcp};
use tokio::time::Instant;

use crate::config::Config;
use crate::engine;
use crate::error::Error;
use crate::paths::Paths;

/// How many memories are asked for.
const LIMIT: usize = 5;

/// What came of looking at one.
pub(crate) struct ProviderCheck {
    pub(crate) description: Description,
    /// What it said and how it was asked, or why it did not answer.
    pub(crate) answer: Result<(Vec<Memory>, Choice), String>,
    pub(crate) took: Duration,
}

impl ProviderCheck {
    /// What it is, in a few words without secrets.
    pub(crate) fn place(&self) -> String {
        match &self.description.kind {
            ProviderKind::Command(command) => format!("command {}", line(&command.program)),
            ProviderKind::Server(server) => match &server.server {
                mcp::Server::Program(program) => format!("MCP server {}", line(&program.program)),
                mcp::Server::Service(service) => format!("MCP server at {}", service.address()),
            },
        }
    }
}

/// The first words of what runs: arguments may hold keys, and are redacted like all that is printed.
fn line(program: &keeper::Program) -> String {
    crate::redaction::shared().text(&program.line()).into_owned()
}

/// Asks all of them at once, each within its limit. What was started for that has ended.
pub(crate) fn check_all(
    paths: &Paths,
    config: &Config,
    query: &str,
) -> Result<Vec<ProviderCheck>, Error> {
    let keeper = engine::keeper(paths, config)?;
    keeper.redact(crate::redaction::shared());
    let all = engine::memory_providers(config, &keeper)?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    engine::block_on(async |cancel| {
        let checking = join_all(all.iter().map(|provider| ask(provider, query)));
        let checks = tokio::select! {
            checks = checking => Ok(checks),
            () = cancel.cancelled() => Err(Error::interrupted("stopped")),
        };
        drop(all);
        keeper.leave_without_trace().await;
        checks
    })?
}

async fn ask(provider: &External, query: &str) -> ProviderCheck {
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let place = MemoryPlace { session: "", workspace: &directory };
    let begun = Instant::now();
    let answer = provider.look(Query { text: query, limit: LIMIT, place }).await;
    ProviderCheck {
        description: provider.description().clone(),
        answer: answer.map_err(|trouble| trouble.0),
        took: begun.elapsed(),
    }
}
