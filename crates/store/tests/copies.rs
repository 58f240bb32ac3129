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
fn what_acts_on_our_tables_and_is_not_ours_is_told_and_not_restored() {
    let directory = tempfile::tempdir().unwrap();
    let source = open(&Location::file(directory.path().join("store.db")));
    fill(&source);
    for (number, (planted, told)) in [
        (
            "CREATE TRIGGER yes AFTER INSERT ON owners BEGIN DELETE FROM owners; END",
            "the trigger \"yes\" was not made by Mainstay",
        ),
        (
            "CREATE VIEW all_events AS SELECT * FROM events",
            "the view \"all_events\" was not made by Mainstay",
        ),
        ("CREATE UNIQUE INDEX one ON owners (1)", "the index \"one\" was not made by Mainstay"),
        (
            "ALTER TABLE owners ADD COLUMN trusted INTEGER DEFAULT 1",
            "the table \"owners\" is not as Mainstay makes it",
        ),
        ("DROP TABLE cursors", "the table \"cursors\" is missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = directory.path().join(format!("backup-{number}.db"));
        source.backup_to(&file, &mut quiet).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch(planted).unwrap();
        let target = Location::file(directory.path().join("restored.db"));
        let error = restore(&file, &target, &options(), &mut quiet).unwrap_err();
        assert!(error.to_string().contains(told), "{planted}: {error}");
        let problems = open(&Location::file(&file)).check(Depth::Quick).unwrap();
        assert!(problems.iter().any(|problem| problem == told), "{planted}: {problems:?}");
        assert!(!directory.path().join("restored.db").exists(), "{planted}");
    }
}

#[test]
fn what_acts_on_tables_of_a_server_is_told() {
    let address = postgres::fresh();
    let server: Location = address.parse().unwrap();
    let store = open(&server);
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
    let Location::Postgres { schema, .. } = &server else { panic!("{server:?}") };
    postgres::psql(&format!(
        "SET search_path TO {schema};
         CREATE FUNCTION {schema}.nothing() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN RETURN NULL; END';
         CREATE TRIGGER never BEFORE INSERT ON owners FOR EACH ROW EXECUTE FUNCTION nothing();
         CREATE RULE lost AS ON DELETE TO owners DO INSTEAD NOTHING;"
    ));
    let mut problems = store.check(Depth::Quick).unwrap();
    problems.sort();
    let told = ["the rule \"lost\"", "the trigger \"never\""];
    assert_eq!(problems, told.map(|what| format!("{what} was not made by Mainstay")));
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
