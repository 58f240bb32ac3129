//! The server: reads, judges, asks the script, sends.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::check;
use super::delivery::Delivery;
use super::http::Request;
use super::listener::{Connection, Handler, Listener, Next};
use super::render::{Occasion, render};
use super::{Catalogue, ModelRequest, Replies, Reply, Script, Shape};
use crate::process::wait_for;

/// A running server; stops, and joins its threads, when it is dropped.
///
/// A request that a real server would refuse is refused with 400 and recorded. Dropping the server
/// panics when there is such a record that nobody has looked at.
pub struct ModelServer {
    listener: Option<Listener>,
    port: u16,
    shared: Arc<Shared>,
}

impl ModelServer {
    /// Starts a server on any free port.
    pub fn start(script: impl Script) -> Self {
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            // A client that comes back to a later server must not meet the ids of an earlier one.
            run: fastrand::u32(..),
            log: Mutex::new(Log::default()),
            unseen: AtomicU64::new(0),
        });
        let listener = Listener::start(0, Arc::clone(&shared) as Arc<dyn Handler>);
        Self { port: listener.port(), listener: Some(listener), shared }
    }

    /// Starts a server whose answers a closure decides by what was asked.
    pub fn answering(script: impl FnMut(&ModelRequest) -> Reply + Send + 'static) -> Self {
        Self::start(script)
    }

    /// Starts a server with a list of answers; a request after the last one gets a 500.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(Replies::new(replies))
    }

    /// Starts a server that gives the same answer each time.
    pub fn always(reply: Reply) -> Self {
        Self::answering(move |_| reply.clone())
    }

    /// Says from now on which models there are, in the words of some server.
    pub fn offer(&self, catalogue: Catalogue) {
        self.shared.log().catalogue = catalogue;
    }

    /// What was asked so far besides models' words, each as `GET /v1/models`.
    pub fn looked(&self) -> Vec<String> {
        self.shared.log().looked.clone()
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The base URL that a client of a shape is configured with.
    pub fn base_url(&self, shape: Shape) -> String {
        format!("{}{}", self.url(), shape.base_path())
    }

    /// The requests so far, those that were refused included.
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.shared.log().asked.clone()
    }

    /// How many requests there were so far.
    pub fn requests(&self) -> usize {
        self.shared.log().asked.len()
    }

    /// What was wrong with the requests so far, in the words of a strict provider, and what went
    /// wrong in the script.
    pub fn violations(&self) -> Vec<String> {
        self.shared.unseen.store(0, Ordering::SeqCst);
        self.shared.log().violations.clone()
    }

    /// Panics with all violations, if there are any.
    #[track_caller]
    pub fn assert_no_violations(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "The client sent what it must not:\n{violations:#?}");
    }

    /// Waits until there were so many requests and returns them all; panics at the deadline.
    pub fn wait_for_requests(&self, requests: usize, deadline: Duration) -> Vec<ModelRequest> {
        wait_for(&format!("{requests} requests"), deadline, || self.requests() >= requests);
        self.asked()
    }

    /// How many connections are open now.
    pub fn open_connections(&self) -> usize {
        self.listener.as_ref().map_or(0, Listener::open_connections)
    }

    /// Waits until no connection is open: every client has gone, or let go of what it asked.
    pub fn wait_for_no_connections(&self, deadline: Duration) {
        wait_for("no open connection", deadline, || self.open_connections() == 0);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.listener = None;
        if self.shared.unseen.load(Ordering::SeqCst) > 0 && !thread::panicking() {
            self.assert_no_violations();
        }
    }
}

struct Shared {
    script: Mutex<Box<dyn Script>>,
    run: u32,
    log: Mutex<Log>,
    unseen: AtomicU64,
}

#[derive(Default)]
struct Log {
    catalogue: Catalogue,
    looked: Vec<String>,
    asked: Vec<ModelRequest>,
    violations: Vec<String>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Writes a request down, and says what is wrong with it.
    fn record(
        &self,
        request: &Request,
        shape: Shape,
        connection: u64,
    ) -> (ModelRequest, Option<String>) {
        let at = Instant::now();
        let body: Result<Value, _> = serde_json::from_slice(&request.body);
        let violations = match &body {
            Ok(body) => check::request(shape, &request.headers, body),
            Err(error) => Err(vec![format!("The body is not valid JSON: {error}")]),
        };
        let violations = violations.err().unwrap_or_default();
        let mut log = self.log();
        let asked = ModelRequest {
            number: log.asked.len() as u64 + 1,
            at,
            connection,
            shape,
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: Arc::new(body.unwrap_or_default()),
            bytes: request.body.len(),
        };
        log.asked.push(asked.clone());
        let number = asked.number;
        for words in &violations {
            log.violations.push(format!("request {number} ({shape}): {words}"));
        }
        self.unseen.fetch_add(violations.len() as u64, Ordering::SeqCst);
        (asked, violations.into_iter().next())
    }

    /// Asks the script. A panic of it is a violation like another, and an error of the server.
    fn decide(&self, asked: &ModelRequest) -> Reply {
        let decide = || {
            let mut script = self.script.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let reply = script.reply(asked);
            reply.delivery.assert_possible(reply.events(asked.shape));
            reply
        };
        catch_unwind(AssertUnwindSafe(decide)).unwrap_or_else(|panic| {
            let words = format!("The script failed: {}", panic_words(&*panic));
            self.log().violations.push(format!("request {}: {words}", asked.number));
            self.unseen.fetch_add(1, Ordering::SeqCst);
            Reply::status(500, words)
        })
    }
}

impl Handler for Shared {
    fn handle(&self, request: Request, connection: &mut Connection) -> io::Result<Next> {
        let path = request.path.split('?').next().unwrap_or_default();
        let shape = Shape::of_path(path).filter(|_| request.method == "POST");
        let Some(shape) = shape else {
            let answer = {
                let mut log = self.log();
                log.looked.push(format!("{} {}", request.method, request.path));
                log.catalogue.answer(&request)
            };
            return Delivery::default().send(answer, Shape::Chat, connection);
        };
        let (asked, refused) = self.record(&request, shape, connection.number);
        let reply = match refused {
            Some(words) => Reply::status(400, words),
            None => self.decide(&asked),
        };
        let tag = format!("{:08x}{:04x}", self.run, asked.number);
        let occasion = Occasion::of(&asked.body, tag, asked.number, asked.bytes);
        reply.delivery.send(render(&reply, shape, &occasion), shape, connection)
    }
}

fn panic_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked.")
}
