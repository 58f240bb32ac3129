//! Leases between handles of one process. Death and SIGSTOP are tested with real processes.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use mainstay_store::{Acquired, Clock, Error, Lease, Store, SystemClock, params};

use crate::place::Place;

const MINUTE: Duration = Duration::from_secs(60);

fn got(acquired: Acquired) -> Lease {
    match acquired {
        Acquired::Got(lease) => lease,
        Acquired::Held(holder) => panic!("held by {holder}"),
    }
}

fn is_held(store: &Store, resource: &str) -> bool {
    matches!(store.try_acquire(resource, MINUTE).unwrap(), Acquired::Held(_))
}

pub(crate) fn only_one_of_many_gets_a_lease(place: &Place) {
    let stores = [place.open(), place.open()];
    let (start, winners) = (Barrier::new(6), AtomicUsize::new(0));
    let end = Barrier::new(6);
    thread::scope(|scope| {
        for number in 0..6 {
            let (store, start, end, winners) = (&stores[number % 2], &start, &end, &winners);
            scope.spawn(move || {
                start.wait();
                let acquired = store.acquire("task", MINUTE, Duration::ZERO).unwrap();
                if matches!(acquired, Acquired::Got(_)) {
                    winners.fetch_add(1, Ordering::Relaxed);
                }
                end.wait();
            });
        }
    });
    assert_eq!(winners.load(Ordering::Relaxed), 1);
}

pub(crate) fn a_lease_let_go_wakes_its_standby(place: &Place) {
    let one = place.open();
    let clock = Arc::new(Moved::default());
    let two = Store::open(&place.location, place.options().clock(clock.clone())).unwrap();
    let lease = got(one.try_acquire("task", MINUTE).unwrap());
    let unasked = clock.reads();
    assert!(is_held(&two, "task"));
    let asked = clock.reads();
    let epoch = lease.epoch();
    thread::scope(|scope| {
        let standby = scope.spawn(|| {
            let asked = Instant::now();
            let lease = got(two.acquire("task", MINUTE, MINUTE).unwrap());
            (lease.epoch(), asked.elapsed())
        });
        // It asks once, as above, and then looks for how long to wait.
        clock.wait_for_reads(asked + (asked - unasked) + 1);
        lease.release().unwrap();
        let (next, waited) = standby.join().unwrap();
        assert!(next > epoch);
        assert!(waited < Duration::from_secs(4), "woken, not polled: {waited:?}");
    });
}

/// A clock that moves when it is told to, and knows how often it was read.
#[derive(Default)]
struct Moved {
    uptime: AtomicI64,
    wall: AtomicI64,
    reads: AtomicUsize,
}

impl Moved {
    fn an_hour_later() -> Arc<Self> {
        Arc::new(Self { uptime: AtomicI64::new(3_600_000), ..Self::default() })
    }

    /// How often the uptime was read.
    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn wait_for_reads(&self, reads: usize) {
        until("the clock is read", || self.reads() >= reads);
    }
}

/// Waits for something with a deadline.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < MINUTE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

impl Clock for Moved {
    fn wall_millis(&self) -> i64 {
        SystemClock.wall_millis() + self.wall.load(Ordering::Relaxed)
    }

    fn uptime_millis(&self) -> i64 {
        self.reads.fetch_add(1, Ordering::SeqCst);
        SystemClock.uptime_millis() + self.uptime.load(Ordering::Relaxed)
    }
}

pub(crate) fn a_lease_lives_while_it_is_renewed_and_dies_when_not(place: &Place) {
    let clock = Arc::new(Moved::default());
    let open = || Store::open(&place.location, place.options().clock(clock.clone())).unwrap();
    let (one, two) = (open(), open());
    let lease = got(one.try_acquire("task", MINUTE).unwrap());
    let expires_at = || -> i64 {
        let sql = "SELECT expires_at FROM leases WHERE resource = ?1";
        two.read(|tx| tx.query_one(sql, params!["task"], |row| row.get(0))).unwrap()
    };
    // Two lives long it is renewed in the background, each time a third of its life has passed.
    for _ in 0..6 {
        let before = expires_at();
        clock.uptime.fetch_add(20_000, Ordering::Relaxed);
        // Whoever renews sleeps by real time; another lease wakes it, and it looks at the clock.
        drop(got(one.try_acquire("another", MINUTE).unwrap()));
        until("it is renewed", || expires_at() > before);
        assert!(is_held(&two, "task"));
        assert!(lease.is_live());
    }
    // Seen from a machine that was up an hour longer, it has expired.
    let three =
        Store::open(&place.location, place.options().clock(Moved::an_hour_later())).unwrap();
    // A renewal in the very moment wins; then it is asked again.
    let taken = got(three.acquire("task", MINUTE, MINUTE).unwrap());
    assert!(taken.epoch() > lease.epoch());
}

pub(crate) fn a_former_holder_cannot_write(place: &Place) {
    let one = place.open();
    let lease = got(one.try_acquire("task", MINUTE).unwrap());
    one.write(|tx| lease.guard(tx)).unwrap();
    let later = Moved::an_hour_later();
    let two = Store::open(&place.location, place.options().clock(later)).unwrap();
    let taken = got(two.try_acquire("task", MINUTE).unwrap());
    let refused = one
        .write(|tx| {
            tx.publish("written", "late")?;
            lease.guard(tx)
        })
        .unwrap_err();
    assert!(matches!(refused, Error::LeaseLost { .. }), "{refused}");
    assert!(!lease.is_live());
    assert!(one.read(|tx| tx.events("written", 0, 1)).unwrap().events.is_empty());
    two.write(|tx| taken.guard(tx)).unwrap();
    // Letting go of what moved on does not take it from its holder.
    drop(lease);
    two.write(|tx| taken.guard(tx)).unwrap();
}

/// The holder looks at its lease, then stands still inside its transaction while another wants the
/// lease: either its write is there when the other has the lease, or it is refused.
pub(crate) fn a_holder_that_pauses_inside_its_write_is_fenced_too(place: &Place) {
    let one = place.open();
    let lease = got(one.try_acquire("task", MINUTE).unwrap());
    let later = Moved::an_hour_later();
    let two = Store::open(&place.location, place.options().clock(later.clone())).unwrap();
    let inside = Barrier::new(2);
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            inside.wait();
            let taken = got(two.acquire("task", MINUTE, MINUTE).unwrap());
            let seen = two.read(|tx| tx.events("written", 0, 10)).unwrap().events.len();
            drop(taken);
            seen
        });
        let mut first = true;
        let written = one.write(|tx| {
            lease.guard(tx)?;
            if std::mem::take(&mut first) {
                let before = later.reads();
                inside.wait();
                // The other has looked at the lease, and is about to take it.
                later.wait_for_reads(before + 2);
            }
            tx.publish("written", "by the first").map(drop)
        });
        let seen = taker.join().unwrap();
        assert_eq!(seen, usize::from(written.is_ok()), "{written:?}");
    });
}

pub(crate) fn a_jump_of_the_wall_clock_changes_nothing(place: &Place) {
    let clock = Arc::new(Moved::default());
    let one = Store::open(&place.location, place.options().clock(clock.clone())).unwrap();
    let two = Store::open(&place.location, place.options().clock(clock.clone())).unwrap();
    let lease = got(one.try_acquire("task", MINUTE).unwrap());
    for day in [1, -1, 365, -365] {
        clock.wall.store(day * 86_400_000, Ordering::Relaxed);
        assert!(lease.is_live());
        assert!(is_held(&two, "task"));
        one.write(|tx| lease.guard(tx)).unwrap();
    }
    // A lease that ran out is not prolonged by a clock that went back. Its keeper sleeps by real
    // time and does not see the minute pass.
    clock.wall.store(-86_400_000, Ordering::Relaxed);
    clock.uptime.store(61_000, Ordering::Relaxed);
    assert!(!lease.is_live());
    let taken = got(two.try_acquire("task", MINUTE).unwrap());
    assert!(taken.epoch() > lease.epoch());
}
