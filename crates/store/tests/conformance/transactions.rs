//! Writes and reads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use mainstay_store::{
    Component, Error, Migration, Options, Result, Schema, Store, Value, WriteTx, params,
};

use crate::place::{PROBE, Place};

fn put(tx: &mut WriteTx<'_>, key: &str, value: i64) -> Result<()> {
    tx.execute(
        "INSERT INTO pairs (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        params![key, value],
    )
    .map(drop)
}

fn get(store: &Store, key: &str) -> Option<i64> {
    store
        .read(|tx| {
            tx.query_opt("SELECT value FROM pairs WHERE key = ?1", params![key], |row| row.get(0))
        })
        .unwrap()
}

pub(crate) fn what_was_written_is_read_by_every_handle(place: &Place) {
    let (one, two) = (place.open(), place.open());
    one.write(|tx| put(tx, "a", 1)).unwrap();
    assert_eq!((get(&one, "a"), get(&two, "a")), (Some(1), Some(1)));
    drop((one, two));
    assert_eq!(get(&place.open(), "a"), Some(1));
}

pub(crate) fn a_note_is_a_transaction_like_any_other(place: &Place) {
    let (one, two) = (place.open(), place.open());
    one.note(|tx| put(tx, "a", 1)).unwrap();
    assert_eq!(get(&two, "a"), Some(1));
    let failed = one.note(|tx| {
        put(tx, "a", 2)?;
        Err::<(), _>(Error::Unstorable("a thing"))
    });
    assert!(failed.is_err());
    assert_eq!(get(&two, "a"), Some(1));
    // Notes and writes of many threads share commits.
    thread::scope(|scope| {
        for number in 0..4 {
            let (one, two) = (&one, &two);
            scope.spawn(move || {
                for value in 0..20 {
                    one.note(|tx| put(tx, &format!("note {number}"), value)).unwrap();
                    one.write(|tx| put(tx, &format!("write {number}"), value)).unwrap();
                    two.note(|tx| put(tx, &format!("other {number}"), value)).unwrap();
                }
            });
        }
    });
    drop((one, two));
    let store = place.open();
    for key in
        (0..4).flat_map(|number| ["note", "write", "other"].map(|of| format!("{of} {number}")))
    {
        assert_eq!(get(&store, &key), Some(19), "{key}");
    }
}

pub(crate) fn what_asks_for_its_turn_does_nothing_in_vain(place: &Place) {
    let store = place.open();
    store.write(|tx| put(tx, "sum", 0)).unwrap();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    store
                        .write(|tx| {
                            tx.in_turn()?;
                            done.fetch_add(1, Ordering::Relaxed);
                            let sql = "SELECT value FROM pairs WHERE key = 'sum'";
                            let sum: i64 = tx.query_one(sql, params![], |row| row.get(0))?;
                            put(tx, "sum", sum + 1)
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(get(&store, "sum"), Some(40));
    assert_eq!(done.into_inner(), 40, "no work was done twice");
}

pub(crate) fn a_failed_closure_leaves_nothing_and_its_neighbours_stay(place: &Place) {
    let store = place.open();
    let start = Barrier::new(24);
    thread::scope(|scope| {
        for number in 0..24 {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                let outcome = store.write(|tx| {
                    put(tx, &format!("key {number}"), number)?;
                    if number % 3 == 0 { Err(Error::Unstorable("a third")) } else { Ok(number) }
                });
                match outcome {
                    Ok(answer) => assert!(answer == number && number % 3 != 0),
                    Err(Error::Unstorable("a third")) => assert_eq!(number % 3, 0),
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    for number in 0..24 {
        let expected = (number % 3 != 0).then_some(number);
        assert_eq!(get(&store, &format!("key {number}")), expected);
    }
}

pub(crate) fn a_panic_is_rolled_back_and_told_to_its_caller(place: &Place) {
    let store = place.open();
    let outcome: Result<()> = store.write(|tx| {
        put(tx, "a", 1)?;
        panic!("number {}", 7)
    });
    assert!(matches!(outcome, Err(Error::Panicked(text)) if text == "number 7"));
    assert_eq!(get(&store, "a"), None);
    let read: Result<()> = store.read(|_| panic!("while reading"));
    assert!(matches!(read, Err(Error::Panicked(_))));
    store.write(|tx| put(tx, "a", 2)).unwrap();
    assert_eq!(get(&store, "a"), Some(2));
}

pub(crate) fn a_write_inside_a_write_is_refused_and_does_not_hang(place: &Place) {
    let store = place.open();
    let inner = store.write(|tx| {
        put(tx, "outer", 1)?;
        store.write(|tx| put(tx, "inner", 1))
    });
    assert!(matches!(inner, Err(Error::Nested)), "{inner:?}");
    assert_eq!((get(&store, "outer"), get(&store, "inner")), (None, None));
    store.write(|tx| put(tx, "after", 1)).unwrap();
}

pub(crate) fn a_failed_statement_dooms_its_transaction(place: &Place) {
    let store = place.open();
    let outcome = store.write(|tx| {
        put(tx, "a", 1)?;
        let _ = tx.execute("INSERT INTO pairs (key, value) VALUES ('a', 2)", params![]);
        Ok::<_, Error>(())
    });
    assert!(matches!(outcome, Err(Error::Statement(_))), "{outcome:?}");
    assert_eq!(get(&store, "a"), None);
}

pub(crate) fn a_constraint_says_no_in_words(place: &Place) {
    let store = place.open();
    let insert = "INSERT INTO pairs (key, value) VALUES ('a', 1)";
    store.write(|tx| tx.execute(insert, params![])).unwrap();
    let refused = store.write(|tx| tx.execute(insert, params![])).unwrap_err();
    assert!(matches!(refused, Error::Constraint { .. }), "{refused}");
}

pub(crate) fn values_come_back_as_they_went(place: &Place) {
    let store = place.open();
    let rows = [
        [
            Value::Integer(i64::MIN),
            Value::Real(-0.1),
            Value::Text("naïve 漢字 \u{1f980} '\"\\".into()),
            Value::Blob(vec![0, 255, 10]),
        ],
        [
            Value::Integer(i64::MAX),
            Value::Real(f64::MAX),
            Value::Text(String::new()),
            Value::Blob(vec![]),
        ],
        [Value::Null, Value::Null, Value::Null, Value::Null],
    ];
    for (id, row) in rows.iter().enumerate() {
        store
            .write(|tx| {
                tx.execute(
                    "INSERT INTO things (id, whole, part, words, bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id.to_string(), row[0], row[1], row[2], row[3]],
                )
            })
            .unwrap();
    }
    let back: Vec<Vec<Value>> = store
        .read(|tx| {
            let sql = "SELECT whole, part, words, bytes FROM things ORDER BY id";
            tx.query(sql, params![], |row| (0..4).map(|index| row.get(index)).collect())
        })
        .unwrap();
    assert_eq!(back, rows.map(Vec::from));
}

pub(crate) fn what_one_engine_could_not_keep_is_refused_by_both(place: &Place) {
    let store = place.open();
    let sql = "INSERT INTO things (id, part, words) VALUES ('a', ?1, ?2)";
    let nul = store.write(|tx| tx.execute(sql, params![0.5, "a\0b"]));
    assert!(matches!(nul, Err(Error::Unstorable(_))), "{nul:?}");
    let nan = store.write(|tx| tx.execute(sql, params![f64::NAN, "a"]));
    assert!(matches!(nan, Err(Error::Unstorable(_))), "{nan:?}");
}

pub(crate) fn text_sorts_by_its_bytes(place: &Place) {
    let store = place.open();
    let mut keys = ["a", "B", "é", "_", "~", "aa", "漢", "Z", "0"];
    store.write(|tx| keys.iter().try_for_each(|key| put(tx, key, 0))).unwrap();
    let sorted: Vec<String> = store
        .read(|tx| tx.query("SELECT key FROM pairs ORDER BY key", params![], |row| row.get(0)))
        .unwrap();
    keys.sort_unstable();
    assert_eq!(sorted, keys);
}

pub(crate) fn a_read_sees_one_moment(place: &Place) {
    let (reader, writer) = (place.open(), place.open());
    writer.write(|tx| put(tx, "a", 1)).unwrap();
    let count = "SELECT value FROM pairs WHERE key = 'a'";
    let (before, after): (i64, i64) = reader
        .read(|tx| {
            let before = tx.query_one(count, params![], |row| row.get(0))?;
            writer.write(|tx| put(tx, "a", before + 1))?;
            let after = tx.query_one(count, params![], |row| row.get(0))?;
            Ok::<_, Error>((before, after))
        })
        .unwrap();
    assert_eq!(before, after);
    assert_eq!(get(&reader, "a"), Some(after + 1));
}

pub(crate) fn a_read_cannot_write(place: &Place) {
    let store = place.open();
    let sql = "INSERT INTO pairs (key, value) VALUES ('a', 1) RETURNING value";
    let outcome = store.read(|tx| tx.query_opt(sql, params![], |row| row.get::<i64>(0)));
    assert!(outcome.is_err());
    assert_eq!(get(&store, "a"), None);
}

pub(crate) fn increments_are_never_lost(place: &Place) {
    let stores = [place.open(), place.open()];
    stores[0].write(|tx| put(tx, "n", 0)).unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let store = &stores[number % 2];
            scope.spawn(move || {
                for _ in 0..25 {
                    store
                        .write(|tx| {
                            let sql = "SELECT value FROM pairs WHERE key = 'n'";
                            let n: i64 = tx.query_one(sql, params![], |row| row.get(0))?;
                            put(tx, "n", n + 1)
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(get(&stores[0], "n"), Some(200));
}

/// Write skew: each of two transactions takes its own row off duty only if another is on.
pub(crate) fn two_transactions_cannot_both_believe_what_the_other_changed(place: &Place) {
    let (one, two) = (place.open(), place.open());
    for _ in 0..20 {
        one.write(|tx| put(tx, "x", 1).and_then(|()| put(tx, "y", 1))).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for (store, key) in [(&one, "x"), (&two, "y")] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    store
                        .write(|tx| {
                            let sql = "SELECT count(*) FROM pairs WHERE value = 1";
                            let on: i64 = tx.query_one(sql, params![], |row| row.get(0))?;
                            if on == 2 { put(tx, key, 0) } else { Ok(()) }
                        })
                        .unwrap();
                });
            }
        });
        assert_eq!(get(&one, "x").unwrap() + get(&one, "y").unwrap(), 1);
    }
}

pub(crate) fn an_older_program_stops_writing_when_the_store_is_migrated(place: &Place) {
    const NEWER: Component = Component {
        name: "probe",
        migrations: &[
            PROBE.migrations[0],
            PROBE.migrations[1],
            Migration::Both("CREATE TABLE later (x INTEGER) STRICT;"),
        ],
    };
    let old = place.open();
    old.write(|tx| put(tx, "a", 1)).unwrap();
    let new = Store::open(&place.location, Options::new(Schema::new(&[NEWER]))).unwrap();
    new.write(|tx| put(tx, "a", 2)).unwrap();
    let refused = old.write(|tx| put(tx, "a", 3)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the store is of a newer version (probe 3; this program writes up to 2)"
    );
    assert!(refused.hint().unwrap().starts_with("Update this program"));
    assert_eq!(get(&old, "a"), Some(2), "it can still read");
    let reopened = Store::open(&place.location, place.options()).unwrap_err();
    assert!(matches!(reopened, Error::Newer { .. }), "{reopened}");
}

pub(crate) fn four_openers_at_once_migrate_once(place: &Place) {
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                place.open().write(|tx| put(tx, &number.to_string(), number)).unwrap();
            });
        }
    });
    let versions: Vec<(String, i64)> = place
        .open()
        .read(|tx| {
            let sql = "SELECT component, version FROM schema_versions ORDER BY component";
            tx.query(sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .unwrap();
    assert_eq!(versions, [("probe".to_owned(), 2), ("store".to_owned(), 2)]);
    for number in 0..4 {
        assert_eq!(get(&place.open(), &number.to_string()), Some(number));
    }
}

pub(crate) fn only_an_existing_store_is_opened_when_so_asked(place: &Place) {
    let absent = Store::open(&place.location, place.options().existing()).unwrap_err();
    assert!(matches!(absent, Error::Absent { .. }), "{absent}");
    drop(place.open());
    Store::open(&place.location, place.options().existing()).unwrap();
}
