//! A listener with a thread for each connection, all gone when it is dropped.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use super::http::{Request, read_request};

/// More than any test opens; beyond it connections are closed at once, so that a client that
/// reconnects without end fails the test and not the machine.
const MOST_CONNECTIONS: usize = 256;

/// Answers the requests of all connections.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers one request; an error ends the connection.
    fn handle(&self, request: Request, connection: &mut Connection) -> io::Result<Next>;
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for the next request.
    Keep,
    /// It is closed in order.
    Close,
    /// It is reset: the client reads an error instead of an end.
    Reset,
}

/// How a silence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Its time is over.
    Over,
    /// The client went, or the server stops.
    Gone,
}

/// A running listener on 127.0.0.1.
pub(crate) struct Listener {
    shared: Arc<Shared>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens on a port; 0 is any free one.
    pub(crate) fn start(port: u16, handler: Arc<dyn Handler>) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", port))
            .unwrap_or_else(|error| panic!("Could not listen on port {port}: {error}."));
        let port = socket.local_addr().expect("a bound socket has an address").port();
        let shared = Arc::new(Shared::default());
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name(thread_name(port))
                .spawn(move || shared.accept(&socket, port, &handler))
                .expect("a thread can be started")
        };
        Self { shared, port, accepting: Some(accepting) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many connections are open now.
    pub(crate) fn open_connections(&self) -> usize {
        self.shared.state().live.len()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stopped = true;
            for stream in state.live.values() {
                // One that is closed already is as good.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.stopping.notify_all();
        // A last connection wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepting) = self.accepting.take() {
            // A panic there has been printed, and there is nothing left to stop.
            let _ = accepting.join();
        }
        let threads = std::mem::take(&mut self.shared.state().threads);
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The server's side of a connection.
pub(crate) struct Connection {
    /// Counted from 1, in the order in which they were accepted.
    pub(crate) number: u64,
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Connection {
    /// Writes bytes and sends them off at once.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Says nothing for a time, or for ever, until the client goes or the server stops.
    pub(crate) fn silence(&self, time: Option<Duration>) -> io::Result<Silence> {
        let end = time.map(|time| Instant::now() + time);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.stream.set_read_timeout(None)?;
                return Ok(Silence::Over);
            }
            self.stream.set_read_timeout(left)?;
            match self.stream.peek(&mut [0]) {
                Ok(0) => return Ok(Silence::Gone),
                // The next request is here before its time; its sender has not gone.
                Ok(_) => {
                    self.stream.set_read_timeout(None)?;
                    return Ok(self.shared.wait_for_stop(left));
                }
                Err(error) if is_timeout(&error) => {}
                Err(_) => return Ok(Silence::Gone),
            }
        }
    }
}

/// All threads of a listener have the same name, by which a test can count them.
fn thread_name(port: u16) -> String {
    format!("model:{port}")
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    stopping: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    live: HashMap<u64, TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn accept(self: &Arc<Self>, socket: &TcpListener, port: u16, handler: &Arc<dyn Handler>) {
        for (number, stream) in (1_u64..).zip(socket.incoming()) {
            let mut state = self.state();
            if state.stopped {
                return;
            }
            state.threads.retain(|thread| !thread.is_finished());
            let Ok(stream) = stream else { continue };
            if state.live.len() >= MOST_CONNECTIONS {
                continue;
            }
            let Ok(handle) = stream.try_clone() else { continue };
            // Events leave when they are written, not when the next one is.
            let _ = stream.set_nodelay(true);
            state.live.insert(number, handle);
            let connection = Connection { number, stream, shared: Arc::clone(self) };
            let handler = Arc::clone(handler);
            let thread = thread::Builder::new()
                .name(thread_name(port))
                .spawn(move || serve(connection, &*handler));
            match thread {
                Ok(thread) => state.threads.push(thread),
                Err(_) => drop(state.live.remove(&number)),
            }
        }
    }

    fn wait_for_stop(&self, time: Option<Duration>) -> Silence {
        let time = time.unwrap_or(Duration::MAX);
        let (state, _) = self
            .stopping
            .wait_timeout_while(self.state(), time, |state| !state.stopped)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.stopped { Silence::Gone } else { Silence::Over }
    }
}

/// Answers requests on a connection until one side ends it.
fn serve(mut connection: Connection, handler: &dyn Handler) {
    let next = answer_all(&mut connection, handler).unwrap_or(Next::Close);
    match next {
        Next::Reset => {
            let _ = set_socket_linger(&connection.stream, Some(Duration::ZERO));
        }
        Next::Keep | Next::Close => {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
    }
    // The last handles: what is closed is closed, and a reset is sent now.
    let Connection { number, stream, shared } = connection;
    drop(stream);
    shared.state().live.remove(&number);
}

fn answer_all(connection: &mut Connection, handler: &dyn Handler) -> io::Result<Next> {
    let mut reader = BufReader::with_capacity(64 << 10, connection.stream.try_clone()?);
    while let Some(request) = read_request(&mut reader)? {
        let close = request.header("connection").is_some_and(|how| how.contains("close"));
        match handler.handle(request, connection)? {
            Next::Keep if !close => {}
            Next::Keep | Next::Close => return Ok(Next::Close),
            Next::Reset => return Ok(Next::Reset),
        }
    }
    Ok(Next::Close)
}
