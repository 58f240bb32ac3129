//! The schema on the server: creation and migration.

use super::server::Server;
use super::wire::Wire;
use crate::clock::{Deadline, wall_millis};
use crate::schema::Schema;
use crate::store::Options;
use crate::tx::Dialect;
use crate::{Error, Id, Result};

/// The oldest server that can say what became of a transaction (`pg_current_xact_id`).
const OLDEST: i64 = 130_000;

/// Makes sure the store is there, and as new as this program.
pub(super) fn ensure(server: &Server, place: &str, options: &Options) -> Result<()> {
    let wire = server.connect(Deadline::after(options.limits.connect))?;
    let creator = Creator { server, wire: &wire, schema: server.schema() };
    creator.refuse_old_server()?;
    let found = creator.versions()?;
    if found.is_empty() && !options.create {
        return Err(Error::Absent { place: place.to_owned() });
    }
    while !options.schema.pending(&creator.versions()?)?.is_empty() {
        creator.step(&options.schema)?;
    }
    Ok(())
}

/// Makes an empty store inside a transaction that the caller has begun, unless there is one.
pub(super) fn within(server: &Server, wire: &Wire, schema: &Schema) -> Result<()> {
    let creator = Creator { server, wire, schema: server.schema() };
    creator.refuse_old_server()?;
    creator.lock()?;
    while creator.next_step(schema)? {}
    Ok(())
}

struct Creator<'a> {
    server: &'a Server,
    wire: &'a Wire,
    schema: &'a str,
}

impl Creator<'_> {
    fn run(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        self.server.run(self.wire, sql)
    }

    fn number(&self, sql: &str) -> Result<i64> {
        let rows = self.run(sql)?;
        let text = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn refuse_old_server(&self) -> Result<()> {
        let version = self.number("SHOW server_version_num")?;
        if version >= OLDEST {
            return Ok(());
        }
        Err(Error::Refused {
            server: self.wire.server.to_string(),
            detail: format!("it is PostgreSQL {}; 13 or newer is needed", version / 10_000),
        })
    }

    /// The versions of all components; none where there is no store.
    fn versions(&self) -> Result<Vec<(String, i64)>> {
        // By the catalogue's rows: a name that was once looked up in vain is remembered as absent.
        let tables = format!(
            "SELECT count(*) FROM pg_catalog.pg_tables
             WHERE schemaname = '{}' AND tablename = 'schema_versions'",
            self.schema
        );
        if self.number(&tables)? == 0 {
            return Ok(Vec::new());
        }
        let rows = self.run("SELECT component, version FROM schema_versions")?;
        Ok(rows
            .into_iter()
            .filter_map(|row| match row.as_slice() {
                [Some(component), Some(version)] => {
                    Some((component.clone(), version.parse().ok()?))
                }
                _ => None,
            })
            .collect())
    }

    /// Runs the next missing step in a transaction of its own.
    fn step(&self, schema: &Schema) -> Result<()> {
        self.run("BEGIN; SET LOCAL statement_timeout = 0")?;
        match self.lock().and_then(|()| self.next_step(schema)) {
            Ok(_) => self.run("COMMIT").map(drop),
            Err(error) => {
                // The connection is closed after this in any case.
                let _ = self.run("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Only one process at a time changes the schema. Let go at the end of the transaction.
    fn lock(&self) -> Result<()> {
        let lock = format!("SELECT pg_advisory_xact_lock(hashtext('mainstay {}'))", self.schema);
        self.run(&lock).map(drop)
    }

    /// Runs the next missing step, if there is one, in the transaction that is open.
    fn next_step(&self, schema: &Schema) -> Result<bool> {
        let found = self.versions()?;
        let pending = schema.pending(&found)?;
        let Some((component, version, migration)) = pending.first() else {
            return Ok(false);
        };
        if found.is_empty() {
            self.run(&format!("CREATE SCHEMA IF NOT EXISTS {}", self.schema))?;
        }
        self.run(&migration.sql(Dialect::Postgres))?;
        self.run(&format!(
            "INSERT INTO schema_versions (component, version) VALUES ('{component}', {version})
             ON CONFLICT (component) DO UPDATE SET version = excluded.version"
        ))?;
        if found.is_empty() {
            self.run(&format!(
                "INSERT INTO meta (key, value) VALUES ('store', '{}'), ('created_at', '{}')",
                Id::new(),
                wall_millis()
            ))?;
        }
        Ok(true)
    }
}
