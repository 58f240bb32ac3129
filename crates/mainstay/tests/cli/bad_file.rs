//! Files that are no store, or no longer one: a sentence, a next step, and not a byte changed.

use std::fs;

use mainstay_store::params;

use super::home::{Home, Ran};

/// Everything that looks at a store.
const COMMANDS: [&str; 5] =
    ["store info", "store check", "backup out.db", "store copy --to out.db", "doctor"];

/// Runs every command on a home whose store is `bytes`; each must refuse with `words`.
#[track_caller]
fn check(bytes: &[u8], words: &str) {
    let home = Home::with_store();
    fs::write(home.store(), bytes).unwrap();
    let before = home.files();
    for line in COMMANDS {
        refused(&home.run(line), line, words);
        assert!(home.files() == before, "{line} changed something");
    }
}

/// The doctor's answer is its list of findings; the others refuse.
#[track_caller]
fn refused(ran: &Ran, line: &str, words: &str) {
    if line != "doctor" {
        return ran.refused(1, words);
    }
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran}");
    let mut lines = ran.stdout.lines();
    let found = lines.find(|line| line.starts_with("problem  store: ")).unwrap_or_default();
    assert!(found.contains(words), "no \"{words}\" in {ran}");
    assert!(lines.next().unwrap().starts_with("         next: "), "{ran}");
}

fn good() -> Vec<u8> {
    fs::read(Home::with_store().store()).unwrap()
}

#[test]
fn a_file_that_is_no_database() {
    check(b"Dear diary, today I was renamed to store.db.", "is not a Mainstay store");
    check(&vec![0; 40_000], "is not a Mainstay store");
}

#[test]
fn an_empty_file_is_not_a_new_store() {
    check(b"", "is an empty file, not a store");
}

#[test]
fn a_truncated_file_at_any_length() {
    let good = good();
    for length in [1, 15, 99, 100, 511, 512, 1024, 4095] {
        check(&good[..length], "store.db is");
    }
    for pages in 1..good.len() / 4096 {
        // Damage that only the copy's own check meets is told of the copy.
        check(&good[..pages * 4096 + 17], "");
    }
}

#[test]
fn a_database_of_another_program() {
    let mut bytes = good();
    // The application id, at its place in the header.
    bytes[68..72].copy_from_slice(&[0, 0, 0, 7]);
    check(&bytes, "is an SQLite database of another program");
}

#[test]
fn a_store_of_a_newer_version() {
    let home = Home::with_store();
    let newer = |tx: &mut mainstay_store::WriteTx<'_>| {
        tx.execute("UPDATE schema_versions SET version = 99", params![]).map(drop)
    };
    home.open_or_create().write(newer).unwrap();
    let bytes = fs::read(home.store()).unwrap();
    check(&bytes, "the store is of a newer version (store 99; this program writes up to");
    fs::rename(home.store(), home.path("newer")).unwrap();
    home.run("restore newer").refused(1, "newer version (store 99");
}

#[test]
fn a_directory_in_the_place_of_the_store() {
    let home = Home::new();
    fs::create_dir_all(home.store()).unwrap();
    let before = home.files();
    for line in COMMANDS {
        refused(&home.run(line), line, "it is a directory");
    }
    assert!(home.files() == before);
}

#[test]
fn a_link_to_nowhere() {
    let home = Home::with_store();
    fs::remove_file(home.store()).unwrap();
    std::os::unix::fs::symlink("gone.db", home.store()).unwrap();
    for line in COMMANDS {
        refused(&home.run(line), line, "it is a broken symbolic link");
    }
    assert!(!home.path("home/gone.db").exists());
}

#[test]
fn a_database_that_is_gone_while_its_log_is_there() {
    let home = Home::with_store();
    fs::rename(home.store(), home.path("home/store.db-wal")).unwrap();
    let before = home.files();
    for line in COMMANDS {
        refused(&home.run(line), line, "its write-ahead log is still there");
        assert!(home.files() == before, "{line} changed something");
    }
}

/// A byte of every page's header, where it cannot hide.
#[test]
fn a_flipped_byte_in_any_page_is_found_and_left_alone() {
    let good = good();
    let home = Home::with_store();
    for page in 0..good.len() / 4096 {
        // The first page begins with the file's own header.
        let start = if page == 0 { 100 } else { page * 4096 };
        let mut bytes = good.clone();
        bytes[start] ^= 0x55;
        fs::write(home.store(), &bytes).unwrap();
        let ran = home.run("store check");
        assert_eq!(ran.code, Some(1), "page {page}: {ran}");
        let said = ran.stdout.contains("problem: ") || ran.stderr.contains("is damaged");
        assert!(said && !ran.stderr.contains("panicked"), "page {page}: {ran}");
        let ran = home.run("backup out.db");
        assert_eq!(ran.code, Some(1), "page {page}: {ran}");
        assert!(ran.stderr.contains("\nhint: "), "page {page}: {ran}");
        assert_eq!(home.names(""), ["home"], "page {page}: nothing half-made is left");
        assert_eq!(home.run("doctor").code, Some(1), "page {page}");
        assert!(fs::read(home.store()).unwrap() == bytes, "page {page} was changed");
    }
}

#[test]
fn a_flipped_byte_in_a_blob_is_found_by_its_hash() {
    let home = Home::with_store();
    // It is packed, so its words are not in the file.
    let store = home.open_or_create();
    let body: Vec<u8> = store
        .read(|tx| tx.query_one("SELECT body FROM blobs WHERE form = 1", &[], |row| row.get(0)))
        .unwrap();
    drop(store);
    let mut bytes = fs::read(home.store()).unwrap();
    let at = bytes.windows(body.len()).position(|found| found == body).unwrap();
    bytes[at + body.len() / 2] ^= 0x01;
    fs::write(home.store(), &bytes).unwrap();
    let ran = home.run("store check");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("is not what it was when it was stored"), "{ran}");
    assert!(fs::read(home.store()).unwrap() == bytes);
}
