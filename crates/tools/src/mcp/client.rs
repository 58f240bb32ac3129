//! The client: one connection at a time, made when it is needed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mainstay_message::first_cause;
use rmcp::ServiceError;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, serve_client};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::process::Patience;
use super::{Answer, McpError, Server, Tool, http, process};
use crate::Keeper;

/// The longest message that a server may send: 4 MiB.
pub(super) const LONGEST_MESSAGE: usize = 4 << 20;
/// How long a server that failed is left alone at first, and at most.
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// A connection that lived so long was a good one.
const PROVEN: Duration = Duration::from_secs(30);
/// How many tools of a server are listed.
const MOST_TOOLS: usize = 1_000;
/// How much of what a server says of an error is told.
const TOLD: usize = 500;

/// How long a server may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// To be there: started, connected, greeted.
    pub start: Duration,
    /// To answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { start: Duration::from_secs(30), answer: Duration::from_secs(60) }
    }
}

/// A client of one server. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    parts: Arc<Parts>,
}

struct Parts {
    server: Server,
    keeper: Keeper,
    limits: Limits,
    /// Held while a connection is made, so that there is one.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// When it may be tried again, and how it failed.
    rest: Option<(Instant, String)>,
    failures: u32,
}

/// A connection. The server of its own goes with it.
struct Connection {
    running: RunningService<RoleClient, ()>,
    /// What a program may say; a service only answers.
    patience: Option<Patience>,
    since: Instant,
}

impl Client {
    /// A client of a server, which nobody contacts yet.
    pub fn new(server: Server, keeper: Keeper, limits: Limits) -> Self {
        Self { parts: Arc::new(Parts { server, keeper, limits, state: Mutex::default() }) }
    }

    /// The tools that the server has.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, McpError> {
        let connection = self.connection().await?;
        let listing = async {
            let mut tools = Vec::new();
            let mut cursor = None;
            loop {
                let mut params = rmcp::model::PaginatedRequestParams::default();
                params.cursor = cursor;
                let page = connection.running.peer().list_tools(Some(params)).await?;
                tools.extend(page.tools.into_iter().map(Tool::from));
                cursor = page.next_cursor;
                if cursor.is_none() || tools.len() >= MOST_TOOLS {
                    return Ok(tools);
                }
            }
        };
        self.in_time(&connection, listing).await
    }

    /// Calls a tool, once. It is not called again when the server goes away meanwhile: nobody knows
    /// what it did.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Answer, McpError> {
        let connection = self.connection().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = connection.running.call_tool(params);
        Ok(Answer::from(self.in_time(&connection, called).await?))
    }

    /// Lets the server go. A program is ended; the next question starts it anew.
    pub async fn reset(&self) {
        // Whoever still waits for an answer holds the connection too, and learns that it is closed.
        if let Some(connection) = self.parts.state.lock().await.connection.take() {
            connection.running.cancellation_token().cancel();
        }
    }

    async fn in_time<T>(
        &self,
        connection: &Arc<Connection>,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, McpError> {
        let limit = self.parts.limits.answer;
        let answer = timeout(limit, asked).await.map_err(|_| McpError::Late(limit))?;
        let answer = answer.map_err(refused);
        if matches!(answer, Err(McpError::Gone)) {
            self.parts.state.lock().await.lost(connection);
        }
        answer
    }

    /// The connection; it is made where there is none.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let Parts { limits, state, .. } = &*self.parts;
        let mut state = state.lock().await;
        if let Some(connection) = state.connection.clone() {
            if !connection.running.is_closed() {
                if let Some(patience) = &connection.patience {
                    patience.renew();
                }
                return Ok(connection);
            }
            state.lost(&connection);
        }
        if let Some((until, why)) = &state.rest
            && let Some(again) = until.checked_duration_since(Instant::now())
            && !again.is_zero()
        {
            return Err(McpError::Resting { again, why: why.clone() });
        }
        let made = timeout(limits.start, self.connect()).await;
        match made.unwrap_or_else(|_| Err(McpError::Late(limits.start))) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                state.failed(error.to_string());
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<Connection, McpError> {
        let Parts { server, keeper, .. } = &*self.parts;
        let (running, patience) = match server {
            Server::Program(program) => {
                let started = process::start(program, keeper).await;
                let started = started.map_err(McpError::Unreachable)?;
                let served = serve_client((), started.transport).await;
                let running = match served {
                    Ok(running) => running,
                    Err(error) => {
                        // One that could not be spoken with mostly says why where nobody listens.
                        let ending = process::ending(keeper, &started.hold).await;
                        let words = ending.unwrap_or_else(|| unwelcome(&error));
                        return Err(McpError::Unreachable(words));
                    }
                };
                (running, Some(started.patience))
            }
            Server::Service(service) => {
                let transport = http::transport(service).map_err(McpError::Unreachable)?;
                let served = serve_client((), transport).await;
                (served.map_err(|error| McpError::Unreachable(unwelcome(&error)))?, None)
            }
        };
        Ok(Connection { running, patience, since: Instant::now() })
    }
}

impl State {
    /// Forgets a connection that ended, unless there is another one already.
    fn lost(&mut self, connection: &Arc<Connection>) {
        if !self.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            return;
        }
        self.connection = None;
        if connection.since.elapsed() >= PROVEN {
            self.failures = 0;
            self.rest = None;
        } else {
            self.failed("it exited soon after it was started".to_owned());
        }
    }

    fn failed(&mut self, why: String) {
        let rest = REST.saturating_mul(1 << self.failures.min(6)).min(LONGEST_REST);
        self.failures += 1;
        self.rest = Some((Instant::now() + rest, why));
    }
}

fn refused(error: ServiceError) -> McpError {
    match error {
        ServiceError::McpError(error) => McpError::Refused(short(&error.message)),
        ServiceError::TransportClosed => McpError::Gone,
        ServiceError::TransportSend(error) => {
            McpError::Unreachable(short(&first_cause_text(&*error.error)))
        }
        ServiceError::UnexpectedResponse => {
            McpError::Refused("something that is not an answer to the request".to_owned())
        }
        error => McpError::Refused(short(&error.to_string())),
    }
}

/// Why a server could not be greeted.
fn unwelcome(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during initialization".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => {
            format!("could not reach it: {}", short(&first_cause_text(&*error.error)))
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it answered with an error: {}", short(&error.message))
        }
        _ => "it does not speak the protocol".to_owned(),
    }
}

/// The first cause: what is around it names types and steps.
fn first_cause_text(error: &(dyn std::error::Error + 'static)) -> String {
    let error = first_cause(error);
    http::broken_text(error).unwrap_or_else(|| error.to_string())
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(TOLD).collect()
}
