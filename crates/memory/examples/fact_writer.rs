//! Adds, changes and forgets facts in a fixed order and says after each step that it was
//! acknowledged.
//!
//! The fault tests run it and kill it. Whatever happens to this process, the steps in the
//! acknowledgement file are in the store, and what leads to facts is what the facts say.
//!
//! Usage: `fact_writer STORE ACKS WRITER STEPS [THREADS]`

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a tool of the tests")]

use std::fs::{File, OpenOptions};
use std::io::Write;

use mainstay_memory::facts::{self, Change, FactId, NewFact};
use mainstay_memory::{MEMORY, Result};
use mainstay_store::{Options, Schema, Store};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, acks, writer, steps, rest @ ..] = arguments.as_slice() else {
        panic!("Usage: fact_writer STORE ACKS WRITER STEPS [THREADS]");
    };
    let place = store.parse().expect("a store");
    let acks = OpenOptions::new().append(true).create(true).open(acks).expect("the acks file");
    let steps: usize = steps.parse().expect("a number");
    let threads: usize = rest.first().map_or(1, |threads| threads.parse().expect("a number"));
    let store = Store::open(&place, Options::new(Schema::new(&[MEMORY]))).expect("the store opens");
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (store, acks) = (&store, &acks);
            scope.spawn(move || write(store, acks, &format!("{writer}{thread}"), steps));
        }
    });
}

/// Step n adds fact n, moves the fact before it in every third step, and forgets the one before that
/// in every fourth. All of a step is one transaction. The key makes a step that is done again the
/// same.
fn write(store: &Store, mut acks: &File, writer: &str, steps: usize) {
    let mut ids: Vec<FactId> = Vec::new();
    for step in 1..=steps {
        let fact = NewFact {
            content: format!(
                "Writer {writer} aka W{writer} met \"number {step}\" and common words"
            ),
            category: "met".to_owned(),
            tags: vec!["counted".to_owned()],
            source: writer.to_owned(),
            key: Some(format!("{writer} {step}")),
            ..NewFact::default()
        };
        let id = store
            .write(|tx| -> Result<FactId> {
                let owner = tx.owner("ada")?;
                let added = facts::add(tx, owner, &fact)?;
                if step % 3 == 0 {
                    let moved = Some("moved".to_owned());
                    let change = Change { category: moved, ..Change::default() };
                    facts::update(tx, owner, ids[step - 2], &change)?;
                }
                if step % 4 == 0 {
                    facts::forget(tx, owner, ids[step - 3])?;
                }
                Ok(added.id())
            })
            .expect("the step is written");
        ids.push(id);
        acks.write_all(format!("{writer} {step}\n").as_bytes()).expect("the acks are written");
    }
}
