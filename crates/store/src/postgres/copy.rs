//! A new store on the server that is being filled: all of it in one transaction.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::runtime::Runtime;
use url::Url;

use super::failure::Fault;
use super::server::Server;
use super::session::{Bound, PostgresSession, Turn};
use super::wire::Wire;
use super::{create, runtime};
use crate::clock::Deadline;
use crate::copy::Copy;
use crate::store::Options;
use crate::tables::Table;
use crate::tx::ReadTx;
use crate::{Error, Result, Value, ValueRef};

/// No statement of a copy takes longer.
const LIMIT: Duration = Duration::from_secs(3600);

/// A store whose rows are not committed yet.
pub(crate) struct PostgresCopy {
    wire: Option<Wire>,
    runtime: Option<Runtime>,
}

impl PostgresCopy {
    pub(crate) fn begin(url: &Url, schema: &str, options: &Options) -> Result<Self> {
        let runtime = runtime()?;
        let server = Server::new(url, schema, options.limits, runtime.handle().clone())?;
        let place = format!("{} (schema {schema})", server.address);
        let wire = server.connect(Deadline::after(options.limits.connect))?;
        let mut copy = Self { wire: Some(wire), runtime: Some(runtime) };
        copy.simple(
            "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
             SET lock_timeout = '10s'; BEGIN",
        )?;
        // The tables are part of the transaction: a copy that fails leaves no empty store.
        create::within(&server, copy.wire()?, &options.schema)?;
        copy.simple("LOCK TABLE schema_versions IN ACCESS EXCLUSIVE MODE")?;
        copy.refuse_full(&place)?;
        Ok(copy)
    }

    fn refuse_full(&mut self, place: &str) -> Result<()> {
        let mut counts = Ok(Vec::new());
        self.read(&mut |tx| counts = tx.counts())?;
        let new = ["schema_versions", "meta"];
        match counts?.iter().find(|(name, rows)| *rows > 0 && !new.contains(&name.as_str())) {
            None => Ok(()),
            Some(_) => Err(Error::NotEmpty { place: place.to_owned() }),
        }
    }

    fn wire(&mut self) -> Result<&mut Wire> {
        self.wire.as_mut().ok_or_else(|| Error::Statement("the copy was closed already".to_owned()))
    }

    fn simple(&mut self, sql: &str) -> Result<()> {
        let wire = self.wire()?;
        wire.simple(LIMIT, sql).map(drop).map_err(|fault| described(wire, fault))
    }
}

fn described(wire: &Wire, fault: Fault) -> Error {
    match fault {
        Fault::Refused(error) => error,
        Fault::Lost => Error::InUse {
            what: format!("the store on {}", wire.server),
            holder: "another client".to_owned(),
        },
        Fault::Broken(detail) => Error::Unreachable { server: wire.server.to_string(), detail },
    }
}

impl Copy for PostgresCopy {
    fn read(&mut self, job: &mut dyn FnMut(&mut ReadTx<'_>)) -> Result<()> {
        let mut session =
            PostgresSession { wire: self.wire()?, limit: LIMIT, setback: None, turn: Turn::No };
        job(&mut ReadTx::new(&mut session, 0));
        Ok(())
    }

    fn clear(&mut self, table: &Table) -> Result<()> {
        self.simple(&format!("DELETE FROM {}", table.name))
    }

    fn insert(&mut self, table: &Table, rows: Vec<Vec<Value>>) -> Result<()> {
        for value in rows.iter().flatten() {
            // What an older SQLite file may hold and the server cannot.
            ValueRef::portable(value.as_ref())?;
        }
        let wire = self.wire()?;
        let statement =
            wire.prepared(LIMIT, &table.insert()).map_err(|fault| described(wire, fault))?;
        let client = Arc::clone(&wire.client);
        // All rows are on their way before the first answer comes back.
        let inserted = wire.wait(LIMIT, async move {
            let inserts = rows.into_iter().map(|row| {
                let (client, statement) = (&client, &statement);
                async move {
                    client
                        .execute_raw(statement, row.into_iter().map(Bound).collect::<Vec<_>>())
                        .await
                }
            });
            try_join_all(inserts).await
        });
        inserted.map(drop).map_err(|fault| described(wire, fault))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let outcome = self.wire()?.simple(LIMIT, "COMMIT");
        match outcome {
            Ok(_) => Ok(()),
            Err(Fault::Broken(detail)) => Err(Error::OutcomeUnknown(format!(
                "{detail}; look at the target with `mainstay store info`"
            ))),
            Err(fault) => Err(described(self.wire()?, fault)),
        }
    }
}

impl Drop for PostgresCopy {
    fn drop(&mut self) {
        drop(self.wire.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
