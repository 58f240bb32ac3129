//! The one trait of all that has memories.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// Has memories. What takes longer than its limit is dropped: a provider whose work goes on outside
/// the future (a process, a request) ends it when that happens.
///
/// A provider that fails or takes too long costs a turn its limit once; then it rests, with a notice.
pub trait Provider: Send + Sync {
    /// Its name, a word: what a model and a person know its memories by.
    fn name(&self) -> &str;

    /// How long it is waited for.
    fn limit(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// How long nobody asks it after it failed.
    fn rest(&self) -> Duration {
        Duration::from_secs(600)
    }

    /// Whether a session must not begin if this provider cannot say what belongs into the prompt.
    fn is_essential(&self) -> bool {
        false
    }

    /// What belongs into the prompt of a new session. It is framed as data by whoever asks.
    fn prompt<'a>(&'a self, _place: MemoryPlace<'a>) -> BoxFuture<'a, Reply<Option<String>>> {
        Box::pin(async { Ok(None) })
    }

    /// What bears on some words, the best first.
    fn recall<'a>(&'a self, _query: Query<'a>) -> BoxFuture<'a, Reply<Vec<Memory>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Keeps a memory and returns its id, or `None` if the provider keeps none. The same key twice is one
    /// memory: after a crash the call is made again.
    fn remember<'a>(&'a self, _new: NewMemory<'a>) -> BoxFuture<'a, Reply<Option<String>>> {
        Box::pin(async { Ok(None) })
    }

    /// Forgets a memory of its own. Returns false if there is none.
    fn forget<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Reply<bool>> {
        Box::pin(async { Ok(false) })
    }
}

/// What a provider answers.
pub type Reply<T> = Result<T, ProviderError>;

/// Why a provider has no answer, in a clause that can follow its name and a colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

/// Where memories are asked for.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlace<'a> {
    /// The session that asks.
    pub session: &'a str,
    /// The directory it works in.
    pub workspace: &'a Path,
}

/// What memories are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The words that they are to bear on.
    pub text: &'a str,
    /// How many are wanted at most.
    pub limit: usize,
    /// Where they are asked for.
    pub place: MemoryPlace<'a>,
}

/// A memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What its provider knows it by. White space and control characters have no place in it.
    pub id: String,
    /// What is remembered.
    pub text: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// How far it is to be trusted, from 0 to 1, where the provider says so.
    pub trust: Option<f64>,
    /// When it was kept or last confirmed, in milliseconds since 1970, if that is known.
    pub at: Option<i64>,
    /// Where it comes from, such as `user` or `session 0198…`, if that is known.
    pub source: Option<String>,
    /// Whether it is from outside: it taints the session that is told of it.
    pub outside: bool,
}

/// A memory to keep.
#[derive(Clone, Copy, Debug)]
pub struct NewMemory<'a> {
    /// What is to be remembered.
    pub text: &'a str,
    /// What kind of thing it is.
    pub category: &'a str,
    /// Words it can be found by.
    pub tags: &'a [String],
    /// Where it comes from.
    pub source: &'a str,
    /// Names it: the same key twice is one memory.
    pub key: &'a str,
    /// Where it is kept from.
    pub place: MemoryPlace<'a>,
}
