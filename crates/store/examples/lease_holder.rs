//! Takes a lease and writes under it when told to, for the tests of leases between processes.
//!
//! Usage: `lease_holder STORE TTL_MILLIS PATIENCE_MILLIS`; each line on standard input is one
//! write under the lease.

#![allow(clippy::expect_used, reason = "a tool of the tests")]

use std::time::Duration;

use mainstay_store::{Acquired, Location, Options, Schema, Store};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, ttl, patience] = arguments.as_slice() else {
        panic!("Usage: lease_holder STORE TTL_MILLIS PATIENCE_MILLIS");
    };
    let location: Location = store.parse().expect("a store");
    let millis = |text: &str| Duration::from_millis(text.parse().expect("a number"));
    let store = Store::open(&location, Options::new(Schema::default())).expect("the store opens");
    println!("standing by");
    let lease = match store.acquire("work", millis(ttl), millis(patience)).expect("an answer") {
        Acquired::Got(lease) => lease,
        Acquired::Held(holder) => return println!("held by {}", holder.process.pid),
    };
    println!("got {}", lease.epoch());
    for line in std::io::stdin().lines() {
        let body = line.expect("a line");
        let written = store.write(|tx| {
            tx.publish("work", &body)?;
            lease.guard(tx)
        });
        match written {
            Ok(()) => println!("wrote {body}"),
            Err(error) => println!("refused: {error}"),
        }
    }
}
