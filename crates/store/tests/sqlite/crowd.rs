//! Hundreds of processes on one store: each gets its turn, in the order in which they came.

use std::process::{Command, Stdio};
use std::time::Duration;

use mainstay_store::{Limits, Location, Options, Schema, Store};
use mainstay_testkit::process::{Running, example};
use mainstay_testkit::thorough;

use crate::witness::store_in;

/// A hang guard, and nothing that a loaded machine could miss.
const SOON: Duration = Duration::from_secs(300);

/// When a write was asked for, and when it was done.
#[derive(Clone, Copy, Debug)]
struct Served {
    asked: i64,
    served: i64,
}

/// Lets so many processes write at once, and answers how each was served. One that writes more than
/// once may keep its turn for a moment, which is no matter of order.
fn crowd(members: usize) -> Vec<Served> {
    let directory = tempfile::tempdir().unwrap();
    let path = store_in(directory.path());
    drop(Store::open(&Location::file(&path), Options::new(Schema::default())).unwrap());
    let mut all: Vec<Running> = (0..members)
        .map(|_| {
            let mut command = Command::new(example("crowd_member"));
            command.arg(&path).stdin(Stdio::piped());
            Running::spawn(&mut command)
        })
        .collect();
    for member in &mut all {
        member.line_with("ready", SOON);
    }
    // Their inputs end one after the other, as fast as this process can close them.
    for member in &mut all {
        drop(member.stdin());
    }
    let mut served = Vec::new();
    for member in &mut all {
        let line = member.next_line(SOON).expect("a line for its write");
        let (asked, done) = line.split_once(' ').unwrap();
        served.push(Served { asked: asked.parse().unwrap(), served: done.parse().unwrap() });
        assert!(member.wait(SOON).success());
    }
    served
}

/// How many writes that were asked for later were served before this one.
fn overtaken(one: Served, all: &[Served]) -> usize {
    all.iter().filter(|other| other.asked > one.asked && other.served < one.served).count()
}

#[test]
fn heavy_hundreds_of_processes_are_served_in_the_order_in_which_they_came() {
    let members = usize::try_from(thorough::size(120, 300)).unwrap();
    let served = crowd(members);
    assert_eq!(served.len(), members);
    let mut waits: Vec<i64> = served.iter().map(|one| one.served - one.asked).collect();
    waits.sort_unstable();
    let mut overtakes: Vec<usize> = served.iter().map(|one| overtaken(*one, &served)).collect();
    overtakes.sort_unstable();
    let at = |share: usize| (waits.len() - 1) * share / 100;
    println!(
        "{members} processes: waits of {} ms (median), {} ms (99 %), {} ms (longest); \
         overtaken by {} (median), {} (99 %), {} (most)",
        waits[at(50)] / 1000,
        waits[at(99)] / 1000,
        waits[at(100)] / 1000,
        overtakes[at(50)],
        overtakes[at(99)],
        overtakes[at(100)],
    );
    // Between asking and standing in line a process may be put off by the scheduler, so that some
    // are overtaken by a few. In a crowd without order it would be a third of all, by chance.
    let few = members / 10;
    assert!(overtakes[at(90)] <= few, "{} of {}", overtakes[at(90)], served.len());
}

#[test]
fn who_waits_in_line_is_not_sent_away_while_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::file(store_in(directory.path()));
    let limits = Limits { write: Duration::from_secs(1), ..Limits::default() };
    let options = Options::new(Schema::default()).limits(limits);
    drop(Store::open(&location, options.clone()).unwrap());
    // All together they take longer than anybody's patience.
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let store = Store::open(&location, options.clone()).unwrap();
                let work = Duration::from_millis(50);
                store
                    .write(|tx| {
                        std::thread::sleep(work);
                        tx.publish("line", "x").map(drop)
                    })
                    .unwrap();
            });
        }
    });
    let store = Store::open(&location, options).unwrap();
    assert_eq!(store.read(|tx| tx.events("line", 0, 100)).unwrap().events.len(), 40);
}
