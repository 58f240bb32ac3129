//! Leases: one owner for everything that must have one.
//!
//! A lease is a row with a holder and an epoch that grows with every change of hands. Whoever
//! writes under a lease checks the epoch in the same transaction ([`Lease::guard`]), so a holder
//! that was stopped or cut off and comes back cannot write. When a lease is free:
//!
//! - its holder let it go;
//! - its holder's process is dead, seen from the same host at once;
//! - it expired, by the uptime that holder and taker share on one host;
//! - its holder is on another host and the row's beat has not changed for the lease's time to
//!   live, by the uptime of the one who watches.
//!
//! Wall clocks decide nothing, so a clock that jumps neither ends a live lease nor prolongs a
//! dead one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::{Deadline, millis};
use crate::identity::{Liveness, ProcessIdentity};
use crate::lease_keeper::{Grant, LeaseKeeper};
use crate::lock::lock;
use crate::tx::{Dialect, is_topic};
use crate::{Error, ReadTx, Result, Store, WriteTx, params};

/// A lease that is held. It is renewed in the background until it is dropped, which lets it go.
#[derive(Debug)]
pub struct Lease {
    grant: Arc<Grant>,
    store: Store,
}

/// The answer to a request for a lease.
#[derive(Debug)]
pub enum Acquired {
    /// It is ours.
    Got(Lease),
    /// Somebody else has it.
    Held(Holder),
}

/// Who has a lease.
#[derive(Clone, Debug)]
pub struct Holder {
    /// What it is a lease on.
    pub resource: String,
    /// The process.
    pub process: ProcessIdentity,
    /// The number of times the lease changed hands.
    pub epoch: i64,
    /// Since when, in milliseconds since 1970.
    pub since: i64,
    /// How long the lease lives without a renewal.
    pub ttl: Duration,
    beat: i64,
    expires_at: i64,
}

/// A shorter life would be spent on renewals.
const SHORTEST: Duration = Duration::from_millis(100);

/// When beats of far-away holders were first seen, by resource: epoch, beat, uptime.
#[derive(Default)]
pub(crate) struct Observations(Mutex<HashMap<String, (i64, i64, i64)>>);

impl Store {
    /// Takes the lease on `resource` if it is free.
    pub fn try_acquire(&self, resource: &str, ttl: Duration) -> Result<Acquired> {
        if !is_topic(resource) {
            return Err(Error::Unstorable("a resource whose name is empty or has a line break"));
        }
        let ttl = ttl.max(SHORTEST);
        let row = self.read(|tx| tx.lease_row(resource))?;
        if let Some(holder) = row.as_ref().and_then(|row| row.holder.as_ref())
            && !self.is_free(holder)
        {
            return Ok(Acquired::Held(holder.clone()));
        }
        let seen = row.as_ref().map(|row| (row.epoch, row.beat));
        let uptime = self.inner.clock.uptime_millis();
        let expires_at = uptime.saturating_add(millis(ttl));
        let me = ProcessIdentity::current().to_string();
        let epoch = self.write(|tx| take(tx, resource, &me, seen, ttl, expires_at))?;
        let Some(epoch) = epoch else {
            // Somebody was faster. Their row tells who.
            let row = self.read(|tx| tx.lease_row(resource))?;
            return match row.and_then(|row| row.holder) {
                Some(holder) => Ok(Acquired::Held(holder)),
                None => Err(Error::InUse {
                    what: format!("the lease on {resource}"),
                    holder: "another process".to_owned(),
                }),
            };
        };
        let grant = Arc::new(Grant::new(resource.to_owned(), epoch, ttl, uptime));
        LeaseKeeper::of(self).add(&grant);
        Ok(Acquired::Got(Lease { grant, store: self.clone() }))
    }

    /// Takes the lease, or stands by for it: wakes when it is let go, when its holder dies, or when
    /// it expires, for at most `patience`.
    pub fn acquire(&self, resource: &str, ttl: Duration, patience: Duration) -> Result<Acquired> {
        let deadline = Deadline::after(patience);
        let topic = topic(resource);
        let listener = self.listen([topic.as_str()])?;
        loop {
            let holder = match self.try_acquire(resource, ttl) {
                Ok(Acquired::Got(lease)) => return Ok(Acquired::Got(lease)),
                Ok(Acquired::Held(holder)) => holder,
                // Two standbys ran into each other.
                Err(Error::InUse { .. }) if !deadline.passed() => continue,
                Err(error) => return Err(error),
            };
            if deadline.passed() {
                return Ok(Acquired::Held(holder));
            }
            let _watch = crate::deathwatch::watch(&holder.process, &self.inner.hub, &topic);
            listener.wait(deadline.left().min(self.until_free(&holder)));
        }
    }

    /// Everyone who holds a lease, as the rows say.
    pub fn lease_holders(&self) -> Result<Vec<Holder>> {
        self.read(|tx| {
            tx.query(
                &format!("{ROW} WHERE holder IS NOT NULL ORDER BY resource"),
                params![],
                |row| LeaseRow::from(row).map(|row| row.holder),
            )
            .map(|holders| holders.into_iter().flatten().collect())
        })
    }

    /// Whether the lease can be taken from `holder`.
    pub fn is_free(&self, holder: &Holder) -> bool {
        self.until_free(holder).is_zero()
    }

    /// How long until the lease can be taken, if nothing is heard of its holder.
    fn until_free(&self, holder: &Holder) -> Duration {
        let uptime = self.inner.clock.uptime_millis();
        let free_at = match holder.process.liveness() {
            Liveness::Dead => return Duration::ZERO,
            _ if holder.process.shares_clock() => holder.expires_at,
            // A file is used by one kernel at a time: another boot was an earlier one.
            _ if self.inner.engine.is_one_host() => return Duration::ZERO,
            _ => self
                .inner
                .observations
                .first_seen(holder, uptime)
                .saturating_add(millis(holder.ttl)),
        };
        Duration::from_millis(u64::try_from(free_at.saturating_sub(uptime)).unwrap_or(0))
    }
}

impl Lease {
    /// Fails when the lease moved on. Call it in every transaction that writes under the lease.
    pub fn guard(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        // On a server other transactions run meanwhile: the row is held until this one is over, so
        // that nobody takes the lease between the look and the commit.
        let sql = match tx.dialect() {
            Dialect::Sqlite => "SELECT epoch FROM leases WHERE resource = ?1 AND holder = ?2",
            Dialect::Postgres => {
                "SELECT epoch FROM leases WHERE resource = ?1 AND holder = ?2 FOR SHARE"
            }
        };
        let epoch: Option<i64> = tx.query_opt(
            sql,
            params![self.grant.resource, ProcessIdentity::current().to_string()],
            |row| row.get(0),
        )?;
        if epoch == Some(self.grant.epoch) {
            return Ok(());
        }
        self.grant.lose();
        Err(Error::LeaseLost { resource: self.grant.resource.clone() })
    }

    /// Removes the lease with what it is a lease on, which is gone for ever when `tx` is durable.
    pub fn remove(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        self.guard(tx)?;
        tx.execute("DELETE FROM leases WHERE resource = ?1", params![self.grant.resource])?;
        Ok(())
    }

    /// Whether the lease is known to be ours still: renewed in time, and nobody else took it. Only
    /// [`guard`](Self::guard) makes sure.
    pub fn is_live(&self) -> bool {
        self.grant.is_live(self.store.inner.clock.uptime_millis())
    }

    /// The number of this hold; the next holder's is greater.
    pub fn epoch(&self) -> i64 {
        self.grant.epoch
    }

    /// What it is a lease on.
    pub fn resource(&self) -> &str {
        &self.grant.resource
    }

    /// Lets the lease go and says whether that could be written down.
    pub fn release(self) -> Result<()> {
        self.let_go()
    }

    fn let_go(&self) -> Result<()> {
        if !self.grant.end() {
            return Ok(());
        }
        match self.store.write(|tx| release(tx, &self.grant)) {
            // Dropped inside the closure of a write: the keeper does it right after.
            Err(Error::Nested) => {
                LeaseKeeper::of(&self.store).let_go(self.grant.clone());
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Err(error) = self.let_go() {
            // Others see it expire.
            tracing::warn!(%error, resource = self.grant.resource, "a lease was not let go");
        }
    }
}

/// Writes the new holder down, unless the row is not as it was `seen`.
fn take(
    tx: &mut WriteTx<'_>,
    resource: &str,
    me: &str,
    seen: Option<(i64, i64)>,
    ttl: Duration,
    expires_at: i64,
) -> Result<Option<i64>> {
    let now = tx.now();
    let ttl = millis(ttl);
    let taken = match seen {
        None => tx.query_opt(
            "INSERT INTO leases (resource, holder, epoch, beat, ttl, expires_at, acquired_at)
             VALUES (?1, ?2, 1, 0, ?3, ?4, ?5) ON CONFLICT (resource) DO NOTHING RETURNING epoch",
            params![resource, me, ttl, expires_at, now],
            |row| row.get(0),
        ),
        Some((epoch, beat)) => tx.query_opt(
            "UPDATE leases SET holder = ?2, epoch = epoch + 1, beat = 0, ttl = ?3,
                 expires_at = ?4, acquired_at = ?5
             WHERE resource = ?1 AND epoch = ?6 AND beat = ?7 RETURNING epoch",
            params![resource, me, ttl, expires_at, now, epoch, beat],
            |row| row.get(0),
        ),
    }?;
    Ok(taken)
}

/// A row of `leases`.
pub(crate) struct LeaseRow {
    epoch: i64,
    beat: i64,
    holder: Option<Holder>,
}

const ROW: &str = "SELECT resource, holder, epoch, beat, ttl, expires_at, acquired_at FROM leases";

impl LeaseRow {
    fn from(row: &crate::Row<'_>) -> Result<Self> {
        let process: Option<String> = row.get(1)?;
        let process = process.map(|text| {
            text.parse().map_err(|()| {
                Error::Statement(format!("\"{text}\" is not a valid process identity"))
            })
        });
        let (resource, epoch, beat, ttl): (String, i64, i64, i64) =
            (row.get(0)?, row.get(2)?, row.get(3)?, row.get(4)?);
        let (expires_at, since) = (row.get(5)?, row.get(6)?);
        let holder = process.transpose()?.map(|process| Holder {
            resource,
            process,
            epoch,
            since,
            ttl: Duration::from_millis(u64::try_from(ttl).unwrap_or(0)),
            beat,
            expires_at,
        });
        Ok(Self { epoch, beat, holder })
    }
}

impl ReadTx<'_> {
    fn lease_row(&mut self, resource: &str) -> Result<Option<LeaseRow>> {
        self.query_opt(&format!("{ROW} WHERE resource = ?1"), params![resource], LeaseRow::from)
    }
}

impl Observations {
    /// The uptime at which this beat of this holder was first seen.
    fn first_seen(&self, holder: &Holder, uptime: i64) -> i64 {
        let mut seen = lock(&self.0);
        let entry =
            seen.entry(holder.resource.clone()).or_insert((holder.epoch, holder.beat, uptime));
        if (entry.0, entry.1) != (holder.epoch, holder.beat) {
            *entry = (holder.epoch, holder.beat, uptime);
        }
        entry.2
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} on {}", self.process.pid, self.process.host)
    }
}

/// The topic that wakes the standbys of a lease.
pub(crate) fn topic(resource: &str) -> String {
    format!("lease/{resource}")
}

/// Renews a lease; `false` when it moved on.
pub(crate) fn renewal(tx: &mut WriteTx<'_>, grant: &Grant, expires_at: i64) -> Result<bool> {
    let renewed = tx.execute(
        "UPDATE leases SET beat = beat + 1, expires_at = ?3
         WHERE resource = ?1 AND epoch = ?2 AND holder IS NOT NULL",
        params![grant.resource, grant.epoch, expires_at],
    )?;
    Ok(renewed == 1)
}

/// Lets a lease go, if it is still this one.
pub(crate) fn release(tx: &mut WriteTx<'_>, grant: &Grant) -> Result<()> {
    tx.wake(&topic(&grant.resource))?;
    tx.execute(
        "UPDATE leases SET holder = NULL, beat = beat + 1 WHERE resource = ?1 AND epoch = ?2",
        params![grant.resource, grant.epoch],
    )
    .map(drop)
}
