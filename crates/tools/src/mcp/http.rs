//! A server that is reached by HTTP.
//!
//! `rmcp` drives the exchange; the requests are made here, so that they go through the one client of
//! all tools and nothing is read without a bound. The stream on which a server may speak unasked is
//! never opened: nobody here would listen.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use mainstay_message::causes;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use super::client::LONGEST_MESSAGE;
use crate::Web;

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How much of a refusal is told.
const TOLD: usize = 300;

/// A server that is reached by HTTP.
#[derive(Clone)]
pub struct Service {
    url: Url,
    /// What every request carries besides.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The way there.
    web: Web,
}

impl Service {
    /// A server at an address, reached this way, with headers for every request. The error is the name
    /// of a header that cannot be sent.
    pub fn new<'h>(
        url: Url,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        web: Web,
    ) -> Result<Self, String> {
        let headers = headers.into_iter().map(|(name, value)| {
            let read = name.parse().ok().zip(value.parse().ok());
            read.ok_or_else(|| name.to_owned())
        });
        Ok(Self { url, headers: headers.collect::<Result<_, _>>()?, web })
    }

    /// Its address, without what may be secret in it.
    pub fn address(&self) -> String {
        let mut url = self.url.clone();
        // Both fail only for addresses that cannot carry them.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.to_string()
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers hold keys.
        formatter.debug_struct("Service").field("url", &self.address()).finish_non_exhaustive()
    }
}

/// A connection that is made with the first message.
pub(super) fn transport(
    service: &Service,
) -> Result<StreamableHttpClientTransport<Requests>, String> {
    let client = service.web.trusted(&service.url)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(service.url.as_str());
    config.custom_headers = service.headers.iter().cloned().collect();
    config.max_sse_event_size = LONGEST_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(Requests(client), config))
}

/// Makes the requests.
#[derive(Clone)]
pub(super) struct Requests(reqwest::Client);

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(String);

type Failed = StreamableHttpError<Broken>;

fn broken(words: impl Into<String>) -> Failed {
    StreamableHttpError::Client(Broken(words.into()))
}

/// The words of an error that was made here, without those that are put around it.
pub(super) fn broken_text(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    match error.downcast_ref::<Failed>()? {
        StreamableHttpError::Client(Broken(words)) => Some(words.clone()),
        _ => None,
    }
}

impl StreamableHttpClient for Requests {
    type Error = Broken;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = self
            .0
            .post(uri.as_ref())
            .header(ACCEPT, [JSON, EVENTS].join(", "))
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(&message)?);
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        let in_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(SESSION, session.as_ref());
        }
        let response = request.send().await.map_err(|error| broken(causes(&error)))?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let session = header(SESSION);
        let kind = header("content-type").unwrap_or_default();
        if status.is_success() && kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let body = body(response).await?;
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            // What is refused may say why in the protocol's own words.
            Ok(said @ ServerJsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(said, session))
            }
            _ if !status.is_success() => Err(broken(refusal(status, &body))),
            Ok(said) => Ok(StreamableHttpPostResponse::Json(said, session)),
            Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(broken("its answer is not a valid message of the protocol")),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let mut request = self.0.delete(uri.as_ref()).header(SESSION, session_id.as_ref());
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        // One that keeps its sessions to itself ends them itself.
        request.send().await.map(drop).map_err(|error| broken(causes(&error)))
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// An answer that comes as a stream of events, up to the bound.
fn events(response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut room = LONGEST_MESSAGE;
    let bytes = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| Broken(causes(&error)))?;
        room = room.checked_sub(piece.len()).ok_or_else(too_long)?;
        Ok::<_, Broken>(piece)
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

async fn body(mut response: reqwest::Response) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| broken(causes(&error)))? {
        if body.len() + piece.len() > LONGEST_MESSAGE {
            return Err(StreamableHttpError::Client(too_long()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn too_long() -> Broken {
    Broken(format!("its answer is larger than {} MiB", LONGEST_MESSAGE >> 20))
}

fn refusal(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(TOLD).collect();
    if line.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {line}") }
}
