//! A fact is written whole or not at all: killed at every call, by many at once, and on the way to
//! many facts. And the judge can say no.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use mainstay_memory::facts::{self, NewFact, Prepared};
use mainstay_memory::{MEMORY, Result};
use mainstay_store::{Depth, Location, Options, Schema, Store, WriteTx, params};
use mainstay_testkit::process::{Running, example};
use mainstay_testkit::shim::{Kind, Mode};
use mainstay_testkit::sweep::{Outcome, Sweep};

use crate::memory::{Memory, new, on_both};

fn writer(store: &str, acks: &Path, name: &str, steps: usize, threads: usize) -> Command {
    let mut command = Command::new(example("fact_writer"));
    command.arg(store).arg(acks).args([name, &steps.to_string(), &threads.to_string()]);
    command
}

/// The last acknowledged step of each writer.
fn acknowledged(acks: &Path) -> BTreeMap<String, usize> {
    let acks = fs::read_to_string(acks).unwrap_or_default();
    let whole = acks.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let steps = whole.map(|line| {
        let (writer, step) = line.split_once(' ').unwrap();
        (writer.to_owned(), step.parse().unwrap())
    });
    steps.collect()
}

/// The keys of facts, with their categories.
fn keys(store: &Store) -> BTreeMap<String, String> {
    let rows: Vec<(String, String)> = store
        .read(|tx| {
            tx.query("SELECT key, category FROM facts", params![], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        })
        .unwrap();
    let count = rows.len();
    let keys: BTreeMap<String, String> = rows.into_iter().collect();
    assert_eq!(keys.len(), count, "a key stands for one fact");
    keys
}

/// What a writer that came so far has left.
fn expected(writer: &str, steps: usize) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for step in 1..=steps {
        facts.insert(format!("{writer} {step}"), "met".to_owned());
        if step % 3 == 0 {
            facts.insert(format!("{writer} {}", step - 1), "moved".to_owned());
        }
        if step % 4 == 0 {
            facts.remove(&format!("{writer} {}", step - 2));
        }
    }
    facts
}

/// All of the steps so far, and nothing else; the step that was not acknowledged may be there.
fn judge(outcome: &Outcome<'_>) {
    let place = Location::file(outcome.directory.join("store.db"));
    let acked = acknowledged(&outcome.directory.with_file_name("acks"));
    let last = acked.get("w0").copied().unwrap_or(0);
    let store = match Store::open(&place, Options::new(Schema::new(&[MEMORY])).existing()) {
        Ok(store) => store,
        Err(mainstay_store::Error::Absent { .. }) if last == 0 => return,
        Err(error) => panic!("the store does not open: {error}"),
    };
    let there = keys(&store);
    assert!(
        there == expected("w0", last) || there == expected("w0", last + 1),
        "step {last} was acknowledged: {there:?}"
    );
    let problems = store.read_unlimited(|tx| facts::check(tx, Depth::Full)).unwrap();
    assert_eq!(problems, [""; 0]);
}

fn eight_steps(directory: &Path) -> Command {
    let store = directory.join("store.db").display().to_string();
    writer(&store, &directory.with_file_name("acks"), "w", 8, 1)
}

#[test]
fn slow_sigkill_at_every_write_leaves_each_fact_whole_or_absent() {
    let swept = Sweep::of(Mode::Kill).only(&[Kind::Write, Kind::Sync]).run(eight_steps, judge);
    println!("killed at {} of {} writes", swept.struck, swept.points);
    assert!(swept.struck > 50, "{swept:?}");
}

#[test]
fn slow_a_torn_write_leaves_each_fact_whole_or_absent() {
    let swept = Sweep::of(Mode::Torn).only(&[Kind::Write]).every(2).run(eight_steps, judge);
    println!("torn at {} of {} writes", swept.struck, swept.points);
    assert!(swept.struck > 20, "{swept:?}");
}

/// Runs five processes of several writers each on a store and kills one after another.
fn killed_writers(place: &str, acks: &Path, threads: usize) {
    const STEPS: usize = 8;
    let start = |process: usize| {
        let name = format!("{}", char::from(b'a' + u8::try_from(process).unwrap()));
        Running::spawn(&mut writer(place, acks, &name, STEPS, threads))
    };
    let mut random = 5_u64;
    let mut running: Vec<Option<Running>> = (0..5).map(|process| Some(start(process))).collect();
    let mut kills = 0;
    while running.iter().any(Option::is_some) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(10 + (random >> 33) % 60));
        for slot in &mut running {
            if slot.as_mut().is_some_and(|child| !child.is_running()) {
                *slot = None;
            }
        }
        let victim = usize::try_from((random >> 40) % 5).unwrap();
        if kills < 12
            && let Some(mut child) = running[victim].take()
            && !child.kill_and_wait().success()
        {
            kills += 1;
            running[victim] = Some(start(victim));
        }
    }
    assert!(kills >= 5, "the test must hurt: {kills}");
    let memory = Memory::open(&place.parse().unwrap());
    let mut all = BTreeMap::new();
    for process in 'a'..='e' {
        for thread in 0..threads {
            all.extend(expected(&format!("{process}{thread}"), STEPS));
        }
    }
    assert_eq!(keys(&memory.store), all);
    assert_eq!(memory.problems(), [""; 0]);
}

#[test]
fn slow_heavy_fifty_writers_in_five_processes_killed_at_random_lose_and_double_nothing() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("store.db").display().to_string();
    killed_writers(&place, &home.path().join("acks"), 10);
}

#[test]
fn slow_heavy_ten_writers_on_a_server_killed_at_random_lose_and_double_nothing() {
    let home = tempfile::tempdir().unwrap();
    killed_writers(&mainstay_testkit::postgres::fresh(), &home.path().join("acks"), 2);
}

#[test]
fn threads_that_add_the_same_facts_add_each_once() {
    on_both(|memory| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..10 {
                        memory.add(&format!("Ada Lovelace counts to {number}"));
                    }
                });
            }
        });
        assert_eq!(memory.read(|tx| facts::count(tx, memory.owner)), 10);
    });
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    on_both(|memory| {
        memory.add("tea is green");
        let outcome: Result<()> = memory.store.write(|tx| {
            facts::add(tx, memory.owner, &new("Robert Smith aka Bob likes tea"))?;
            facts::add(tx, memory.owner, &new(""))?;
            Ok(())
        });
        assert!(outcome.is_err());
        assert_eq!(memory.read(|tx| facts::count(tx, memory.owner)), 1);
        assert_eq!(memory.found("bob"), [""; 0]);
    });
}

/// Whatever is missing, left over or changed behind the back of this crate is found.
#[test]
fn the_check_finds_every_kind_of_half_written_fact() {
    let damages = [
        ("DELETE FROM fact_terms WHERE kind = 'word' AND term = 'tea'", "the word \"tea\" should"),
        ("DELETE FROM fact_terms WHERE kind = 'entity'", "the entity \"bob\" should"),
        ("DELETE FROM fact_terms WHERE kind = 'category'", "the category \"general\" should"),
        ("UPDATE fact_terms SET term = 'coffee' WHERE term = 'tea'", "that do not have it"),
        ("DELETE FROM fact_aliases WHERE name = 'bob'", "\"bob\" and \"robert smith\""),
        ("DELETE FROM fact_banks", "the bank of the category \"general\""),
        ("UPDATE fact_banks SET facts = facts + 1", "the bank of the category \"general\""),
        ("DELETE FROM facts", "that do not have it"),
        ("UPDATE facts SET category = 'other'", "the bank of the category \"general\""),
        ("UPDATE facts SET digest = vector", "is not known by its text"),
        ("UPDATE fact_numbers SET last = 0", "a number not handed out"),
    ];
    for (damage, sentence) in damages {
        let directory = tempfile::tempdir().unwrap();
        let memory = Memory::open(&Location::file(directory.path().join("store.db")));
        memory.add("Robert Smith aka Bob likes tea");
        memory.write(|tx: &mut WriteTx<'_>| Ok(tx.execute(damage, params![])?));
        let problems = memory.problems();
        assert!(problems.iter().any(|found| found.contains(sentence)), "{damage}: {problems:?}");
    }
}

#[test]
fn a_vector_that_is_not_that_of_the_text_is_found_by_a_full_check() {
    on_both(|memory| {
        let id = memory.add("tea is green");
        let vector = |byte: u8| {
            memory.write(|tx| {
                let sql = "UPDATE facts SET vector = ?1 WHERE number = ?2";
                Ok(tx.execute(sql, params![vec![byte; 1024], id])?)
            });
        };
        vector(7);
        let problems = memory.problems();
        assert!(problems.iter().any(|found| found.contains("vector of something else")));
        assert!(problems.iter().any(|found| found.contains("is not the sum of its facts")));
        memory.write(|tx| Ok(tx.execute("DELETE FROM facts", params![])?));
        memory.write(|tx| Ok(tx.execute("DELETE FROM fact_terms", params![])?));
        memory.write(|tx| Ok(tx.execute("DELETE FROM fact_banks", params![])?));
    });
}

/// The log starts over and the file grows by the same for each fact.
#[test]
fn slow_heavy_the_log_is_bounded_and_the_file_grows_evenly_over_many_facts() {
    const QUARTER: usize = 2000;
    const BATCH: usize = 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let wal = directory.path().join("store.db-wal");
    let (mut sizes, mut longest_log, mut number) = (vec![0], 0, 0);
    for _ in 0..4 {
        // Closing the store folds the log into the file.
        let memory = Memory::open(&Location::file(&path));
        for _ in 0..QUARTER / BATCH {
            let batch: Vec<Prepared> = (number..number + BATCH).map(fact).collect();
            number += BATCH;
            memory.write(|tx| {
                for fact in &batch {
                    facts::add_prepared(tx, memory.owner, fact)?;
                }
                Ok(())
            });
            longest_log = longest_log.max(fs::metadata(&wal).map_or(0, |found| found.len()));
        }
        drop(memory);
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    let grown: Vec<u64> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("grown by {grown:?}, the log had at most {longest_log} bytes");
    assert!(longest_log < 14 << 20, "{longest_log}");
    assert!(longest_log > 1 << 20, "the log was too short to show anything: {longest_log}");
    // The first quarter also makes the tables and the first row of every word.
    let (second, last) = (grown[1] as f64, grown[3] as f64);
    assert!((0.8..1.25).contains(&(last / second)), "{grown:?}");
}

/// Some of a few hundred words, never the same twice.
fn fact(number: usize) -> Prepared {
    let word = |factor: usize| format!("word{}", number * factor % (97 + factor));
    let words: Vec<String> = [3, 7, 31, 57, 101].map(word).to_vec();
    let content = format!("Person {} saw {} as number {number}", number % 50, words.join(" "));
    let fact = NewFact {
        entities: Some(vec![format!("Person {}", number % 50)]),
        category: ["people", "places", "things"][number % 3].to_owned(),
        ..new(&content)
    };
    Prepared::new(&fact).unwrap()
}
