//! One connection to the server, used from threads that may block.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

use super::failure::{Fault, sorted};

/// Statements kept prepared on a connection.
const PREPARED: usize = 256;

/// How much longer than the server's own statement limit its answer is awaited.
const GRACE: Duration = Duration::from_secs(2);

/// A connection with its prepared statements.
pub(super) struct Wire {
    pub(super) client: Arc<Client>,
    /// The driver's task; it ends with the connection, also when the server is silent.
    pub(super) driver: AbortHandle,
    pub(super) runtime: Handle,
    pub(super) server: Arc<str>,
    /// The server's process, and the name it knows this connection by.
    pub(super) backend: i32,
    pub(super) name: String,
    pub(super) prepared: HashMap<String, Statement>,
}

impl Wire {
    /// Runs `future` on the driver's runtime and waits for it, within `limit` and some grace.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        future: impl Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    ) -> Result<T, Fault> {
        match answer(&self.runtime, limit.saturating_add(GRACE), future) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(sorted(&self.server, &error, limit)),
            None => Err(Fault::Broken(format!("no answer within {} ms", limit.as_millis()))),
        }
    }

    /// Runs statements that take no parameters; answers their rows as text.
    pub(super) fn simple(
        &self,
        limit: Duration,
        sql: &str,
    ) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let client = self.client.clone();
        let sql = sql.to_owned();
        let messages = self.wait(limit, async move { client.simple_query(&sql).await })?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|index| row.get(index).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The prepared statement of `sql`, whose parameters are written `?1`.
    pub(super) fn prepared(&mut self, limit: Duration, sql: &str) -> Result<Statement, Fault> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let client = self.client.clone();
        let translated = super::sql::translated(sql);
        let statement = self.wait(limit, async move { client.prepare(&translated).await })?;
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Runs a future elsewhere and blocks this thread until it answers or `patience` is over.
pub(super) fn answer<T: Send + 'static>(
    runtime: &Handle,
    patience: Duration,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (send, receive) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        if let Ok(value) = tokio::time::timeout(patience, future).await {
            // The receiver waits below.
            let _ = send.send(value);
        }
    });
    receive.recv().ok()
}
