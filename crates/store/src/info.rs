//! What a store is, in figures.

use std::path::PathBuf;

use crate::filesystem::FileSystem;
use crate::store::Engine;
use crate::{Result, Store, params};

/// Facts about a store.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Info {
    /// `sqlite` or `postgres`.
    pub engine: &'static str,
    /// The version of the SQLite library or of the server.
    pub engine_version: String,
    /// Where it is, without secrets.
    pub place: String,
    /// The store's own id, which backups and copies keep.
    pub id: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// The version of each component's tables.
    pub schema: Vec<(String, i64)>,
    /// `wal` or `rollback`; SQLite only.
    pub journal: Option<&'static str>,
    /// Bytes of the database.
    pub bytes: u64,
    /// Bytes of it that hold nothing, and that compacting gives back; SQLite only.
    pub free_bytes: Option<u64>,
    /// Bytes of the write-ahead log; SQLite only.
    pub wal_bytes: Option<u64>,
    /// What the file is on; SQLite only.
    pub file_system: Option<FileSystem>,
    /// The database file; SQLite only.
    pub file: Option<PathBuf>,
    /// Who else has it open, as far as that can be seen.
    pub other_users: Vec<String>,
    /// Rows of each table.
    pub tables: Vec<(String, u64)>,
    /// The latest time written in the store, in milliseconds since 1970.
    pub newest_at: Option<i64>,
    /// The wall clock of the server; PostgreSQL only.
    pub server_time: Option<i64>,
    /// Whether the server syncs its log to the disk; PostgreSQL only.
    pub server_syncs: Option<bool>,
}

impl Store {
    /// Gathers facts about the store.
    pub fn info(&self) -> Result<Info> {
        let mut info = self.read_unlimited(|tx| {
            let meta = |key: &str, tx: &mut crate::ReadTx<'_>| -> Result<String> {
                let value =
                    tx.query_opt("SELECT value FROM meta WHERE key = ?1", params![key], |row| {
                        row.get(0)
                    })?;
                Ok(value.unwrap_or_default())
            };
            Ok::<_, crate::Error>(Info {
                engine: "",
                engine_version: String::new(),
                place: self.location().to_string(),
                id: meta("store", tx)?,
                created_at: meta("created_at", tx)?.parse().unwrap_or(0),
                schema: tx.query(
                    "SELECT component, version FROM schema_versions ORDER BY component",
                    params![],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )?,
                journal: None,
                bytes: 0,
                free_bytes: None,
                wal_bytes: None,
                file_system: None,
                file: None,
                other_users: Vec::new(),
                tables: tx.counts()?,
                newest_at: tx.query_one(
                    "SELECT max(at) FROM (SELECT max(at) AS at FROM events
                         UNION ALL SELECT max(acquired_at) FROM leases
                         UNION ALL SELECT max(created_at) FROM blobs
                         UNION ALL SELECT max(created_at) FROM owners) AS times",
                    params![],
                    |row| row.get(0),
                )?,
                server_time: None,
                server_syncs: None,
            })
        })?;
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.describe(&mut info)?,
            Engine::Postgres(postgres) => {
                self.describe_server(&mut info)?;
                info.other_users = postgres.others()?;
            }
        }
        Ok(info)
    }

    fn describe_server(&self, info: &mut Info) -> Result<()> {
        info.engine = "postgres";
        self.read(|tx| {
            info.engine_version =
                tx.query_one("SHOW server_version", params![], |row| row.get(0))?;
            let syncs: String = tx.query_one("SHOW fsync", params![], |row| row.get(0))?;
            info.server_syncs = Some(syncs == "on");
            info.server_time = Some(tx.query_one(
                "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
                params![],
                |row| row.get(0),
            )?);
            let bytes: i64 = tx.query_one(
                "SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT)
                 FROM pg_catalog.pg_class
                 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
                params![],
                |row| row.get(0),
            )?;
            info.bytes = bytes.unsigned_abs();
            Ok(())
        })
    }
}
