//! The facts of the store, as a provider.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mainstay_memory::facts::{self, Fact, FoundFact};
use mainstay_memory::words;
use mainstay_store::{OwnerId, Store};

use super::{Memory, Provider, Query, Reply, Trouble};
use crate::agent::blocking;

/// What facts of the store are known by.
pub(crate) const FACTS: &str = "facts";

/// The facts of an owner.
pub(crate) struct Facts {
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
    /// After this time a fact counts half.
    pub(crate) half_life: Option<Duration>,
}

impl Provider for Facts {
    fn name(&self) -> &str {
        FACTS
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    fn recall<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Reply<Vec<Memory>>> {
        Box::pin(async move {
            let found = blocking(|| {
                self.store.read(|tx| {
                    // Where nothing is remembered, this is all that it costs.
                    if facts::count(tx, self.owner)? == 0 {
                        return Ok(Vec::new());
                    }
                    let asked = facts::Query {
                        limit: query.limit,
                        half_life: self.half_life,
                        ..facts::Query::new(query.text, tx.now())
                    };
                    facts::search(tx, self.owner, &asked)
                })
            });
            match found {
                Ok(found) => Ok(weighed(query.text, found)),
                Err(error) => Err(Trouble(error.to_string())),
            }
        })
    }
}

/// Facts with their scores for a text. A fact of which the text has a word in ten fits less than
/// one of which it has most, or whom it is about, however long the text is.
fn weighed(text: &str, found: Vec<FoundFact>) -> Vec<Memory> {
    let asked: HashSet<String> = words::terms(text).into_iter().collect();
    let mut memories: Vec<Memory> = found
        .into_iter()
        .map(|found| {
            let own: HashSet<String> = words::terms(&found.fact.content).into_iter().collect();
            #[expect(clippy::cast_precision_loss, reason = "a fact has few words")]
            let mut share = own.intersection(&asked).count() as f64 / own.len().max(1) as f64;
            // Who is named is asked about, however much else is known of them.
            let names = found.fact.entities.iter().flat_map(|name| words::terms(name));
            if names.into_iter().any(|name| asked.contains(&name)) {
                share = share.max(0.5);
            }
            as_memory(found.fact, found.score * (0.5 + share / 2.0))
        })
        .collect();
    memories.sort_by(|one, other| other.score.total_cmp(&one.score));
    memories
}

/// A fact, as a memory.
pub(crate) fn as_memory(fact: Fact, score: f64) -> Memory {
    Memory {
        id: fact.id.to_string(),
        text: fact.content,
        score,
        trust: Some(fact.trust),
        at: Some(fact.changed_at),
        source: Some(fact.source),
        outside: false,
    }
}
