//! Writes a numbered sequence into a store and says after each write that it was acknowledged.
//!
//! The fault tests run it and kill it. The claim it helps to check: whatever happens to this
//! process, every number in the acknowledgement file is in the store, once, in order.
//!
//! Usage: `steady_writer STORE ACKS WRITER LAST [retry] [reopen=N] [blob=BYTES] [threads=N]`

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a tool of the tests")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{
    Component, Error, Location, Migration, Options, Result, Schema, Store, params,
};

const STEADY: Component = Component {
    name: "steady",
    migrations: &[Migration::Both(
        "CREATE TABLE steady (
            writer TEXT NOT NULL,
            number INTEGER NOT NULL,
            padding TEXT NOT NULL,
            PRIMARY KEY (writer, number)
        ) STRICT;",
    )],
};

/// How often a failed step is tried again when `retry` is given.
const TRIES: u32 = 40;

#[derive(Clone)]
struct Script {
    store: Location,
    acks: Arc<File>,
    writer: String,
    last: i64,
    tries: u32,
    reopen: i64,
    blob: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, acks, writer, last, rest @ ..] = arguments.as_slice() else {
        panic!("Usage: steady_writer STORE ACKS WRITER LAST [retry] [reopen=N] [blob=BYTES]");
    };
    let number = |name: &str| {
        rest.iter()
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
            .map_or(0, |value| value.parse().expect("a number"))
    };
    let script = Script {
        store: store.parse().expect("a store"),
        acks: Arc::new(
            OpenOptions::new().append(true).create(true).open(acks).expect("the acks file"),
        ),
        writer: writer.clone(),
        last: last.parse().expect("a number"),
        tries: if rest.iter().any(|option| option == "retry") { TRIES } else { 1 },
        reopen: number("reopen"),
        blob: usize::try_from(number("blob")).expect("a size"),
    };
    let outcome = match number("threads") {
        0 => script.run(None),
        threads => side_by_side(&script, threads),
    };
    if let Err(error) = outcome {
        eprintln!("gave up: {error}");
        std::process::exit(1);
    }
}

/// Several writers on one handle, so that one commit carries the writes of many.
fn side_by_side(script: &Script, threads: i64) -> Result<()> {
    let store = script.again(|| script.open())?;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let script =
                    Script { writer: format!("{}{thread}", script.writer), ..script.clone() };
                let store = store.clone();
                scope.spawn(move || script.run(Some(store)))
            })
            .collect();
        running.into_iter().try_for_each(|one| one.join().expect("a writer does not panic"))
    })
}

impl Script {
    fn run(&self, shared: Option<Store>) -> Result<()> {
        let mut store = match shared {
            Some(store) => store,
            None => self.again(|| self.open())?,
        };
        // A restarted writer goes on after what is there.
        let done = self.again(|| {
            store.read(|tx| {
                let sql = "SELECT max(number) FROM steady WHERE writer = ?1";
                tx.query_one(sql, params![self.writer], |row| row.get::<Option<i64>>(0))
            })
        })?;
        for number in done.unwrap_or(0) + 1..=self.last {
            if self.reopen > 0 && number % self.reopen == 0 {
                drop(store);
                store = self.again(|| self.open())?;
            }
            self.again(|| self.write(&store, number))?;
            self.acks
                .as_ref()
                .write_all(format!("{} {number}\n", self.writer).as_bytes())
                .expect("the acks file takes a line");
        }
        Ok(())
    }

    fn open(&self) -> Result<Store> {
        Store::open(&self.store, Options::new(Schema::new(&[STEADY])))
    }

    fn write(&self, store: &Store, number: i64) -> Result<()> {
        store.write(|tx| {
            // The number is the key that makes a second try harmless.
            let added = tx.execute(
                "INSERT INTO steady (writer, number, padding) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO NOTHING",
                params![self.writer, number, "x".repeat(300)],
            )?;
            if added == 1 {
                tx.publish(&format!("steady/{}", self.writer), &number.to_string())?;
                if self.blob > 0 {
                    let fill = u8::try_from(number % 251).unwrap_or(0);
                    tx.put_blob(&noise(fill, self.blob))?;
                }
            }
            Ok(())
        })
    }

    /// Tries until it works, or often enough.
    fn again<T>(&self, mut step: impl FnMut() -> Result<T, Error>) -> Result<T> {
        let mut tries = self.tries;
        loop {
            match step() {
                Ok(value) => return Ok(value),
                Err(error) => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(error);
                    }
                    eprintln!("error: {error}");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }
}

/// Bytes that cannot be packed, the same for the same seed.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(length).collect()
}
