//! The server's address, and how it is reached.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::poll_fn;
use futures_util::stream::BoxStream;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::runtime::Handle;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use super::failure::{Fault, connecting};
use super::wire::{Wire, answer};
use crate::clock::Deadline;
use crate::store::Limits;
use crate::{Error, Id, Result};

/// One attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(5);
/// A peer that acknowledges nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(15);

/// Where and how to connect.
#[derive(Clone)]
pub(super) struct Server {
    config: Config,
    schema: String,
    /// Tells this store's connections from those of others.
    key: String,
    names: Arc<AtomicU64>,
    /// Host and port, for people.
    pub(super) address: Arc<str>,
    tls: Option<MakeRustlsConnect>,
    pub(super) limits: Limits,
    runtime: Handle,
}

/// What a connection hears besides its answers.
pub(super) type Messages = BoxStream<'static, AsyncMessage>;

impl Server {
    pub(super) fn new(url: &Url, schema: &str, limits: Limits, runtime: Handle) -> Result<Self> {
        let mut config: Config =
            url.as_str().parse().map_err(|error| Error::BadAddress(format!("{error}")))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(ATTEMPT);
        }
        config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let off = config.get_ssl_mode() == tokio_postgres::config::SslMode::Disable;
        let tls = if local || off { None } else { Some(platform_tls()?) };
        let address = address(&config).into();
        // The end of an id is its random part.
        let key = Id::new().as_str()[12..].to_owned();
        let schema = schema.to_owned();
        let names = Arc::default();
        Ok(Self { config, schema, key, names, address, tls, limits, runtime })
    }

    /// A name for the next connection, by which the server tells it from all others.
    pub(super) fn next_name(&self) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        format!("mainstay {} {}-{number}", self.schema, self.key)
    }

    /// Everybody else who has the store open.
    pub(super) fn others(&self, wire: &Wire) -> Result<Vec<String>> {
        let rows = self.run(
            wire,
            &format!(
                "SELECT DISTINCT coalesce(host(client_addr), 'this host') || ' ' ||
                     split_part(split_part(application_name, ' ', 3), '-', 1)
                 FROM pg_catalog.pg_stat_activity
                 WHERE starts_with(application_name, 'mainstay {schema} ')
                     AND NOT starts_with(application_name, 'mainstay {schema} {key}-')
                 ORDER BY 1",
                schema = self.schema,
                key = self.key
            ),
        )?;
        let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        Ok(names.map(|name| format!("a client on {name}")).collect())
    }

    /// Runs statements for upkeep, which may take long.
    pub(super) fn run(&self, wire: &Wire, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        wire.simple(super::UNLIMITED, sql).map_err(|fault| match fault {
            Fault::Refused(error) => error,
            Fault::Lost => Error::Statement("it lost against another transaction".to_owned()),
            Fault::Broken(detail) => {
                Error::Unreachable { server: self.address.to_string(), detail }
            }
        })
    }

    /// Connects, trying again after passing failures until the deadline.
    pub(super) fn connect(&self, deadline: Deadline) -> Result<Wire> {
        let mut pause = Duration::from_millis(20);
        loop {
            let server = self.clone();
            let name = self.next_name();
            let opened = {
                let name = name.clone();
                answer(&self.runtime, ATTEMPT * 2, async move { server.open(&name).await })
            };
            let problem = match opened {
                Some(Ok((client, mut messages, backend))) => {
                    let driver =
                        self.runtime.spawn(async move { while messages.next().await.is_some() {} });
                    return Ok(Wire {
                        client: Arc::new(client),
                        driver: driver.abort_handle(),
                        runtime: self.runtime.clone(),
                        server: self.address.clone(),
                        backend,
                        name,
                        prepared: HashMap::new(),
                    });
                }
                Some(Err(error)) => connecting(&self.address, &error)?,
                None => Error::Unreachable {
                    server: self.address.to_string(),
                    detail: "it does not answer".to_owned(),
                },
            };
            if deadline.left() < pause {
                return Err(problem);
            }
            // Full jitter, so that many clients do not come back in step.
            std::thread::sleep(pause.mul_f64(fastrand::f64()));
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Opens one connection and sets it up.
    pub(super) async fn open(
        &self,
        name: &str,
    ) -> Result<(Client, Messages, i32), tokio_postgres::Error> {
        let mut config = self.config.clone();
        config.application_name(name);
        let (client, mut messages) = match &self.tls {
            Some(tls) => dialled(&config, tls.clone()).await?,
            None => dialled(&config, NoTls).await?,
        };
        let settings = format!(
            "SET standard_conforming_strings = on;
             SET search_path = {schema};
             SET synchronous_commit = on;
             SET default_transaction_isolation = 'read committed';
             SET statement_timeout = {limit};
             SET lock_timeout = {limit};
             SET idle_in_transaction_session_timeout = {idle};
             SET client_min_messages = warning;",
            schema = self.schema,
            limit = self.limits.write.as_millis(),
            // A client that was stopped inside a transaction must not hold others up for long.
            idle = self.limits.write.as_millis(),
        );
        let backend = set_up(&client, &settings, &mut messages).await?;
        Ok((client, messages, backend))
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }
}

/// Runs the first statements. Answers arrive only while the connection is polled.
async fn set_up(
    client: &Client,
    settings: &str,
    messages: &mut Messages,
) -> Result<i32, tokio_postgres::Error> {
    let mut setup = std::pin::pin!(async {
        client.batch_execute(settings).await?;
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await?;
        Ok(row.get(0))
    });
    loop {
        tokio::select! {
            outcome = &mut setup => return outcome,
            message = messages.next() => if message.is_none() {
                // The setup fails now that the connection has.
                return setup.await;
            },
        }
    }
}

async fn dialled<T>(config: &Config, tls: T) -> Result<(Client, Messages), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    let messages = futures_util::stream::unfold(connection, |mut connection| async move {
        let message = poll_fn(|context| connection.poll_message(context)).await;
        // An error ends the connection; those who wait on the client learn of it there.
        Some((message?.ok()?, connection))
    });
    Ok((client, messages.boxed()))
}

/// TLS that trusts what the operating system trusts.
fn platform_tls() -> Result<MakeRustlsConnect> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::Io(format!("could not load the system's certificates: {error}"))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| failed(&error))?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn address(config: &Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| match host {
        Host::Tcp(host) => {
            let ports = config.get_ports();
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            format!("{host}:{port}")
        }
        Host::Unix(path) => path.display().to_string(),
    });
    hosts.collect::<Vec<_>>().join(", ")
}
