//! Puts another schema in the place of a store, and the old one aside, in one commit.

use tokio::runtime::Runtime;
use url::Url;

use super::runtime;
use super::server::Server;
use super::wire::Wire;
use crate::clock::Deadline;
use crate::location::Location;
use crate::store::Options;
use crate::{Error, Result};

/// A swap that is being prepared: the new store is built under another name first.
pub(crate) struct Swap {
    server: Server,
    url: Url,
    options: Options,
    runtime: Option<Runtime>,
}

impl Swap {
    /// Makes sure that nobody uses the store, and clears what an interrupted restore left.
    pub(crate) fn begin(url: &Url, schema: &str, options: &Options) -> Result<Self> {
        let runtime = runtime()?;
        let server = Server::new(url, schema, options.limits, runtime.handle().clone())?;
        let swap =
            Self { server, url: url.clone(), options: options.clone(), runtime: Some(runtime) };
        let wire = swap.connect()?;
        let others = swap.server.others(&wire)?;
        if !others.is_empty() {
            return Err(Error::InUse {
                what: format!("the store on {} (schema {schema})", swap.server.address),
                holder: others.join(", "),
            });
        }
        let staging = swap.staging_name();
        swap.server.run(
            &wire,
            &format!("SET statement_timeout = 0; DROP SCHEMA IF EXISTS {staging} CASCADE"),
        )?;
        Ok(swap)
    }

    /// Where the new store is to be built.
    pub(crate) fn staging(&self) -> Location {
        Location::Postgres { url: self.url.clone(), schema: self.staging_name() }
    }

    /// Swaps; answers the name of the schema that holds the old data, if there was any.
    pub(crate) fn finish(self, suffix: &str) -> Result<Option<String>> {
        let wire = self.connect()?;
        let schema = self.server.schema();
        let staging = self.staging_name();
        let aside = format!("{schema}_{suffix}");
        let found = self.server.run(
            &wire,
            &format!("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '{schema}'"),
        )?;
        let there = !found.is_empty();
        let away =
            if there { format!("ALTER SCHEMA {schema} RENAME TO {aside};") } else { String::new() };
        self.server.run(
            &wire,
            &format!("BEGIN; {away} ALTER SCHEMA {staging} RENAME TO {schema}; COMMIT"),
        )?;
        Ok(there.then_some(format!("schema {aside}")))
    }

    fn staging_name(&self) -> String {
        format!("{}_restoring", self.server.schema())
    }

    fn connect(&self) -> Result<Wire> {
        self.server.connect(Deadline::after(self.options.limits.connect))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
