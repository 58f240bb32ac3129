//! Looks for damage. An intact file proves little, so what must be dense is counted too.

use std::ops::ControlFlow;

use crate::blobs::BlobHash;
use crate::store::Engine;
use crate::tables::{Fingerprint, Table};
use crate::{ReadTx, Result, Store, params};

/// How thorough a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The structure of the file, and what must be dense. Fast enough for every start.
    Quick,
    /// Every index, every row, and the hash of every blob.
    Full,
}

impl Store {
    /// Looks for damage; answers a sentence for each thing that is wrong.
    pub fn check(&self, depth: Depth) -> Result<Vec<String>> {
        let mut problems = match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.check(depth)?,
            Engine::Postgres(_) => Vec::new(),
        };
        if problems.is_empty() {
            problems = self.read_unlimited(|tx| tx.check(depth))?;
        }
        Ok(problems)
    }
}

impl ReadTx<'_> {
    pub(crate) fn check(&mut self, depth: Depth) -> Result<Vec<String>> {
        let mut problems = self.check_events()?;
        if depth == Depth::Full {
            problems.extend(self.check_blobs()?);
            for table in self.tables()? {
                // Reads every byte of every row, which an index scan for a count does not.
                let mut fingerprint = Fingerprint::default();
                self.for_each_row(&table, |row| {
                    fingerprint.add(row).map(|()| ControlFlow::Continue(()))
                })?;
            }
        }
        Ok(problems)
    }

    fn check_events(&mut self) -> Result<Vec<String>> {
        self.query(
            "SELECT topics.topic, topics.first, topics.last, count(events.number),
                 min(events.number), max(events.number)
             FROM topics LEFT JOIN events ON events.topic = topics.topic
             GROUP BY topics.topic, topics.first, topics.last
             HAVING count(events.number) <> topics.last - topics.first + 1
                 OR (count(events.number) > 0
                     AND (min(events.number) <> topics.first
                         OR max(events.number) <> topics.last))",
            params![],
            |row| {
                let (topic, first, last, count): (String, i64, i64, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(format!(
                    "the events of topic \"{topic}\" should be {first} to {last} without gaps, \
                     but there are {count}"
                ))
            },
        )
    }

    fn check_blobs(&mut self) -> Result<Vec<String>> {
        let columns = ["hash", "size", "body"].map(str::to_owned).to_vec();
        let blobs = Table { name: "blobs".to_owned(), columns };
        let mut problems = Vec::new();
        self.for_each_row(&blobs, |row| {
            let (hash, size, body): (String, i64, Vec<u8>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            if BlobHash::of(&body).as_str() != hash || i64::try_from(body.len()) != Ok(size) {
                problems.push(format!("the blob {hash} is not what it was when it was stored"));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(problems)
    }
}
