//! Renews the leases of this process in the background.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::clock::{Clock, millis};
use crate::lease::{release, renewal};
use crate::lock::lock;
use crate::store::Inner;
use crate::{Result, Store};

/// One thread a store, started with its first lease.
pub(crate) struct LeaseKeeper {
    work: Arc<Work>,
}

struct Work {
    grants: Mutex<Vec<Weak<Grant>>>,
    /// Leases to let go, dropped where that could not be written down.
    dropped: Mutex<Vec<Arc<Grant>>>,
    changed: Condvar,
    stop: AtomicBool,
}

/// What is known of a lease that was granted.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) resource: String,
    pub(crate) epoch: i64,
    ttl: i64,
    /// The uptime at which the last successful renewal was asked for.
    renewed_at: AtomicI64,
    ended: AtomicBool,
}

impl Grant {
    pub(crate) fn new(resource: String, epoch: i64, ttl: Duration, uptime: i64) -> Self {
        let renewed_at = AtomicI64::new(uptime);
        let ended = AtomicBool::new(false);
        Self { resource, epoch, ttl: millis(ttl), renewed_at, ended }
    }

    pub(crate) fn is_live(&self, uptime: i64) -> bool {
        !self.ended.load(Ordering::Acquire) && uptime < self.expires_at()
    }

    /// Takes note that somebody else has it.
    pub(crate) fn lose(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Ends it; `false` when it had ended already.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    fn expires_at(&self) -> i64 {
        self.renewed_at.load(Ordering::Acquire).saturating_add(self.ttl)
    }

    /// Renewed after a third of its life, so that two attempts may fail.
    fn due_at(&self) -> i64 {
        self.renewed_at.load(Ordering::Acquire).saturating_add(self.ttl / 3)
    }
}

impl LeaseKeeper {
    /// The keeper of `store`'s leases.
    pub(crate) fn of(store: &Store) -> &Self {
        store.inner.lease_keeper.get_or_init(|| {
            let work = Arc::new(Work {
                grants: Mutex::default(),
                dropped: Mutex::default(),
                changed: Condvar::new(),
                stop: AtomicBool::new(false),
            });
            let theirs = work.clone();
            let inner = Arc::downgrade(&store.inner);
            let spawned = std::thread::Builder::new()
                .name("lease-keeper".to_owned())
                .spawn(move || theirs.keep(&inner));
            if let Err(error) = spawned {
                // Leases then expire, and the guard refuses what is written after.
                tracing::error!(%error, "no thread to renew leases");
            }
            Self { work }
        })
    }

    /// How long the lease lasts that lasts longest, if there is one.
    pub(crate) fn longest(&self, uptime: i64) -> Option<Duration> {
        let live = self.work.live().into_iter().filter(|grant| grant.is_live(uptime));
        let left = live.map(|grant| grant.expires_at().saturating_sub(uptime)).max()?;
        u64::try_from(left).ok().map(Duration::from_millis)
    }

    pub(crate) fn add(&self, grant: &Arc<Grant>) {
        lock(&self.work.grants).push(Arc::downgrade(grant));
        self.work.changed.notify_one();
    }
}

impl LeaseKeeper {
    /// Lets a lease go as soon as possible.
    pub(crate) fn let_go(&self, grant: Arc<Grant>) {
        lock(&self.work.dropped).push(grant);
        // Under the lock of those who wait, so that it is not missed.
        drop(lock(&self.work.grants));
        self.work.changed.notify_one();
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.work.stop.store(true, Ordering::Release);
        drop(lock(&self.work.grants));
        self.work.changed.notify_one();
    }
}

impl Work {
    fn keep(&self, inner: &Weak<Inner>) {
        let mut retry = Duration::ZERO;
        while !self.stop.load(Ordering::Acquire) {
            let Some(store) = inner.upgrade().map(|inner| Store { inner }) else { return };
            let uptime = store.inner.clock.uptime_millis();
            let due: Vec<Arc<Grant>> =
                self.live().into_iter().filter(|grant| grant.due_at() <= uptime).collect();
            let dropped = std::mem::take(&mut *lock(&self.dropped));
            let done = renew(&store, &due).and_then(|()| let_go(&store, &dropped));
            retry = match done {
                Ok(()) => Duration::ZERO,
                Err(error) => {
                    tracing::warn!(%error, "leases could not be renewed");
                    (retry * 2).clamp(Duration::from_millis(50), Duration::from_secs(1))
                }
            };
            let clock = store.inner.clock.clone();
            drop((due, store));
            self.pause(clock.as_ref(), retry);
        }
    }

    fn live(&self) -> Vec<Arc<Grant>> {
        let mut grants = lock(&self.grants);
        grants.retain(|grant| {
            grant.upgrade().is_some_and(|grant| !grant.ended.load(Ordering::Acquire))
        });
        grants.iter().filter_map(Weak::upgrade).collect()
    }

    /// Sleeps until the next renewal is due, `retry` at least, or something changes. Looks and waits
    /// under one lock: a lease that is added meanwhile is not missed.
    fn pause(&self, clock: &dyn Clock, retry: Duration) {
        const LONGEST: Duration = Duration::from_secs(60);
        let grants = lock(&self.grants);
        if self.stop.load(Ordering::Acquire) || !lock(&self.dropped).is_empty() {
            return;
        }
        let uptime = clock.uptime_millis();
        let live = grants.iter().filter_map(Weak::upgrade);
        let next = live
            .filter(|grant| !grant.ended.load(Ordering::Acquire))
            .map(|grant| u64::try_from(grant.due_at() - uptime).unwrap_or(0))
            .min();
        let next = next.map_or(LONGEST, Duration::from_millis);
        let waited = self.changed.wait_timeout(grants, next.max(retry).min(LONGEST));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Lets go of leases whose owners could not.
fn let_go(store: &Store, dropped: &[Arc<Grant>]) -> Result<()> {
    if dropped.is_empty() {
        return Ok(());
    }
    store.write(|tx| dropped.iter().try_for_each(|grant| release(tx, grant)))
}

/// Renews all of `due` in one transaction.
fn renew(store: &Store, due: &[Arc<Grant>]) -> Result<()> {
    if due.is_empty() {
        return Ok(());
    }
    let uptime = store.inner.clock.uptime_millis();
    let outcomes: Vec<bool> = store.write(|tx| {
        due.iter().map(|grant| renewal(tx, grant, uptime.saturating_add(grant.ttl))).collect()
    })?;
    for (grant, renewed) in due.iter().zip(outcomes) {
        if renewed {
            grant.renewed_at.store(uptime, Ordering::Release);
        } else {
            tracing::warn!(resource = grant.resource, "a lease moved on");
            grant.lose();
        }
    }
    Ok(())
}
