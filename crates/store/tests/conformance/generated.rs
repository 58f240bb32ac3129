//! Generated sequences of operations, compared with a model in memory.

use std::collections::BTreeMap;

use mainstay_store::{Error, Result, Store, WriteTx, params};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::place::Place;

/// One change inside a transaction.
#[derive(Clone, Debug)]
enum Change {
    Put(u8, i64),
    Remove(u8),
    Publish(u8),
    MoveCursor(u8, i64),
    Blob(Vec<u8>),
    Owner(u8),
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Commit,
    Fail,
    Panic,
    FailedStatement,
}

#[derive(Clone, Debug)]
enum StoreStep {
    Write(Vec<Change>, Ending),
    Reopen,
}

/// What the store should hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    pairs: BTreeMap<String, i64>,
    events: Vec<(String, i64)>,
    cursors: BTreeMap<String, i64>,
    blobs: BTreeMap<String, Vec<u8>>,
    owners: Vec<String>,
}

pub(crate) fn any_sequence_ends_like_the_model(place: &Place) {
    let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&proptest::collection::vec(step(), 1..20), |steps| {
            let mut store = place.open();
            clear(&store);
            let mut model = Model::default();
            for step in steps {
                match step {
                    StoreStep::Reopen => {
                        drop(store);
                        store = place.open();
                    }
                    StoreStep::Write(changes, ending) => {
                        write(&store, &mut model, &changes, ending);
                    }
                }
                prop_assert_eq!(&held(&store), &model);
            }
            Ok(())
        })
        .unwrap();
}

fn step() -> impl Strategy<Value = StoreStep> {
    let change = prop_oneof![
        (0..4_u8, any::<i64>()).prop_map(|(key, value)| Change::Put(key, value)),
        (0..4_u8).prop_map(Change::Remove),
        (0..2_u8).prop_map(Change::Publish),
        (0..2_u8, 0..9_i64).prop_map(|(reader, number)| Change::MoveCursor(reader, number)),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Change::Blob),
        (0..3_u8).prop_map(Change::Owner),
    ];
    let ending = prop_oneof![
        4 => Just(Ending::Commit),
        1 => Just(Ending::Fail),
        1 => Just(Ending::Panic),
        1 => Just(Ending::FailedStatement),
    ];
    let write = (proptest::collection::vec(change, 0..6), ending)
        .prop_map(|(changes, ending)| StoreStep::Write(changes, ending));
    prop_oneof![9 => write, 1 => Just(StoreStep::Reopen)]
}

fn write(store: &Store, model: &mut Model, changes: &[Change], ending: Ending) {
    let outcome = store.write(|tx| {
        changes.iter().try_for_each(|change| change.make(tx))?;
        match ending {
            Ending::Commit => Ok(()),
            Ending::Fail => Err(Error::Unstorable("this")),
            Ending::Panic => panic!("on purpose"),
            Ending::FailedStatement => tx.execute("NO STATEMENT", params![]).map(drop),
        }
    });
    assert_eq!(outcome.is_ok(), matches!(ending, Ending::Commit), "{outcome:?}");
    if outcome.is_ok() {
        changes.iter().for_each(|change| change.imagine(model));
    }
}

impl Change {
    fn make(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        match self {
            Change::Put(key, value) => tx
                .execute(
                    "INSERT INTO pairs (key, value) VALUES (?1, ?2)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    params![key.to_string(), *value],
                )
                .map(drop),
            Change::Remove(key) => {
                tx.execute("DELETE FROM pairs WHERE key = ?1", params![key.to_string()]).map(drop)
            }
            Change::Publish(topic) => tx.publish(&topic.to_string(), "{}").map(drop),
            Change::MoveCursor(reader, number) => tx.move_cursor(&reader.to_string(), "t", *number),
            Change::Blob(bytes) => tx.put_blob(bytes).map(drop),
            Change::Owner(name) => tx.owner(&name.to_string()).map(drop),
        }
    }

    fn imagine(&self, model: &mut Model) {
        match self {
            Change::Put(key, value) => {
                model.pairs.insert(key.to_string(), *value);
            }
            Change::Remove(key) => {
                model.pairs.remove(&key.to_string());
            }
            Change::Publish(topic) => {
                let topic = topic.to_string();
                let last = model.events.iter().filter(|(of, _)| *of == topic).count();
                model.events.push((topic, i64::try_from(last).unwrap() + 1));
                model.events.sort();
            }
            Change::MoveCursor(reader, number) => {
                let cursor = model.cursors.entry(reader.to_string()).or_insert(*number);
                *cursor = (*cursor).max(*number);
            }
            Change::Blob(bytes) => {
                let hash = mainstay_store::BlobHash::of(bytes).to_string();
                model.blobs.insert(hash, bytes.clone());
            }
            Change::Owner(name) => {
                let name = name.to_string();
                if !model.owners.contains(&name) {
                    model.owners.push(name);
                    model.owners.sort();
                }
            }
        }
    }
}

/// What the store does hold.
fn held(store: &Store) -> Model {
    store
        .read(|tx| {
            let none = params![];
            Ok::<_, Error>(Model {
                pairs: tx
                    .query("SELECT key, value FROM pairs", none, |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })?
                    .into_iter()
                    .collect(),
                events: tx.query(
                    "SELECT topic, number FROM events ORDER BY topic, number",
                    none,
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )?,
                cursors: tx
                    .query("SELECT reader, number FROM cursors", none, |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })?
                    .into_iter()
                    .collect(),
                blobs: tx
                    .query("SELECT hash, body FROM blobs", none, |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })?
                    .into_iter()
                    .collect(),
                owners: tx
                    .query("SELECT name FROM owners ORDER BY name", none, |row| row.get(0))?,
            })
        })
        .unwrap()
}

fn clear(store: &Store) {
    store
        .write(|tx| {
            ["pairs", "events", "topics", "cursors", "blobs", "owners"].iter().try_for_each(
                |table| tx.execute(&format!("DELETE FROM {table}"), params![]).map(drop),
            )
        })
        .unwrap();
}
