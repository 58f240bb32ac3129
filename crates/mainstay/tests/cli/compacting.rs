//! `store compact`: what is not needed is given back, and nothing else is, whoever is killed.

use std::path::Path;
use std::process::Command;

use mainstay_store::{BlobHash, Depth, Location, Store, params};
use mainstay_testkit::postgres;
use mainstay_testkit::shim::Mode;
use mainstay_testkit::sweep::{Outcome, Sweep};

use super::home::{Home, fill, mainstay, mark, options, rows};

/// An output as older programs kept it.
fn log() -> Vec<u8> {
    (0..200_000).flat_map(|number| format!("line {number}\n").into_bytes()).collect()
}

/// Puts an unpacked blob into a store, and much that is deleted again.
fn grow(store: &Store, bytes: &[u8]) {
    let hash = BlobHash::of(bytes);
    store
        .write(|tx| -> Result<(), mainstay_store::Error> {
            tx.execute(
                "INSERT INTO blobs (hash, size, created_at, body) VALUES (?1, ?2, 1, ?3)",
                params![hash, i64::try_from(bytes.len()).unwrap(), bytes],
            )?;
            for number in 0..64u32 {
                tx.publish("passing", &format!("{number}{}", "x".repeat(4000)))?;
            }
            Ok(())
        })
        .unwrap();
    store.write(|tx| tx.execute("DELETE FROM events WHERE topic = 'passing'", params![])).unwrap();
    store.write(|tx| tx.execute("DELETE FROM topics WHERE topic = 'passing'", params![])).unwrap();
}

#[test]
fn a_compacted_store_is_smaller_and_holds_the_same() {
    let home = Home::with_store();
    let log = log();
    let store = home.open_or_create();
    grow(&store, &log);
    let before = rows(&store);
    drop(store);
    let told = home.run("store compact --json").well().json();
    assert_eq!(told["packed"], 1, "{told}");
    let (was, is) = (told["before_bytes"].as_u64().unwrap(), told["after_bytes"].as_u64().unwrap());
    assert!(is * 2 < was, "{told}");
    assert_eq!(told["given_back_bytes"], was - is);
    let store = home.open_or_create();
    assert_eq!(store.read(|tx| tx.blob(&BlobHash::of(&log))).unwrap(), Some(log));
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
    let but_blobs = |rows: Vec<(String, _)>| {
        rows.into_iter().filter(|(table, _)| table != "blobs").collect::<Vec<_>>()
    };
    assert_eq!(but_blobs(rows(&store)), but_blobs(before));
    home.run("store compact").refused(4, "is in use by");
    drop(store);
    let names = home.names("home");
    assert!(names.iter().all(|name| !name.contains("compact")), "{names:?}");
    let told = home.run("store compact --json").well().json();
    assert_eq!((&told["packed"], &told["given_back_bytes"]), (&0.into(), &0.into()), "{told}");
}

#[test]
fn a_store_on_a_server_is_compacted_while_it_is_used() {
    let home = Home::new();
    let place = postgres::fresh();
    let store = Store::open(&place.parse().unwrap(), options()).unwrap();
    let log = log();
    grow(&store, &log);
    let told = home.run(&format!("--store {place} store compact --json")).well().json();
    assert_eq!(told["packed"], 1, "{told}");
    assert_eq!(store.read(|tx| tx.blob(&BlobHash::of(&log))).unwrap(), Some(log));
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
}

fn prepare(directory: &Path) -> Command {
    let store = Store::open(&Location::file(directory.join("store.db")), options()).unwrap();
    fill(&store, "kept");
    grow(&store, &vec![7; 20_000]);
    drop(store);
    let mut command = mainstay(directory);
    command.args(["store", "compact"]);
    command
}

/// The store is there, whole, and the next one clears up.
fn verify(outcome: &Outcome<'_>) {
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(!said.contains("panicked"), "{said}");
    let place = Location::file(outcome.directory.join("store.db"));
    let store = Store::open(&place, options().existing()).unwrap();
    assert_eq!(mark(&store), "kept");
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
    let blob = store.read(|tx| tx.blob(&BlobHash::of(&[7; 20_000]))).unwrap();
    assert_eq!(blob, Some(vec![7; 20_000]));
    drop(store);
    let mut again = mainstay(outcome.directory);
    let again = again.args(["store", "compact"]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let names = std::fs::read_dir(outcome.directory).unwrap().flatten();
    let left: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("compact"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn slow_a_compaction_that_is_killed_or_whose_disk_fails_leaves_the_store_whole() {
    for mode in [Mode::Kill, Mode::Enospc] {
        let swept = Sweep::of(mode).every(17).run(prepare, verify);
        println!("{mode:?}: {} points, {} struck", swept.points, swept.struck);
        assert!(swept.struck > 5, "{swept:?}");
    }
}
