//! What only a server can do: go away, forget to answer, end connections, be slow.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mainstay_store::{
    Component, Error, Limits, Location, Migration, Options, Result, Schema, Store, params,
};
use mainstay_testkit::postgres::{self, PrivateCluster};
use mainstay_testkit::proxy::{Fate, PgProxy};

/// No key, so that what runs twice is there twice.
const LOG: Component = Component {
    name: "log",
    migrations: &[Migration::Both(
        "CREATE TABLE log (writer INTEGER NOT NULL, number INTEGER NOT NULL) STRICT;",
    )],
};

fn open(url: &str, limits: Limits) -> Store {
    let location: Location = url.parse().unwrap();
    Store::open(&location, Options::new(Schema::new(&[LOG])).limits(limits)).unwrap()
}

fn append(store: &Store, writer: i64, number: i64) -> Result<()> {
    store.write(|tx| {
        tx.publish(&format!("log/{writer}"), &number.to_string())?;
        let sql = "INSERT INTO log (writer, number) VALUES (?1, ?2)";
        tx.execute(sql, params![writer, number]).map(drop)
    })
}

fn log(store: &Store, writer: i64) -> Vec<i64> {
    let sql = "SELECT number FROM log WHERE writer = ?1 ORDER BY number";
    store.read(|tx| tx.query(sql, params![writer], |row| row.get(0))).unwrap()
}

#[test]
fn slow_connections_ended_at_random_lose_nothing_and_repeat_nothing() {
    const WRITERS: i64 = 4;
    const EACH: i64 = 300;
    let schema = postgres::fresh_schema();
    let store = open(&format!("{}?schema={schema}", postgres::admin_url()), Limits::default());
    let (done, ended) = (AtomicI64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                let outcome = (1..=EACH).try_for_each(|number| append(store, writer, number));
                // Also where it failed: the other side ends when all are done.
                done.fetch_add(1, Ordering::Relaxed);
                outcome.unwrap();
            });
        }
        scope.spawn(|| {
            let end_one = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                 WHERE starts_with(application_name, 'mainstay {schema} ')
                 ORDER BY random() LIMIT 1) AS one"
            );
            while done.load(Ordering::Relaxed) < WRITERS {
                let count: i64 = postgres::psql(&end_one).trim().parse().unwrap();
                ended.fetch_add(count, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
        });
    });
    println!("{} connections ended", ended.load(Ordering::Relaxed));
    assert!(ended.into_inner() > 10, "the test must hurt");
    let all: Vec<i64> = (1..=EACH).collect();
    (0..WRITERS).for_each(|writer| assert_eq!(log(&store, writer), all));
    assert_eq!(store.check(mainstay_store::Depth::Full).unwrap(), Vec::<String>::new());
}

/// Loses the word on one commit after another, in each of the ways it can be lost.
fn a_lost_word(fate: Fate, commits: u64) {
    let proxy = PgProxy::start(&postgres::socket_directory());
    let limits = Limits { write: Duration::from_secs(2), ..Limits::default() };
    let store = open(&proxy.url(&postgres::fresh_schema()), limits);
    for number in 1..=commits {
        let before = proxy.happened();
        proxy.at_commit(1, fate);
        append(&store, 1, number.cast_signed()).unwrap();
        assert_eq!(proxy.happened(), before + 1, "the word was lost");
    }
    assert_eq!(log(&store, 1), (1..=commits.cast_signed()).collect::<Vec<_>>());
}

#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    a_lost_word(Fate::LoseAnswer, 20);
}

#[test]
fn a_commit_that_never_arrived_is_made_again() {
    a_lost_word(Fate::LoseRequest, 20);
}

#[test]
fn slow_a_commit_that_is_met_with_silence_is_settled_in_time() {
    a_lost_word(Fate::GoSilent, 3);
}

#[test]
fn a_server_that_cannot_be_reached_is_told_in_time() {
    let proxy = PgProxy::start(&postgres::socket_directory());
    let limits = Limits { write: Duration::from_secs(1), ..Limits::default() };
    let store = open(&proxy.url(&postgres::fresh_schema()), limits);
    append(&store, 1, 1).unwrap();
    proxy.down();
    proxy.cut();
    let asked = Instant::now();
    let error = append(&store, 1, 2).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    proxy.up();
    append(&store, 1, 3).unwrap();
    assert_eq!(log(&store, 1), [1, 3]);
}

#[test]
fn slow_a_cut_that_is_shorter_than_the_lease_is_waited_out_and_nothing_is_written_twice() {
    const WRITERS: i64 = 3;
    let proxy = PgProxy::start(&postgres::socket_directory());
    let limits = Limits { write: Duration::from_millis(500), ..Limits::default() };
    let store = open(&proxy.url(&postgres::fresh_schema()), limits);
    let lease = store.try_acquire("session/x", Duration::from_secs(60)).unwrap();
    let stop = AtomicBool::new(false);
    let written: Vec<i64> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, stop) = (&store, &stop);
                scope.spawn(move || {
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) {
                        number += 1;
                        append(store, writer, number).unwrap();
                        assert_eq!(log(store, writer).len(), number.cast_unsigned() as usize);
                    }
                    number
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(300));
        // At any point of a transaction, commits included; far longer than a write may take.
        proxy.silence();
        thread::sleep(Duration::from_secs(4));
        proxy.up();
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (writer, written) in (0..).zip(written) {
        assert_eq!(log(&store, writer), (1..=written).collect::<Vec<_>>());
    }
    drop(lease);
}

#[test]
fn a_server_that_stays_away_is_waited_for_as_long_as_the_lease() {
    let proxy = PgProxy::start(&postgres::socket_directory());
    let limits = Limits { write: Duration::from_millis(100), ..Limits::default() };
    let store = open(&proxy.url(&postgres::fresh_schema()), limits);
    let lease = store.try_acquire("session/x", Duration::from_secs(3)).unwrap();
    append(&store, 1, 1).unwrap();
    proxy.down();
    proxy.cut();
    let asked = Instant::now();
    let error = append(&store, 1, 2).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    // It was renewed within the last third of its time.
    assert!(asked.elapsed() > Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    // Without a lease it is not worth the wait.
    let asked = Instant::now();
    append(&store, 1, 3).unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    drop(lease);
}

#[test]
fn slow_a_server_killed_and_restarted_loses_nothing_acknowledged() {
    let cluster = PrivateCluster::start();
    let limits = Limits { write: Duration::from_secs(30), ..Limits::default() };
    let store = open(&cluster.admin_url(), limits);
    let stop = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                append(&store, 1, number).unwrap();
            }
            number
        });
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(400));
            cluster.kill();
            cluster.restart();
        }
        thread::sleep(Duration::from_millis(400));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    println!("{written} commits around two crashes of the server");
    assert_eq!(log(&store, 1), (1..=written).collect::<Vec<_>>());
}

#[test]
fn a_statement_has_a_deadline() {
    let limits = Limits {
        read: Duration::from_millis(300),
        write: Duration::from_millis(300),
        ..Limits::default()
    };
    let store = open(&postgres::fresh(), limits);
    let asked = Instant::now();
    let sleep = "SELECT 1 FROM (SELECT pg_sleep(60)) AS nap";
    let read = store.read(|tx| tx.query_opt(sleep, params![], |row| row.get::<i64>(0)));
    assert!(matches!(read, Err(Error::TooSlow { .. })), "{read:?}");
    let write = store.write(|tx| tx.query_opt(sleep, params![], |row| row.get::<i64>(0)));
    assert!(matches!(write, Err(Error::TooSlow { .. })), "{write:?}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    append(&store, 1, 1).unwrap();
}

#[test]
fn wrong_addresses_are_told_apart() {
    let refused = |url: &str| {
        let limits = Limits { connect: Duration::from_millis(300), ..Limits::default() };
        let options = Options::new(Schema::default()).limits(limits);
        Store::open(&url.parse().unwrap(), options).unwrap_err()
    };
    let nobody = refused("postgres://me@127.0.0.1:1/db");
    assert!(matches!(nobody, Error::Unreachable { .. }), "{nobody:?}");
    let directory = postgres::admin_url();
    let no_such = directory.replace(postgres::DATABASE, "no_such_database");
    let wrong = refused(&no_such);
    assert!(matches!(wrong, Error::Refused { .. }), "{wrong:?}");
    assert!(wrong.to_string().contains("no_such_database"), "{wrong}");
}
