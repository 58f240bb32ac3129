//! What the disk and SQLite give without us.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use crate::contender::{Place, Sample, TURN};

/// Overwrites a block and syncs it.
pub(crate) fn sync(place: &Place) -> Sample {
    let path = place.fresh("raw");
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
    file.write_all_at(&[0; 64 * 1024], 0).unwrap();
    file.sync_all().unwrap();
    timed(|number| {
        file.write_all_at(&[1; 4096], (number % 16) * 4096).unwrap();
        file.sync_data().unwrap();
    })
}

/// One row a transaction, in a loop, with the settings the store uses.
pub(crate) fn sqlite(place: &Place) -> Sample {
    let connection = rusqlite::Connection::open(place.fresh("bare")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
             CREATE TABLE load (writer TEXT, number INTEGER, body TEXT,
                 PRIMARY KEY (writer, number)) STRICT;",
        )
        .unwrap();
    timed(|number| {
        let body = "x".repeat(300);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
            .prepare_cached("INSERT INTO load (writer, number, body) VALUES (?1, ?2, ?3)")
            .unwrap()
            .execute(("bare", number.cast_signed(), body))
            .unwrap();
        connection.execute_batch("COMMIT").unwrap();
    })
}

/// Repeats `work` for one turn.
pub(crate) fn timed(mut work: impl FnMut(u64)) -> Sample {
    let start = Instant::now();
    let mut times = Vec::new();
    for number in 0.. {
        let before = Instant::now();
        work(number);
        times.push(before.elapsed().as_secs_f64() * 1000.0);
        if start.elapsed() >= TURN {
            break;
        }
    }
    // The last one ended after the turn.
    let done = times.len() - 1;
    Sample { times, done }
}
