//! Several writers of memories in one process, each of which says after each write that it was
//! acknowledged.
//!
//! The tests kill it and start it again. The claim it helps to check: whatever happens to this process,
//! every acknowledged fact and note is in the store, and none is there twice.
//!
//! Usage: `rememberer STORE ACKS FIRST WRITERS EACH`

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a tool of the tests")]

use std::fs::{File, OpenOptions};
use std::io::Write;

use mainstay_memory::facts::{self, NewFact};
use mainstay_memory::notes::{self, Change, Scope};
use mainstay_memory::{Error, MEMORY, done};
use mainstay_store::{Options, OwnerId, Schema, Store};

/// Room for all notes of all writers, and room for a few.
const WIDE: usize = 100_000;
const NARROW: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, acks, first, writers, each] = arguments.as_slice() else {
        panic!("Usage: rememberer STORE ACKS FIRST WRITERS EACH");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let (first, writers, each) = (number(first), number(writers), number(each));
    let acked = std::fs::read_to_string(acks).unwrap_or_default();
    let acks = OpenOptions::new().append(true).create(true).open(acks).expect("the acks file");
    let location = store.parse().expect("a store");
    let store = Store::open(&location, Options::new(Schema::new(&[MEMORY]))).expect("a store");
    let owner = store.write(|tx| tx.owner("me")).expect("an owner");
    std::thread::scope(|scope| {
        for writer in first..first + writers {
            let (store, acks, acked) = (&store, &acks, &acked);
            scope.spawn(move || {
                for number in 0..each {
                    write(store, owner, acks, acked, &format!("{writer}.{number}"));
                }
            });
        }
    });
}

/// Writes what was not acknowledged before.
fn write(store: &Store, owner: OwnerId, acks: &File, acked: &str, name: &str) {
    let acknowledge = |what: &str| {
        let line = format!("{what} {name}\n");
        let mut acks = acks;
        acks.write_all(line.as_bytes()).expect("the acks file takes a line");
    };
    let is_acked = |what: &str| acked.lines().any(|line| line == format!("{what} {name}"));
    if !is_acked("fact") {
        let fact = NewFact {
            content: format!("The writer {name} was here."),
            source: "test".to_owned(),
            key: Some(name.to_owned()),
            ..NewFact::default()
        };
        store.write(|tx| facts::add(tx, owner, &fact)).expect("a fact");
        acknowledge("fact");
    }
    if !is_acked("trust") {
        // A change that adds up: made twice, it would show.
        let key = format!("trust {name}");
        let said = store.write(|tx| -> Result<bool, Error> {
            if done::find(tx, owner, &key)?.is_some() {
                return Ok(false);
            }
            let fact =
                NewFact { content: format!("The writer {name} was here."), ..NewFact::default() };
            let id = facts::add(tx, owner, &fact)?.id();
            facts::feedback(tx, owner, id, true)?;
            done::note(tx, owner, &key, "done")?;
            Ok(true)
        });
        said.expect("feedback");
        acknowledge("trust");
    }
    for (what, limit) in [("wide", WIDE), ("narrow", NARROW)] {
        if is_acked(what) {
            continue;
        }
        let changes = [Change::Add(name.to_owned())];
        let scope = Scope::Workspace(what);
        let changed = store.write(|tx| notes::change(tx, owner, scope, &changes, "test", limit));
        // Where there is no room it is refused, and nothing is acknowledged.
        if changed.expect("the notes can be written").is_ok() {
            acknowledge(what);
        }
    }
}
