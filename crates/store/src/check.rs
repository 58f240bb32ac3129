//! Looks for damage. An intact file proves little, so what must be dense is counted too.

use std::ops::ControlFlow;

use crate::blobs::{BlobHash, unpacked};
use crate::store::Engine;
use crate::tables::{Fingerprint, Table};
use crate::tx::Dialect;
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
            Engine::Sqlite(sqlite) => sqlite.check(&self.inner.options.schema, depth)?,
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
        let mut problems = self.check_objects()?;
        problems.extend(self.check_events()?);
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

    /// What acts on our tables on PostgreSQL without being ours; SQLite's file is compared as a whole.
    fn check_objects(&mut self) -> Result<Vec<String>> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(Vec::new());
        }
        self.query(
            "WITH ours AS (SELECT oid, relname, relkind FROM pg_catalog.pg_class
                 WHERE relnamespace = current_schema()::regnamespace)
             SELECT 'trigger', tgname::text FROM pg_catalog.pg_trigger
                 WHERE NOT tgisinternal AND tgrelid IN (SELECT oid FROM ours)
             UNION ALL SELECT 'rule', rulename::text FROM pg_catalog.pg_rewrite
                 WHERE rulename <> '_RETURN' AND ev_class IN (SELECT oid FROM ours)
             UNION ALL SELECT 'policy', polname::text FROM pg_catalog.pg_policy
                 WHERE polrelid IN (SELECT oid FROM ours)
             UNION ALL SELECT 'view', relname::text FROM ours WHERE relkind IN ('v', 'm')",
            params![],
            |row| {
                let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
                Ok(format!("the {kind} {name:?} was not made by Mainstay"))
            },
        )
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
        let columns = ["hash", "size", "form", "body"].map(str::to_owned).to_vec();
        let blobs = Table { name: "blobs".to_owned(), columns };
        let mut problems = Vec::new();
        self.for_each_row(&blobs, |row| {
            let (hash, size, form, body): (String, i64, i64, Vec<u8>) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let bytes = unpacked(form, size, body);
            if bytes.is_none_or(|bytes| BlobHash::of(&bytes).as_str() != hash) {
                problems.push(format!("the blob {hash} is not what it was when it was stored"));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(problems)
    }
}
