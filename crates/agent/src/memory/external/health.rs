//! Whether a provider answers.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use mainstay_store::lock;
use tokio::time::Instant;

/// Whether a provider answers, as far as is known.
#[derive(Default)]
pub(super) struct Health(Mutex<HealthState>);

#[derive(Default)]
enum HealthState {
    #[default]
    Well,
    /// It failed, and is left alone until then.
    Unwell(Instant),
}

/// What may be done with a provider now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// It can be asked.
    Well,
    /// It is left alone for so long.
    Rests(Duration),
    /// It was left alone long enough. Whoever is told so tries it; nobody else is told for as long as
    /// an attempt may take.
    MayBeTried,
}

/// How long an attempt may take before another one is made.
const ATTEMPT: Duration = Duration::from_secs(60);

impl Health {
    pub(super) fn availability(&self, now: Instant) -> Availability {
        let mut state = self.state();
        match *state {
            HealthState::Well => Availability::Well,
            HealthState::Unwell(until) if now < until => Availability::Rests(until - now),
            HealthState::Unwell(_) => {
                *state = HealthState::Unwell(now + ATTEMPT);
                Availability::MayBeTried
            }
        }
    }

    pub(super) fn is_well(&self) {
        *self.state() = HealthState::Well;
    }

    pub(super) fn failed(&self, until: Instant) {
        *self.state() = HealthState::Unwell(until);
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_failed_rests_and_is_then_tried_by_one() {
        let (health, now) = (Health::default(), Instant::now());
        assert_eq!(health.availability(now), Availability::Well);
        let rest = Duration::from_secs(600);
        health.failed(now + rest);
        let second = Duration::from_secs(1);
        assert_eq!(health.availability(now + rest - second), Availability::Rests(second));
        assert_eq!(health.availability(now + rest), Availability::MayBeTried);
        assert_eq!(health.availability(now + rest), Availability::Rests(ATTEMPT));
        // An attempt that nobody finished does not end them all.
        assert_eq!(health.availability(now + rest + ATTEMPT), Availability::MayBeTried);
        health.is_well();
        assert_eq!(health.availability(now + rest), Availability::Well);
    }
}
