//! The opening rules: three kinds of absence, nothing created over bytes, the journal mode kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mainstay_store::{Error, Journal, Location, Options, Result, Schema, Store};

fn open(path: &Path) -> Result<Store> {
    Store::open(&Location::file(path), Options::new(Schema::default()))
}

/// Everything in a directory, to see that nothing was touched.
fn content(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(directory)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_new_store_is_one_private_file_in_wal_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    store.write(|tx| tx.owner("local")).unwrap();
    let info = store.info().unwrap();
    assert_eq!((info.engine, info.journal), ("sqlite", Some("wal")));
    for name in ["store.db", "store.db-wal", "store.db-shm", "store.db.side/turn"] {
        let mode = fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let side = fs::metadata(directory.path().join("store.db.side")).unwrap();
    assert_eq!(side.permissions().mode() & 0o777, 0o700);
    drop(store);
    assert_eq!(content(directory.path()).len(), 1, "the last one to leave folds the log in");
}

#[test]
fn absent_empty_and_unreadable_are_three_answers() {
    let directory = tempfile::tempdir().unwrap();
    let existing = |path: &Path| {
        Store::open(&Location::file(path), Options::new(Schema::default()).existing()).unwrap_err()
    };
    let path = directory.path().join("store.db");
    assert!(matches!(existing(&path), Error::Absent { .. }));
    fs::write(&path, b"").unwrap();
    assert!(matches!(open(&path).unwrap_err(), Error::Empty { .. }));
    assert!(matches!(open(directory.path()).unwrap_err(), Error::Unreadable { .. }));
    assert!(matches!(open(&path.join("below")).unwrap_err(), Error::Unreadable { .. }));
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    assert!(matches!(open(&link).unwrap_err(), Error::Unreadable { .. }));
    assert_eq!(fs::read(&path).unwrap(), b"", "it was left as it is");
}

#[test]
fn what_is_not_a_store_is_left_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let long_text = "a letter to a friend. ".repeat(1000);
    for bytes in [b"x".as_slice(), b"SQLite format 3\0", &[0; 4096], long_text.as_bytes()] {
        fs::write(&path, bytes).unwrap();
        let before = content(directory.path());
        let error = open(&path).unwrap_err();
        assert!(matches!(error, Error::NotAStore { .. } | Error::Damaged { .. }), "{error:?}");
        assert_eq!(content(directory.path()), before);
        assert!(!directory.path().join("store.db.side").exists(), "nothing is put beside it");
    }
}

#[test]
fn a_log_without_its_database_is_not_an_absence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    fs::write(directory.path().join("store.db-wal"), b"precious").unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    assert!(!path.exists());
}

#[test]
fn the_journal_mode_is_what_it_was_at_creation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let rollback = Location::Sqlite { path: path.clone(), journal: Journal::Rollback };
    let open_as =
        |location: &Location| Store::open(location, Options::new(Schema::default())).unwrap();
    let mode = |store: &Store| store.info().unwrap().journal.unwrap();
    let store = open_as(&rollback);
    store.write(|tx| tx.owner("local")).unwrap();
    assert_eq!(mode(&store), "rollback");
    drop(store);
    let store = open_as(&Location::file(&path));
    store.write(|tx| tx.owner("other")).unwrap();
    assert_eq!(mode(&store), "rollback", "the file decides, not the address");
    drop(store);
    let other = directory.path().join("other.db");
    drop(open(&other).unwrap());
    let insisted = Location::Sqlite { path: other, journal: Journal::Rollback };
    assert_eq!(mode(&open_as(&insisted)), "wal", "never downgraded");
}

#[test]
fn a_store_that_is_replaced_under_a_writer_takes_no_more_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).unwrap();
    store.write(|tx| tx.owner("local")).unwrap();
    fs::rename(&path, directory.path().join("elsewhere.db")).unwrap();
    let error = store.write(|tx| tx.owner("lost")).unwrap_err();
    assert!(matches!(error, Error::Replaced { .. }), "{error:?}");
    let again = store.write(|tx| tx.owner("lost")).unwrap_err();
    assert!(matches!(again, Error::Replaced { .. } | Error::Damaged { .. }), "{again:?}");
    assert!(!path.exists(), "no new store was put in its place");
}

#[test]
fn a_log_that_is_deleted_under_a_writer_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).unwrap();
    store.write(|tx| tx.owner("one")).unwrap();
    store.write(|tx| tx.owner("two")).unwrap();
    fs::remove_file(directory.path().join("store.db-wal")).unwrap();
    let error = store.write(|tx| tx.owner("three")).unwrap_err();
    assert!(matches!(error, Error::Replaced { .. }), "{error:?}");
}
