//! The judge of the fault tests: compares a store with what was acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use mainstay_store::{Depth, Error, Location, Options, Schema, Store, params};
use mainstay_testkit::process::example;

/// The store inside a directory under test.
pub(crate) fn store_in(directory: &Path) -> PathBuf {
    directory.join("store.db")
}

/// The file of acknowledgements beside it.
pub(crate) fn acks_beside(directory: &Path) -> PathBuf {
    directory.with_file_name("acks")
}

/// A steady writer on the store in `directory`.
pub(crate) fn steady_writer(
    directory: &Path,
    writer: &str,
    last: u32,
    options: &[&str],
) -> Command {
    let mut command = Command::new(example("steady_writer"));
    command
        .arg(store_in(directory))
        .arg(acks_beside(directory))
        .args([writer, &last.to_string()])
        .args(options);
    command
}

/// The last acknowledged number of each writer. A torn last line was not acknowledged in full.
pub(crate) fn acknowledged(acks: &str) -> BTreeMap<String, i64> {
    let mut last = BTreeMap::new();
    for line in acks.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let (writer, number) = line.split_once(' ').unwrap();
        let number: i64 = number.parse().unwrap();
        let before = last.insert(writer.to_owned(), number).unwrap_or(0);
        // A number is skipped when the writer was killed between its commit and its word.
        assert!(number > before, "acknowledgements of {writer} are in order");
    }
    last
}

pub(crate) fn read_acks(directory: &Path) -> BTreeMap<String, i64> {
    acknowledged(&std::fs::read_to_string(acks_beside(directory)).unwrap_or_default())
}

/// Opens the store and checks that it is whole and holds, for each writer, exactly the numbers
/// from 1 to some last one that is not before the last acknowledged. Answers the last numbers.
pub(crate) fn verify(path: &Path, acked: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let store = match Store::open(&Location::file(path), Options::new(Schema::default()).existing())
    {
        Ok(store) => store,
        Err(Error::Absent { .. }) if acked.is_empty() => return BTreeMap::new(),
        Err(error) => panic!("the store does not open: {error}"),
    };
    assert_eq!(store.check(Depth::Full).unwrap(), Vec::<String>::new());
    assert_eq!(store.info().unwrap().journal, Some("wal"));
    let there = rows(&store);
    for (writer, last) in acked {
        let found = there.get(writer).copied().unwrap_or(0);
        assert!(found >= *last, "{writer}: {last} was acknowledged, but {found} is the last there");
    }
    // Work goes on.
    store.write(|tx| tx.publish("after", "the fault").map(drop)).unwrap();
    there
}

/// The last number of each writer, after checking that there is no gap and no double.
fn rows(store: &Store) -> BTreeMap<String, i64> {
    store
        .read(|tx| {
            let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'steady'";
            if tx.query_one(there, params![], |row| row.get::<i64>(0))? == 0 {
                return Ok(BTreeMap::new());
            }
            let sql = "SELECT writer, count(*), min(number), max(number),
                    (SELECT last FROM topics WHERE topic = 'steady/' || writer)
                FROM steady GROUP BY writer";
            let rows = tx.query(sql, params![], |row| {
                let (writer, count, first, last, event): (String, i64, i64, i64, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                assert_eq!((first, count), (1, last), "{writer}: no number is missing");
                assert_eq!(event, last, "{writer}: each number made one event");
                Ok((writer, last))
            })?;
            Ok::<_, Error>(rows.into_iter().collect())
        })
        .unwrap()
}
