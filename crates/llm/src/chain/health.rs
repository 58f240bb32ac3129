//! Which candidates are unwell, and until when.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{Candidate, Fault};

/// Kept per credential and model: another key or another model of the same provider is not judged
/// by this one's trouble.
#[derive(Debug, Default)]
pub(super) struct Health {
    until: HashMap<String, Instant>,
}

/// A candidate and whether it is known to be unwell.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) candidate: Arc<Candidate>,
    pub(super) unwell: bool,
}

impl Health {
    /// The healthy ones as they stand in the chain, then the others, soonest well first.
    pub(super) fn order(&self, chain: &[Arc<Candidate>], now: Instant) -> Vec<Placed> {
        let until = |candidate: &Candidate| {
            self.until.get(&candidate.identity()).copied().filter(|until| *until > now)
        };
        let mut placed: Vec<(Option<Instant>, Arc<Candidate>)> =
            chain.iter().map(|candidate| (until(candidate), candidate.clone())).collect();
        placed.sort_by_key(|(until, _)| *until);
        let place = |(until, candidate): (Option<Instant>, _)| Placed {
            candidate,
            unwell: until.is_some(),
        };
        placed.into_iter().map(place).collect()
    }

    /// Notes that a candidate was given up. `told` is the wait that its provider named.
    pub(super) fn failed(
        &mut self,
        candidate: &Candidate,
        fault: Fault,
        told: Option<Duration>,
        now: Instant,
    ) {
        let usual = match fault {
            Fault::RateLimited => Duration::from_secs(60),
            Fault::Quota | Fault::Auth => Duration::from_secs(10 * 60),
            Fault::Overloaded | Fault::Network | Fault::Stalled => Duration::from_secs(15),
            // These say something about the request, not about the candidate.
            Fault::Garbage
            | Fault::NotFound
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::Unsupported
            | Fault::Refused
            | Fault::Deadline => return,
        };
        self.until.insert(candidate.identity(), now + told.unwrap_or(usual));
    }

    /// Notes that a candidate answered.
    pub(super) fn answered(&mut self, candidate: &Candidate) {
        self.until.remove(&candidate.identity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Api, Provider};

    fn candidate(model: &str) -> Arc<Candidate> {
        let provider = Provider::without_key(
            "p",
            Api::OpenAiChat,
            url::Url::parse("http://localhost/v1").unwrap(),
        );
        Arc::new(Candidate::new(provider, model))
    }

    fn names(placed: &[Placed]) -> String {
        let name = |placed: &Placed| {
            format!("{}{}", placed.candidate.model, if placed.unwell { "!" } else { "" })
        };
        placed.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn the_unwell_come_last_and_return_when_their_time_is_over() {
        let chain = [candidate("a"), candidate("b"), candidate("c")];
        let mut health = Health::default();
        let start = Instant::now();
        let order = |health: &Health, seconds| {
            names(&health.order(&chain, start + Duration::from_secs(seconds)))
        };
        assert_eq!(order(&health, 0), "a b c");
        health.failed(&chain[0], Fault::Quota, None, start);
        assert_eq!(order(&health, 0), "b c a!");
        health.failed(&chain[1], Fault::RateLimited, Some(Duration::from_secs(7)), start);
        health.failed(&chain[2], Fault::Overloaded, None, start);
        assert_eq!(order(&health, 0), "b! c! a!");
        assert_eq!(order(&health, 8), "b c! a!");
        assert_eq!(order(&health, 16), "b c a!");
        assert_eq!(order(&health, 601), "a b c");
        health.answered(&chain[0]);
        assert_eq!(order(&health, 16), "a b c");
        health.failed(&chain[0], Fault::BadRequest, None, start);
        assert_eq!(order(&health, 16), "a b c");
    }
}
