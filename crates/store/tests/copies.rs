//! Copies, backups and restores, between both engines.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mainstay_store::{Depth, Error, Location, Options, Progress, Schema, Store, restore};
use mainstay_testkit::postgres;

fn options() -> Options {
    Options::new(Schema::default())
}

fn open(location: &Location) -> Store {
    Store::open(location, options()).unwrap()
}

fn quiet(_: Progress) {}

/// Fills a store with some of everything.
fn fill(store: &Store) {
    store
        .write(|tx| {
            (0..1200).try_for_each(|number| {
                tx.publish("many", &format!("naïve {number} 漢")).map(drop)
            })?;
            tx.move_cursor("reader", "many", 7)?;
            tx.put_blob(&[0, 1, 255, 10])?;
            tx.owner("local").map(drop)
        })
        .unwrap();
}

fn content(store: &Store) -> (String, Vec<(String, u64)>, Vec<String>) {
    let info = store.info().unwrap();
    let page = store.read(|tx| tx.events("many", 0, 10_000)).unwrap();
    let mut tables = info.tables;
    tables.sort();
    (info.id, tables, page.events.into_iter().map(|event| event.body).collect())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".side"))
        .collect();
    names.sort();
    names
}

#[test]
fn everything_goes_from_sqlite_to_postgres_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let source = open(&Location::file(directory.path().join("store.db")));
    fill(&source);
    let server: Location = postgres::fresh().parse().unwrap();
    let mut last = None;
    let copied = source.copy_to(&server, &mut |progress| last = Some(progress)).unwrap();
    assert!(copied.rows() > 1200);
    let last = last.unwrap();
    assert_eq!((last.done, last.of), (copied.rows(), copied.rows()));
    assert_eq!(content(&open(&server)), content(&source));
    let back = Location::file(directory.path().join("back.db"));
    assert_eq!(open(&server).copy_to(&back, &mut quiet).unwrap(), copied);
    assert_eq!(content(&open(&back)), content(&source));
    assert_eq!(open(&back).check(Depth::Full).unwrap(), Vec::<String>::new());
}

#[test]
fn a_copy_goes_only_where_nothing_is() {
    let directory = tempfile::tempdir().unwrap();
    let source = open(&Location::file(directory.path().join("store.db")));
    fill(&source);
    let server: Location = postgres::fresh().parse().unwrap();
    open(&server).write(|tx| tx.owner("somebody")).unwrap();
    let other = directory.path().join("other.db");
    fs::write(&other, b"precious").unwrap();
    for taken in [server, Location::file(&other), source.location().clone()] {
        let error = source.copy_to(&taken, &mut quiet).unwrap_err();
        assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    }
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    assert!(!names(directory.path()).iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&Location::file(directory.path().join("store.db")));
    fill(&store);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.write(|tx| tx.publish("busy", "x").map(drop)).unwrap();
            }
        });
        for number in 0..5 {
            let file = directory.path().join(format!("backup-{number}.db"));
            store.backup_to(&file, &mut quiet).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    for number in 0..5 {
        let file = directory.path().join(format!("backup-{number}.db"));
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let backup = open(&Location::file(&file));
        assert_eq!(backup.check(Depth::Full).unwrap(), Vec::<String>::new());
        assert_eq!(content(&backup).2, content(&store).2);
    }
    let again = store.backup_to(&directory.path().join("backup-0.db"), &mut quiet).unwrap_err();
    assert!(matches!(again, Error::NotEmpty { .. }), "{again}");
}

#[test]
fn a_restore_moves_what_was_there_aside() {
    let directory = tempfile::tempdir().unwrap();
    let place = Location::file(directory.path().join("store.db"));
    let backup = directory.path().join("backup.db");
    let store = open(&place);
    fill(&store);
    store.backup_to(&backup, &mut quiet).unwrap();
    let saved = content(&store);
    store.write(|tx| tx.publish("many", "after the backup").map(drop)).unwrap();
    let later = content(&store);
    let busy = restore(&backup, &place, &options(), &mut quiet).unwrap_err();
    assert!(matches!(busy, Error::InUse { .. }), "{busy}");
    drop(store);
    let restored = restore(&backup, &place, &options(), &mut quiet).unwrap();
    assert_eq!(content(&open(&place)), saved);
    let aside = restored.aside.unwrap();
    assert_eq!(content(&open(&Location::file(&aside))), later);
    assert_eq!(open(&place).info().unwrap().journal, Some("wal"));
    // Into an empty place nothing goes aside.
    let fresh = Location::file(directory.path().join("fresh.db"));
    assert_eq!(restore(&backup, &fresh, &options(), &mut quiet).unwrap().aside, None);
    assert_eq!(content(&open(&fresh)), saved);
}

#[test]
fn a_restore_on_a_server_moves_the_old_schema_aside() {
    let directory = tempfile::tempdir().unwrap();
    let server: Location = postgres::fresh().parse().unwrap();
    let backup = directory.path().join("backup.db");
    let store = open(&server);
    fill(&store);
    store.backup_to(&backup, &mut quiet).unwrap();
    let saved = content(&store);
    store.write(|tx| tx.publish("many", "after the backup").map(drop)).unwrap();
    let busy = restore(&backup, &server, &options(), &mut quiet).unwrap_err();
    assert!(matches!(busy, Error::InUse { .. }), "{busy}");
    drop(store);
    mainstay_testkit::process::wait_for(
        "the server to notice that the store was closed",
        std::time::Duration::from_secs(20),
        || {
            let restored = restore(&backup, &server, &options(), &mut quiet);
            match restored {
                Ok(restored) => restored.aside.unwrap().starts_with("schema "),
                Err(Error::InUse { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        },
    );
    assert_eq!(content(&open(&server)), saved);
}

#[test]
fn an_unfit_backup_is_refused_before_anything_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let place = Location::file(directory.path().join("store.db"));
    let store = open(&place);
    fill(&store);
    let backup = directory.path().join("backup.db");
    store.backup_to(&backup, &mut quiet).unwrap();
    drop(store);
    let mut bytes = fs::read(&backup).unwrap();
    let middle = (bytes.len() / 2) & !4095;
    bytes[middle..middle + 64].fill(0xaa);
    fs::write(&backup, &bytes).unwrap();
    let before = fs::read(directory.path().join("store.db")).unwrap();
    for unfit in [backup, directory.path().join("absent.db"), directory.path().to_owned()] {
        restore(&unfit, &place, &options(), &mut quiet).unwrap_err();
        assert_eq!(fs::read(directory.path().join("store.db")).unwrap(), before);
    }
    assert_eq!(names(directory.path()), ["backup.db", "store.db"]);
}
