//! Whether a provider answers.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::sync::lock;
use tokio::time::Instant;

/// Whether a provider answers, as far as is known.
#[derive(Default)]
pub(super) struct Health(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Well,
    /// It failed, and is left alone until then.
    Unwell(Instant),
}

/// What may be done with a provider now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It can be asked.
    Well,
    /// It is left alone for so long.
    Rests(Duration),
    /// It was left alone long enough. Whoever is told so tries it; nobody else is told for as long as
    /// an attempt may take.
    MayBeTried,
}

/// How long nobody else tries one that is being tried.
const ATTEMPT: Duration = Duration::from_secs(60);

impl Health {
    pub(super) fn standing(&self, now: Instant) -> Standing {
        let mut state = self.state();
        match *state {
            State::Well => Standing::Well,
            State::Unwell(until) if now < until => Standing::Rests(until - now),
            State::Unwell(_) => {
                *state = State::Unwell(now + ATTEMPT);
                Standing::MayBeTried
            }
        }
    }

    pub(super) fn is_well(&self) {
        *self.state() = State::Well;
    }

    pub(super) fn failed(&self, until: Instant) {
        *self.state() = State::Unwell(until);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_failed_rests_and_is_then_tried_by_one() {
        let (health, now) = (Health::default(), Instant::now());
        assert_eq!(health.standing(now), Standing::Well);
        let rest = Duration::from_secs(600);
        health.failed(now + rest);
        let second = Duration::from_secs(1);
        assert_eq!(health.standing(now + rest - second), Standing::Rests(second));
        assert_eq!(health.standing(now + rest), Standing::MayBeTried);
        assert_eq!(health.standing(now + rest), Standing::Rests(ATTEMPT));
        // An attempt that nobody finished does not end them all.
        assert_eq!(health.standing(now + rest + ATTEMPT), Standing::MayBeTried);
        health.is_well();
        assert_eq!(health.standing(now + rest), Standing::Well);
    }
}
