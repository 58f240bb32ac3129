//! Jobs that wait for the word to begin: one at a time.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::{Jobs, Said, Waiter};
use crate::keeper::shared::Job;
use crate::keeper::shared::brand::Brands;
use crate::keeper::shared::protocol::Says;
use crate::keeper::shared::spool::Line;
use crate::keeper::worker::held::{Begun, Held, Settled};
use crate::keeper::worker::live::{Live, StartContext};

impl Jobs {
    /// Gets a job ready whose gate will be opened in a moment, and tells the waiter its end. Where it
    /// cannot be, or is not opened in time, the waiter learns that it is not known: nothing was started.
    pub(in crate::keeper::worker) fn prepare(
        &mut self,
        job: Job,
        gate: OwnedFd,
        waiter: Waiter,
        now: Duration,
    ) {
        let key = job.key.clone();
        // Before its process is there, which its agent can let begin at once: a key that is not in the
        // log has not run.
        if !self.is_known(&key)
            && Held::suits(&job)
            && self.spool.write(&Line::Starting { key: key.clone() }).is_ok()
        {
            let brand = self.brands.as_mut().and_then(Brands::next);
            let mut context = StartContext {
                keeper: &self.name,
                nothing: &self.nothing,
                chambers: &mut self.chambers,
            };
            self.held = Held::new(&mut context, job, gate, brand, waiter, now);
            if self.held.is_some() {
                return;
            }
            self.never_began(key, waiter);
        } else {
            self.said.push(Said::Answer(waiter, Says::UnknownKey));
        }
    }

    /// Settles a job that is held before something is done that is about it.
    pub(in crate::keeper::worker) fn settle(
        &mut self,
        is_meant: impl FnOnce(&Held) -> bool,
        now: Duration,
    ) {
        if let Some(held) = self.held.take_if(|held| is_meant(held)) {
            match held.settle(false) {
                Settled::Never(key, waiter) => self.never_began(key, waiter),
                Settled::Begun(begun) => {
                    let key = begun.job.key.clone();
                    self.take_up(*begun, now);
                    self.note_start(&key);
                }
            }
        }
    }

    fn never_began(&mut self, key: String, waiter: Waiter) {
        // Without this line it looks as if nobody knew, which is true and less.
        let _ = self.spool.write(&Line::LetGo { key });
        self.said.push(Said::Answer(waiter, Says::UnknownKey));
    }

    /// Takes up a job that began by itself.
    fn take_up(&mut self, begun: Begun, now: Duration) {
        let Begun { job, brand, waiter, forked, started, process } = begun;
        let outputs = self.outputs(&job);
        let mut live = Live::new(&job, process, outputs, brand, forked, started.min(now));
        live.waiters.push(waiter);
        self.watch(live);
    }

    /// Settles what a connection had got ready.
    pub(in crate::keeper::worker) fn let_go(&mut self, connection: u64, now: Duration) {
        self.settle(|held| held.waiter.0 == connection, now);
    }

    /// Settles the one that is held where its process has ended.
    pub(super) fn settle_reaped(&mut self, pid: i32, now: Duration) {
        if let Some(held) = self.held.take_if(|held| held.pid() == Some(pid)) {
            match held.settle(true) {
                Settled::Never(key, waiter) => self.never_began(key, waiter),
                Settled::Begun(begun) => self.take_up(*begun, now),
            }
        }
    }

    /// Looks whether the one that is held has begun, or its time is over.
    pub(super) fn look_at_held(&mut self, now: Duration) {
        self.settle(|held| held.has_begun() || held.is_over(now), now);
        if let Some(held) = &mut self.held {
            held.looked(now);
        }
    }
}
