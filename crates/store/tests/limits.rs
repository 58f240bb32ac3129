//! Reads and writes of an SQLite store end in time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]

use std::time::{Duration, Instant};

use mainstay_store::{Error, Limits, Location, Options, Schema, Store, params};

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT count(*) FROM n";

#[test]
#[allow(clippy::disallowed_methods, reason = "measures that it ended")]
fn an_endless_statement_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let short = Duration::from_millis(200);
    let limits = Limits { read: short, write: short, ..Limits::default() };
    let location = Location::file(directory.path().join("store.db"));
    let store = Store::open(&location, Options::new(Schema::default()).limits(limits)).unwrap();
    let asked = Instant::now();
    let read = store.read(|tx| tx.query_one(ENDLESS, params![], |row| row.get::<i64>(0)));
    assert!(matches!(read, Err(Error::TooSlow { .. })), "{read:?}");
    let write = store.write(|tx| tx.query_one(ENDLESS, params![], |row| row.get::<i64>(0)));
    assert!(matches!(write, Err(Error::TooSlow { .. })), "{write:?}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    store.write(|tx| tx.owner("goes on")).unwrap();
}
