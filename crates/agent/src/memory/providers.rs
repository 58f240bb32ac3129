//! All providers, asked at once.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::{Instant, timeout};

use super::{Provider, Reply};
use crate::turn::end::duration;
use mainstay_store::lock;

/// All providers of an agent.
#[derive(Default)]
pub(crate) struct Providers {
    all: Vec<Arc<dyn Provider>>,
    /// Who failed, and until when it is left alone.
    resting: Mutex<HashMap<String, Instant>>,
}

/// What became of asking one of them.
pub(crate) struct ProviderAnswer<'a, T> {
    pub(crate) provider: &'a dyn Provider,
    /// The answer, or a sentence on why there is none.
    pub(crate) answer: Result<T, String>,
}

impl Providers {
    /// These, in this order.
    pub(crate) fn new(all: Vec<Arc<dyn Provider>>) -> Self {
        Self { all, resting: Mutex::default() }
    }

    /// Asks all that do not rest, each with its own limit, and waits for the slowest. Those that wait
    /// for something outside should come first: the others may hold the thread for a moment.
    pub(crate) async fn ask<'a, T>(
        &'a self,
        ask: impl Fn(&'a dyn Provider) -> BoxFuture<'a, Reply<T>>,
    ) -> Vec<ProviderAnswer<'a, T>> {
        let awake = self.all.iter().filter(|provider| !self.rests(provider.name()));
        join_all(awake.map(|provider| {
            let asked = ask(&**provider);
            async move {
                ProviderAnswer {
                    provider: &**provider,
                    answer: self.await_answer(&**provider, asked).await,
                }
            }
        }))
        .await
    }

    /// The provider of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&dyn Provider> {
        self.all.iter().find(|provider| provider.name() == name).map(|provider| &**provider)
    }

    /// Waits for the answer of one of them, as long as its limit is.
    pub(crate) async fn await_answer<T>(
        &self,
        provider: &dyn Provider,
        asked: BoxFuture<'_, Reply<T>>,
    ) -> Result<T, String> {
        // A provider that panics has failed; the turn has not.
        let asked = AssertUnwindSafe(asked).catch_unwind();
        let why = match timeout(provider.limit(), asked).await {
            Ok(Ok(Ok(answer))) => return Ok(answer),
            Ok(Ok(Err(trouble))) => trouble.0,
            Ok(Err(_)) => "it crashed".to_owned(),
            Err(_) => format!("it did not answer within {}", duration(provider.limit())),
        };
        let mut words = format!("the memory `{}` failed: {why}", provider.name());
        let rest = provider.rest();
        if rest > Duration::ZERO {
            let until = Instant::now() + rest;
            self.resting().insert(provider.name().to_owned(), until);
            words.push_str(&format!("; it is not asked again for {}", duration(rest)));
        }
        Err(words)
    }

    fn rests(&self, name: &str) -> bool {
        self.resting().get(name).is_some_and(|until| Instant::now() < *until)
    }

    fn resting(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        lock(&self.resting)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::{Memory, MemoryPlace, ProviderError, Query};
    use super::*;

    /// Answers well, or in some other way.
    struct Odd {
        how: Behaviour,
        asked: AtomicU32,
    }

    #[derive(Clone, Copy, Debug)]
    enum Behaviour {
        Well,
        Never,
        Badly,
        Panics,
    }

    const LIMIT: Duration = Duration::from_millis(300);
    const REST: Duration = Duration::from_millis(900);

    impl Provider for Odd {
        fn name(&self) -> &str {
            match self.how {
                Behaviour::Well => "well",
                Behaviour::Never => "never",
                Behaviour::Badly => "badly",
                Behaviour::Panics => "panics",
            }
        }

        fn limit(&self) -> Duration {
            LIMIT
        }

        fn rest(&self) -> Duration {
            REST
        }

        fn recall<'a>(&'a self, _: Query<'a>) -> BoxFuture<'a, Reply<Vec<Memory>>> {
            Box::pin(async move {
                self.asked.fetch_add(1, Ordering::SeqCst);
                match self.how {
                    Behaviour::Well => Ok(vec![Memory::default()]),
                    Behaviour::Never => std::future::pending().await,
                    Behaviour::Badly => Err(ProviderError("it is out".to_owned())),
                    Behaviour::Panics => panic!("on purpose"),
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_asked_at_once_and_who_fails_is_left_alone_for_a_while() {
        let mut all = vec![Behaviour::Well, Behaviour::Badly, Behaviour::Panics];
        all.extend([Behaviour::Never; 9]);
        let all: Vec<_> =
            all.into_iter().map(|how| Arc::new(Odd { how, asked: AtomicU32::new(0) })).collect();
        let providers =
            Providers::new(all.iter().map(|one| Arc::clone(one) as Arc<dyn Provider>).collect());
        let place = MemoryPlace { session: "s", workspace: std::path::Path::new("/") };
        let query = Query { text: "x", limit: 5, place };
        let begun = Instant::now();
        let first = providers.ask(|provider| provider.recall(query)).await;
        let took = begun.elapsed();
        assert!(took >= LIMIT && took < LIMIT * 8, "{took:?}: nine limits at once");
        let words: Vec<_> =
            first.into_iter().map(|one| one.answer.map(|found| found.len())).collect();
        let failed = |name: &str, why: &str| {
            Err(format!("the memory `{name}` failed: {why}; it is not asked again for 0.9 s"))
        };
        let late = failed("never", "it did not answer within 0.3 s");
        let soon = [Ok(1), failed("badly", "it is out"), failed("panics", "it crashed")];
        assert_eq!(words[..3], soon);
        assert_eq!(words[3..], vec![late; 9]);

        let second = providers.ask(|provider| provider.recall(query)).await;
        assert_eq!(second.len(), 1, "the others are not asked");
        let asked = |index: usize| all[index].asked.load(Ordering::SeqCst);
        assert_eq!([0, 1, 2, 3].map(asked), [2, 1, 1, 1]);
        tokio::time::advance(REST / 2).await;
        providers.ask(|provider| provider.recall(query)).await;
        assert_eq!(asked(3), 1, "it still rests");
        tokio::time::advance(REST).await;
        providers.ask(|provider| provider.recall(query)).await;
        assert_eq!(asked(3), 2, "nobody asked again");
    }
}
