//! One of many processes that write to a store at once, and says when it came and when it was served.
//!
//! It opens the store, prints `ready`, and waits until its standard input ends. Then it writes, and
//! prints two times in microseconds: when it asked, and when its transaction ran.
//!
//! Usage: `crowd_member STORE`

#![allow(clippy::expect_used, reason = "a tool of the tests")]

use std::io::Read;
use std::time::Duration;

use mainstay_store::{Error, Location, Options, Schema, Store};

/// How long each transaction takes, so that a line forms.
const WORK: Duration = Duration::from_millis(1);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store] = arguments.as_slice() else {
        panic!("Usage: crowd_member STORE");
    };
    let location: Location = store.parse().expect("a store");
    let store = Store::open(&location, Options::new(Schema::default())).expect("it opens");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("an input that ends");
    let asked = micros();
    let served = store.write(|tx| {
        let served = micros();
        std::thread::sleep(WORK);
        tx.publish("crowd", "x")?;
        Ok::<_, Error>(served)
    });
    println!("{asked} {}", served.expect("the turn comes"));
}

fn micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}
