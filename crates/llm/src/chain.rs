//! The client: candidates in order, attempts at each, and what is remembered between calls.

mod exchange;
mod health;
mod pace;
mod reader;
mod retry_after;
mod run;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::chain::health::Health;
use crate::chain::run::Run;
use crate::lock::lock;
use crate::transport::Transport;
use crate::wire::Quirks;
use crate::{Answer, Candidate, Event, Failure, Limits, Request};

/// Calls models. One is shared by all of a process: it keeps connections open, and remembers which
/// candidates are unwell and which parameters they do not support.
pub struct Client {
    transport: Transport,
    health: Mutex<Health>,
    quirks: Mutex<HashMap<String, Quirks>>,
    random: Mutex<fastrand::Rng>,
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client that knows nothing yet. Connections and certificates are made when they are needed.
    pub fn new() -> Client {
        Client::with_random(fastrand::Rng::new())
    }

    /// The same with chance that can be repeated, for tests.
    pub fn seeded(seed: u64) -> Client {
        Client::with_random(fastrand::Rng::with_seed(seed))
    }

    fn with_random(random: fastrand::Rng) -> Client {
        Client {
            transport: Transport::default(),
            health: Mutex::default(),
            quirks: Mutex::default(),
            random: Mutex::new(random),
        }
    }

    /// Asks the candidates in order until one gives a whole answer.
    ///
    /// Candidates that are known to be unwell come last, the one that is soonest well first. While a
    /// healthy one is left, a candidate that fails is given up sooner
    /// ([`Limits::attempts_with_fallback`], [`Limits::patience`], [`Limits::progress`]). Nothing sleeps
    /// past the deadline [`Limits::chain`], every wait ends at it, and no candidate uses up what those
    /// after it need.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// The [`Failure`] holds every attempt.
    pub async fn call(
        &self,
        chain: &[Arc<Candidate>],
        request: &Request<'_>,
        limits: &Limits,
        listener: &mut (dyn FnMut(Event<'_>) + Send),
    ) -> Result<Answer, Failure> {
        let order = lock(&self.health).order(chain, Instant::now());
        Run::new(self, request, limits).over(&order, listener).await
    }

    /// The connections.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// A random share of a bound.
    fn share_of(&self, bound: Duration) -> Duration {
        bound.mul_f64(lock(&self.random).f64())
    }

    /// A call id that nobody has used yet, most likely; nine characters suit every provider.
    fn fresh_id(&self) -> String {
        let mut random = lock(&self.random);
        (0..9).map(|_| random.alphanumeric()).collect()
    }
}
