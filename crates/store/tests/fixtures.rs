//! A store of every past version must open, keep its rows, and end with the schema of a new one.
//!
//! A version's files are made once, by the program that introduced it, and never changed: when a
//! migration is added, this test writes the new version's files, says so and fails; commit them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a test's error")]
#![allow(clippy::disallowed_methods, reason = "tests may do as they like")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mainstay_store::{Depth, Location, Options, Schema, Store, params};
use mainstay_testkit::postgres;

/// The version this program writes.
const NEWEST: i64 = 2;

/// What is kept packed.
const LONG: [u8; 4096] = [7; 4096];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn open(location: &Location) -> Store {
    Store::open(location, Options::new(Schema::default())).unwrap()
}

/// Some rows in every table.
fn seed(store: &Store) {
    store
        .write(|tx| {
            tx.owner("local")?;
            tx.publish("topic", "first")?;
            tx.publish("topic", "second")?;
            tx.move_cursor("reader", "topic", 1)?;
            tx.put_blob(&LONG)?;
            tx.put_blob(b"bytes").map(drop)
        })
        .unwrap();
    let lease = store.try_acquire("work", std::time::Duration::from_secs(60)).unwrap();
    drop(lease);
}

/// What `seed` left must be there.
fn verify(store: &Store) {
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
    let info = store.info().unwrap();
    assert_eq!(info.schema, [("store".to_owned(), NEWEST)]);
    let page = store.read(|tx| tx.events("topic", 0, 10)).unwrap();
    assert_eq!(
        page.events.iter().map(|event| &event.body).collect::<Vec<_>>(),
        ["first", "second"]
    );
    assert_eq!(store.read(|tx| tx.cursor("reader", "topic")).unwrap(), 1);
    assert!(store.read(|tx| tx.find_owner("local")).unwrap().is_some());
    assert_eq!(
        store.read(|tx| tx.blob(&mainstay_store::BlobHash::of(b"bytes"))).unwrap(),
        Some(b"bytes".to_vec())
    );
    // Version 1 had none that is worth packing.
    let long = store.read(|tx| tx.blob(&mainstay_store::BlobHash::of(&LONG))).unwrap();
    assert!(long.is_none_or(|bytes| bytes == LONG));
    store.write(|tx| tx.publish("topic", "third").map(drop)).unwrap();
}

fn missing(path: &Path) -> ! {
    panic!("{} was missing and has been written: look at it and commit it.", path.display())
}

#[test]
fn an_sqlite_store_of_every_version_opens() {
    let directory = tempfile::tempdir().unwrap();
    for version in 1..=NEWEST {
        let kept = fixture(&format!("store-{version}.db"));
        if !kept.exists() && version == NEWEST {
            let fresh = open(&Location::file(directory.path().join("fresh.db")));
            seed(&fresh);
            fresh.backup_to(&kept, &mut |_| {}).unwrap();
            missing(&kept);
        }
        let path = directory.path().join(format!("store-{version}.db"));
        fs::copy(&kept, &path).unwrap();
        let store = open(&Location::file(&path));
        verify(&store);
        let new = open(&Location::file(directory.path().join(format!("new-{version}.db"))));
        assert_eq!(sqlite_schema(&store), sqlite_schema(&new));
    }
}

#[test]
fn a_postgres_store_of_every_version_opens() {
    for version in 1..=NEWEST {
        let kept = fixture(&format!("store-{version}.sql"));
        if !kept.exists() && version == NEWEST {
            let schema = postgres::fresh_schema();
            seed(&open(&at(&schema)));
            fs::write(&kept, dump(&schema)).unwrap();
            missing(&kept);
        }
        let schema = postgres::fresh_schema();
        let script = fs::read_to_string(&kept).unwrap().replace("SCHEMA_NAME", &schema);
        postgres::psql(&script);
        let store = open(&at(&schema));
        verify(&store);
        let new = postgres::fresh_schema();
        assert_eq!(postgres_schema(&store), postgres_schema(&open(&at(&new))));
    }
}

#[test]
fn the_schema_of_the_newest_version_is_written_down() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = sqlite_schema(&open(&Location::file(directory.path().join("store.db"))));
    let postgres = postgres_schema(&open(&postgres::fresh().parse().unwrap()));
    for (engine, schema) in [("sqlite", sqlite), ("postgres", postgres)] {
        let golden = fixture(&format!("schema-{NEWEST}.{engine}.txt"));
        if !golden.exists() {
            fs::write(&golden, &schema).unwrap();
            missing(&golden);
        }
        assert_eq!(
            schema,
            fs::read_to_string(&golden).unwrap(),
            "a version's schema never changes"
        );
    }
}

fn at(schema: &str) -> Location {
    format!("{}?schema={schema}", postgres::admin_url()).parse().unwrap()
}

fn dump(schema: &str) -> String {
    let output = Command::new(postgres::program("pg_dump"))
        .args(["--inserts", "--no-owner", "--no-privileges", "--schema", schema])
        .arg(postgres::admin_url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap().replace(schema, "SCHEMA_NAME");
    // Settings, comments and psql's own commands differ between versions of the tool.
    let kept = text.lines().filter(|line| {
        !line.is_empty()
            && !["--", "SET ", "SELECT pg_catalog", "\\"]
                .iter()
                .any(|start| line.starts_with(start))
    });
    kept.fold(String::new(), |script, line| script + line + "\n")
}

fn sqlite_schema(store: &Store) -> String {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let statements: Vec<String> =
        store.read(|tx| tx.query(sql, params![], |row| row.get(0))).unwrap();
    let lines = statements.iter().flat_map(|statement| statement.lines());
    lines.fold(String::new(), |text, line| text + line.trim() + "\n")
}

fn postgres_schema(store: &Store) -> String {
    let columns = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable,
            collation_name) FROM information_schema.columns
        WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position";
    let indexes = "SELECT replace(indexdef, current_schema() || '.', '') FROM pg_indexes
        WHERE schemaname = current_schema() ORDER BY indexname";
    store
        .read(|tx| {
            let mut lines: Vec<String> = tx.query(columns, params![], |row| row.get(0))?;
            lines.extend(tx.query(indexes, params![], |row| row.get::<String>(0))?);
            Ok::<_, mainstay_store::Error>(lines.join("\n") + "\n")
        })
        .unwrap()
}
