//! Several writers and readers in one process.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mainstay_store::{Component, Location, Migration, Options, Schema, Store, params};

use crate::bare::timed;
use crate::contender::{Place, Sample};

const LOAD: Component = Component {
    name: "load",
    migrations: &[Migration::Both(
        "CREATE TABLE load (writer TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (writer, number)) STRICT;",
    )],
};

pub(crate) fn open(path: &Path) -> Store {
    Store::open(&Location::file(path), Options::new(Schema::new(&[LOAD]))).unwrap()
}

pub(crate) fn insert(store: &Store, writer: &str, number: u64) {
    let body = "x".repeat(300);
    store
        .write(|tx| {
            tx.execute(
                "INSERT INTO load (writer, number, body) VALUES (?1, ?2, ?3)",
                params![writer, number.cast_signed(), body],
            )
        })
        .unwrap();
}

pub(crate) fn write(place: &Place, writers: usize) -> Sample {
    let store = open(&place.fresh("threads"));
    let begin = Barrier::new(writers + 1);
    thread::scope(|scope| {
        let running: Vec<_> = (0..writers)
            .map(|writer| {
                let (store, begin) = (&store, &begin);
                scope.spawn(move || {
                    begin.wait();
                    timed(|number| insert(store, &format!("w{writer}"), number))
                })
            })
            .collect();
        begin.wait();
        Sample::sum(running.into_iter().map(|one| one.join().unwrap()))
    })
}

/// One reader that looks up rows by key.
pub(crate) fn read(place: &Place, writers: usize) -> Sample {
    let store = open(&place.fresh("readers"));
    (0..1000).for_each(|number| insert(&store, "seed", number));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..writers {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                let name = format!("w{writer}");
                for number in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    insert(store, &name, number);
                }
            });
        }
        let sample = timed(|number| {
            let key = (number % 1000).cast_signed();
            let sql = "SELECT body FROM load WHERE writer = 'seed' AND number = ?1";
            let found: Option<String> =
                store.read(|tx| tx.query_opt(sql, params![key], |row| row.get(0))).unwrap();
            assert!(found.is_some());
        });
        done.store(true, Ordering::Relaxed);
        sample
    })
}
