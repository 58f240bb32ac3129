//! A web server on loopback whose pages are scripted: honest, slow, endless, broken.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::model::http::{Framing, LAST_CHUNK, Request, chunk, head, header};
use crate::model::listener::{Connection, Handler, Listener, Next, Silence};

/// A running server; gone when it is dropped.
pub struct WebServer {
    shared: Arc<Shared>,
    listener: Listener,
}

/// A request that reached the server.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Such as `GET`.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// What was sent with it.
    pub body: Vec<u8>,
}

impl Visit {
    /// The value of a header; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Page {
    status: u16,
    headers: Vec<(String, String)>,
    body: Sent,
}

#[derive(Clone, Debug)]
enum Sent {
    Whole(Vec<u8>),
    /// The same bytes again and again, with pauses.
    Endless(Vec<u8>, Duration),
    /// Some bytes of more that are promised, then the end.
    Half(Vec<u8>),
    /// Not even a head.
    Nothing,
}

impl Page {
    /// A page of a content type.
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status: 200, headers, body: Sent::Whole(body.into()) }
    }

    /// A page of HTML.
    pub fn html(body: &str) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    /// JSON.
    pub fn json(body: &serde_json::Value) -> Self {
        Self::new("application/json", body.to_string())
    }

    /// A redirect.
    pub fn redirect(to: &str) -> Self {
        Self::new("text/plain", "elsewhere").status(302).with("location", to)
    }

    /// The same bytes again and again, with pauses between them, for ever.
    pub fn endless(piece: impl Into<Vec<u8>>, pause: Duration) -> Self {
        Self { body: Sent::Endless(piece.into(), pause), ..Self::new("text/plain", "") }
    }

    /// An answer that breaks off in the middle.
    pub fn half(body: impl Into<Vec<u8>>) -> Self {
        Self { body: Sent::Half(body.into()), ..Self::new("text/plain", "") }
    }

    /// No answer, for ever.
    pub fn silence() -> Self {
        Self { body: Sent::Nothing, ..Self::new("text/plain", "") }
    }

    /// With another status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// With a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

struct Shared {
    visits: Mutex<Vec<Visit>>,
    script: Box<dyn Fn(&Visit) -> Page + Send + Sync>,
}

impl Shared {
    fn visits(&self) -> MutexGuard<'_, Vec<Visit>> {
        self.visits.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl WebServer {
    /// A server whose answers follow a script.
    pub fn start(script: impl Fn(&Visit) -> Page + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared { visits: Mutex::default(), script: Box::new(script) });
        let listener = Listener::start(0, shared.clone());
        Self { shared, listener }
    }

    /// Its host and port, such as `127.0.0.1:4711`.
    pub fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// The address of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place())
    }

    /// All requests so far.
    pub fn visits(&self) -> Vec<Visit> {
        self.shared.visits().clone()
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.listener.open_connections()
    }
}

impl Handler for Shared {
    fn handle(&self, request: Request, connection: &mut Connection) -> io::Result<Next> {
        let Request { method, path, headers, body } = request;
        let visit = Visit { method, path, headers, body };
        self.visits().push(visit.clone());
        let Page { status, headers, body } = (self.script)(&visit);
        match body {
            Sent::Whole(bytes) => {
                connection.send(&head(status, &headers, Framing::Length(bytes.len())))?;
                connection.send(&bytes)?;
                Ok(Next::Keep)
            }
            Sent::Endless(piece, pause) => {
                connection.send(&head(status, &headers, Framing::Chunked))?;
                loop {
                    connection.send(&chunk(&piece))?;
                    if !pause.is_zero() && connection.silence(Some(pause))? == Silence::Gone {
                        // Whoever still listens reads a proper end.
                        let _ = connection.send(LAST_CHUNK);
                        return Ok(Next::Close);
                    }
                }
            }
            Sent::Half(bytes) => {
                connection.send(&head(status, &headers, Framing::Length(bytes.len() + 1000)))?;
                connection.send(&bytes)?;
                Ok(Next::Close)
            }
            Sent::Nothing => {
                connection.silence(None)?;
                Ok(Next::Close)
            }
        }
    }
}
