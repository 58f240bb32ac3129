//! Several processes on one store.

use std::fs;
use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mainstay_store::{Depth, Location, Options, Schema, Store, params};
use mainstay_testkit::process::{Running, example};

use crate::witness::{read_acks, steady_writer, store_in, verify};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn slow_eight_processes_killed_at_random_lose_nothing_and_write_nothing_twice() {
    const WRITERS: usize = 8;
    const EACH: u32 = 500;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("watched");
    fs::create_dir(&directory).unwrap();
    let mut random = fastrand::Rng::with_seed(8);
    let start = |writer: usize| {
        let mut command = steady_writer(&directory, &format!("w{writer}"), EACH, &[]);
        Running::spawn(command.stderr(Stdio::inherit()))
    };
    let mut running: Vec<Option<Running>> =
        (0..WRITERS).map(|writer| Some(start(writer))).collect();
    let mut kills = 0;
    while running.iter().any(Option::is_some) {
        thread::sleep(Duration::from_millis(random.u64(5..60)));
        for slot in &mut running {
            if slot.as_mut().is_some_and(|child| !child.is_running())
                && let Some(mut child) = slot.take()
            {
                ended_well(child.kill_and_wait());
            }
        }
        let victim = random.usize(..WRITERS);
        if kills < 60
            && let Some(mut child) = running[victim].take()
        {
            let status = child.kill_and_wait();
            if status.success() {
                continue;
            }
            ended_well(status);
            kills += 1;
            running[victim] = Some(start(victim));
        }
    }
    println!("{kills} kills");
    assert!(kills >= 20, "the test must hurt: {kills}");
    let there = verify(&store_in(&directory), &read_acks(&directory));
    assert_eq!(there.len(), WRITERS);
    assert!(there.values().all(|last| *last == i64::from(EACH)), "{there:?}");
}

/// Nobody but the killer ends a writer: no "database is locked", no other error reaches it.
fn ended_well(status: ExitStatus) {
    use std::os::unix::process::ExitStatusExt;
    assert!(status.success() || status.signal() == Some(9), "{status}");
}

/// A process that takes the lease on "work" and writes what it is told.
struct Holder {
    running: Running,
    input: std::process::ChildStdin,
}

impl Holder {
    fn start(store: &str, ttl: Duration, patience: Duration) -> Self {
        let mut command = Command::new(example("lease_holder"));
        command
            .arg(store)
            .args([ttl, patience].map(|time| time.as_millis().to_string()))
            .stdin(Stdio::piped());
        let mut running = Running::spawn(&mut command);
        let input = running.stdin().unwrap();
        Self { running, input }
    }

    fn epoch(&mut self) -> i64 {
        let line = self.running.line_with("got", SOON);
        line.strip_prefix("got ").unwrap().parse().unwrap()
    }

    fn write(&mut self, body: &str) -> String {
        writeln!(self.input, "{body}").unwrap();
        self.running.next_line(SOON).unwrap()
    }
}

pub(crate) fn a_stopped_holder_is_fenced_off(store: &str) -> Vec<String> {
    let ttl = Duration::from_millis(900);
    let mut first = Holder::start(store, ttl, Duration::ZERO);
    let epoch = first.epoch();
    assert_eq!(first.write("one"), "wrote one");
    first.running.stop();
    let mut second = Holder::start(store, ttl, SOON);
    assert!(second.epoch() > epoch);
    assert_eq!(second.write("two"), "wrote two");
    first.running.cont();
    let refused = first.write("late");
    assert_eq!(refused, "refused: the lease on work was taken over; nothing was written");
    assert_eq!(second.write("three"), "wrote three");
    let store = Store::open(&store.parse().unwrap(), Options::new(Schema::default())).unwrap();
    let page = store.read(|tx| tx.events("work", 0, 100)).unwrap();
    page.events.into_iter().map(|event| event.body).collect()
}

#[test]
fn a_holder_stopped_past_its_lease_cannot_write_when_it_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(directory.path()).display().to_string();
    assert_eq!(a_stopped_holder_is_fenced_off(&store), ["one", "two", "three"]);
}

#[test]
fn a_holder_stopped_past_its_lease_cannot_write_when_it_comes_back_on_postgres() {
    let store = mainstay_testkit::postgres::fresh();
    assert_eq!(a_stopped_holder_is_fenced_off(&store), ["one", "two", "three"]);
}

#[test]
fn a_standby_takes_over_at_once_when_the_holder_dies() {
    let directory = tempfile::tempdir().unwrap();
    for store in
        [store_in(directory.path()).display().to_string(), mainstay_testkit::postgres::fresh()]
    {
        let hour = Duration::from_secs(3600);
        let mut first = Holder::start(&store, hour, Duration::ZERO);
        first.epoch();
        let mut second = Holder::start(&store, hour, hour);
        second.running.line_with("standing by", SOON);
        thread::sleep(Duration::from_millis(300));
        let killed = Instant::now();
        first.running.kill_and_wait();
        second.epoch();
        assert!(killed.elapsed() < Duration::from_secs(3), "it waited for a poll");
    }
}

#[test]
fn slow_the_log_stays_small_beside_readers_that_never_stop() {
    const COMMITS: u32 = 100_000;
    const BOUND: u64 = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = store_in(directory.path());
    let store = Store::open(&Location::file(&path), Options::new(Schema::default())).unwrap();
    let (done, largest, reads) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let wal = directory.path().join("store.db-wal");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Each holds its moment for a while, so that one of them always overlaps.
                    store
                        .read(|tx| {
                            thread::sleep(Duration::from_millis(10));
                            let sql = "SELECT max(number) FROM events WHERE topic = 'load'";
                            tx.query_one(sql, params![], |row| row.get::<Option<i64>>(0))
                        })
                        .unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                largest.fetch_max(
                    fs::metadata(&wal).map_or(0, |found| found.len()),
                    Ordering::Relaxed,
                );
                thread::sleep(Duration::from_millis(2));
            }
        });
        for _ in 0..COMMITS {
            store.write(|tx| tx.publish("load", &"x".repeat(200)).map(drop)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let (largest, reads) = (largest.into_inner(), reads.into_inner());
    println!("{COMMITS} commits, {reads} reads, largest log {} KiB", largest >> 10);
    assert!(largest < BOUND, "{largest} bytes");
    assert!(reads > 1000, "{reads}");
    assert_eq!(store.check(Depth::Quick).unwrap(), Vec::<String>::new());
    drop(store);
    assert!(!wal.exists(), "the last one to leave empties the log");
}
