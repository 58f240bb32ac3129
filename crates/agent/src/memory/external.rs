//! Providers that are not of this program: commands and MCP servers that the user's configuration
//! names.
//!
//! What they say is from outside. It is bounded, and taints the session that is told of it unless the
//! configuration trusts the provider. One that fails costs a turn its limit once; then nobody waits
//! for it any more, until an attempt beside a later turn has shown that it answers again.

mod answer;
mod choice;
mod command;
mod health;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_tools::Keeper;
use tokio::time::{Instant, timeout};

pub use choice::{Choice, Wishes};
pub use command::CommandProvider;
pub use server::ServerProvider;

use self::health::{Availability, Health};
use super::{Memory, NewMemory, Provider, ProviderError, Query, Reply};
use crate::turn::end::duration;

/// How long a provider is waited for unless it says otherwise.
pub const USUAL_LIMIT: Duration = Duration::from_secs(8);
/// How long nobody asks one that failed.
pub const REST: Duration = Duration::from_secs(10 * 60);
/// How much longer the engine waits: a provider tells by itself that it was too late.
const SLACK: Duration = Duration::from_secs(1);

/// Where the words of a provider come from, as a session's taint names it.
pub fn origin(provider: &str) -> String {
    format!("the memory `{provider}`")
}

/// What the configuration says of a provider.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name, a word.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
    /// How long it is waited for.
    pub limit: Duration,
    /// How long nobody asks it after it failed.
    pub rest: Duration,
    /// Whether it is given what is to be remembered.
    pub write: bool,
    /// Whether what it says is as good as the user's own words.
    pub trusted: bool,
}

/// What a provider is.
#[derive(Clone, Debug)]
pub enum ProviderKind {
    /// A command that is run for each question.
    Command(CommandProvider),
    /// An MCP server that is started once, or is there already.
    Server(Box<ServerProvider>),
}

/// A provider that is not of this program. Clones are the same one.
#[derive(Clone)]
pub struct External {
    parts: Arc<ExternalParts>,
}

struct ExternalParts {
    description: Description,
    means: Connection,
    health: Health,
}

enum Connection {
    Command(command::CommandRunner),
    Server(Box<server::ServerClient>),
}

impl External {
    /// A provider, which nobody contacts yet.
    pub fn new(description: Description, keeper: &Keeper) -> Self {
        let limit = description.limit;
        let means = match &description.kind {
            ProviderKind::Command(command) => Connection::Command(command::CommandRunner::new(
                command.clone(),
                keeper.clone(),
                limit,
            )),
            ProviderKind::Server(server) => {
                Connection::Server(Box::new(server::ServerClient::new(server, keeper, limit)))
            }
        };
        Self { parts: Arc::new(ExternalParts { description, means, health: Health::default() }) }
    }

    /// What the configuration says of it.
    pub fn description(&self) -> &Description {
        &self.parts.description
    }

    /// Asks it now, whatever happened before, and answers what it said and how it was asked.
    pub async fn look(&self, query: Query<'_>) -> Reply<(Vec<Memory>, Choice)> {
        let found = self.parts.recall(query).await?;
        let choice = match &self.parts.means {
            Connection::Command(_) => Choice::default(),
            Connection::Server(asker) => asker.choice(),
        };
        Ok((found, choice))
    }
}

impl ExternalParts {
    /// Asks, within the limit.
    async fn recall(&self, query: Query<'_>) -> Reply<Vec<Memory>> {
        let asked = async {
            match &self.means {
                Connection::Command(runner) => runner.recall(query).await,
                Connection::Server(asker) => asker.recall(query).await,
            }
        };
        let mut found = self.in_time(asked).await?;
        answer::bound(&mut found, query.limit);
        for memory in &mut found {
            memory.outside = !self.description.trusted;
        }
        Ok(found)
    }

    async fn in_time<T>(&self, asked: impl Future<Output = Reply<T>>) -> Reply<T> {
        let limit = self.description.limit;
        let late = || Err(ProviderError(format!("it did not answer within {}", duration(limit))));
        timeout(limit, asked).await.unwrap_or_else(|_| late())
    }

    /// The same, and what came of it is remembered.
    async fn recall_and_note(&self, query: Query<'_>) -> Reply<Vec<Memory>> {
        let answer = self.recall(query).await;
        match answer {
            Ok(found) => {
                self.health.is_well();
                Ok(found)
            }
            Err(trouble) => Err(self.rests(trouble).await),
        }
    }

    /// Fails while the provider is left alone after a failure.
    fn is_not_resting(&self) -> Reply<()> {
        match self.health.availability(Instant::now()) {
            Availability::Well | Availability::MayBeTried => Ok(()),
            Availability::Rests(left) => {
                let left = duration(left);
                Err(ProviderError(format!("it failed before and is not asked again for {left}")))
            }
        }
    }

    /// Leaves it alone from now on. What may be stuck is ended.
    async fn rests(&self, ProviderError(why): ProviderError) -> ProviderError {
        let rest = self.description.rest;
        // This comes first: it holds even if this future is dropped while the server is reset.
        self.health.failed(Instant::now() + rest);
        if let Connection::Server(asker) = &self.means {
            asker.reset().await;
        }
        ProviderError(format!("{why}; it is not asked again for {}", duration(rest)))
    }
}

impl Provider for External {
    fn name(&self) -> &str {
        &self.parts.description.name
    }

    fn limit(&self) -> Duration {
        self.parts.description.limit + SLACK
    }

    /// It knows itself when it may be asked again.
    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn recall<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Reply<Vec<Memory>>> {
        Box::pin(async move {
            match self.parts.health.availability(Instant::now()) {
                Availability::Well => self.parts.recall_and_note(query).await,
                Availability::Rests(_) => Ok(Vec::new()),
                Availability::MayBeTried => {
                    try_again(self.parts.clone(), query);
                    Ok(Vec::new())
                }
            }
        })
    }

    fn remember<'a>(&'a self, new: NewMemory<'a>) -> BoxFuture<'a, Reply<Option<String>>> {
        Box::pin(async move {
            let parts = &self.parts;
            if !parts.description.write {
                return Ok(None);
            }
            let without =
                |ProviderError(why)| ProviderError(format!("{why}; this was not saved there"));
            parts.is_not_resting().map_err(without)?;
            let asked = async {
                match &parts.means {
                    Connection::Command(runner) => runner.remember(new).await,
                    Connection::Server(asker) => asker.remember(new).await,
                }
            };
            // The store has the memory. The model reads that this provider may not have it.
            let unsure =
                |ProviderError(why)| ProviderError(format!("{why}; this may not be saved there"));
            let kept = match parts.in_time(asked).await {
                Ok(kept) => kept,
                Err(trouble) => return Err(unsure(parts.rests(trouble).await)),
            };
            parts.health.is_well();
            kept.map(Some).map_err(without)
        })
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Reply<bool>> {
        Box::pin(async move {
            let parts = &self.parts;
            if !parts.description.write {
                return Ok(false);
            }
            parts.is_not_resting()?;
            let asked = async {
                match &parts.means {
                    Connection::Command(runner) => runner.forget(id).await,
                    Connection::Server(asker) => asker.forget(id).await,
                }
            };
            match parts.in_time(asked).await {
                Ok(forgotten) => forgotten,
                Err(trouble) => Err(parts.rests(trouble).await),
            }
        })
    }
}

/// Asks one that failed once more, beside the turn, which does not wait.
fn try_again(parts: Arc<ExternalParts>, query: Query<'_>) {
    let text = query.text.to_owned();
    let limit = query.limit;
    let (session, workspace) =
        (query.place.session.to_owned(), query.place.workspace.to_path_buf());
    tokio::spawn(async move {
        let place = super::MemoryPlace { session: &session, workspace: &workspace };
        // Whoever asks next learns what came of it.
        let _ = parts.recall_and_note(Query { text: &text, limit, place }).await;
    });
}
