//! A proxy before PostgreSQL that loses connections, requests and answers on purpose.
//!
//! It listens on 127.0.0.1 and speaks to the server's Unix socket. It understands just enough of
//! the protocol to know a COMMIT from the client and the answer to it from the server.

use std::collections::HashMap;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::postgres::DATABASE;

mod connection;
mod frontend;
mod messages;
mod statements;

/// More than any test opens; beyond it connections are refused, so that a client that reconnects
/// without end fails the test and not the machine.
const MOST_CONNECTIONS: usize = 256;

/// What becomes of a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server commits and answers; the answer is swallowed and the connection closed.
    LoseAnswer,
    /// The connection is closed and the server never sees it.
    LoseRequest,
    /// The server commits; nothing passes on this connection any more, and nothing closes it.
    GoSilent,
}

/// A running proxy; ends with all its connections when it goes out of scope.
pub struct PgProxy {
    shared: Arc<Shared>,
    port: u16,
}

impl PgProxy {
    /// Starts a proxy before the server whose socket lies in this directory.
    pub fn start(socket_directory: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on this machine");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let shared = Arc::new(Shared {
            server: socket_directory.join(".s.PGSQL.5432"),
            plan: Mutex::new(None),
            commits: AtomicU64::new(0),
            happened: AtomicU64::new(0),
            down: AtomicBool::new(false),
            silences: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            live: Mutex::new(HashMap::new()),
            unheard: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { shared, port }
    }

    /// The URL of a schema through the proxy.
    pub fn url(&self, schema: &str) -> String {
        format!("{}?schema={schema}", self.admin_url())
    }

    /// The URL of the test database through the proxy, without a schema.
    pub fn admin_url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{DATABASE}", self.port)
    }

    /// Closes every live connection now, on both sides.
    pub fn cut(&self) {
        for (_, pair) in self.shared.live().drain() {
            pair.close();
        }
    }

    /// Refuses new connections from now on; the live ones stay.
    pub fn down(&self) {
        self.shared.down.store(true, Ordering::SeqCst);
    }

    /// Falls silent, like a network that drops everything: nothing passes on the live connections any
    /// more, now and later, and nothing closes them; new ones are made and hear nothing.
    pub fn silence(&self) {
        self.shared.silences.fetch_add(1, Ordering::SeqCst);
        self.shared.silent.store(true, Ordering::SeqCst);
    }

    /// Accepts new connections again, and serves them. Those that were made in silence are closed: on a
    /// network they would not have been made, but tried again.
    pub fn up(&self) {
        self.shared.down.store(false, Ordering::SeqCst);
        self.shared.silent.store(false, Ordering::SeqCst);
        lock(&self.shared.unheard).clear();
    }

    /// Decides over the n-th COMMIT from now, over all connections; 1 is the next. It replaces an
    /// earlier decision that has not been carried out.
    pub fn at_commit(&self, number: u64, fate: Fate) {
        assert!(number > 0, "COMMITs are counted from 1.");
        *lock(&self.shared.plan) = Some((number, fate));
    }

    /// How many COMMITs clients have sent.
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::SeqCst)
    }

    /// How many decisions have been carried out. For a lost answer and for silence that is when
    /// the server has answered: what it did is done.
    pub fn happened(&self) -> u64 {
        self.shared.happened.load(Ordering::SeqCst)
    }

    /// How many connections are live.
    pub fn connections(&self) -> usize {
        self.shared.live().len()
    }
}

impl Drop for PgProxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // A last connection wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.cut();
    }
}

/// What the threads of a proxy share.
struct Shared {
    server: PathBuf,
    plan: Mutex<Option<(u64, Fate)>>,
    commits: AtomicU64,
    happened: AtomicU64,
    down: AtomicBool,
    /// How many times it fell silent: a connection older than the last one passes nothing.
    silences: AtomicU64,
    silent: AtomicBool,
    ended: AtomicBool,
    live: Mutex<HashMap<u64, Pair>>,
    /// Connections that were made in silence, kept open.
    unheard: Mutex<Vec<TcpStream>>,
}

/// The two sides of a connection.
struct Pair {
    client: TcpStream,
    server: UnixStream,
}

impl Pair {
    fn close(&self) {
        // A side that is closed already is as good.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for (number, client) in (0_u64..).zip(listener.incoming()) {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let refused = self.down.load(Ordering::SeqCst) || self.live().len() >= MOST_CONNECTIONS;
            let Ok(client) = client else { continue };
            if refused {
                continue;
            }
            if self.silent.load(Ordering::SeqCst) {
                lock(&self.unheard).push(client);
                continue;
            }
            // A dead server looks to the client like a refused connection.
            if let Ok(server) = UnixStream::connect(&self.server) {
                connection::run(self, number, client, server);
            }
        }
    }

    /// Counts a COMMIT and says what was decided about it.
    fn count_commit(&self) -> Option<Fate> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        let mut plan = lock(&self.plan);
        match *plan {
            Some((1, fate)) => {
                *plan = None;
                Some(fate)
            }
            Some((number, fate)) => {
                *plan = Some((number - 1, fate));
                None
            }
            None => None,
        }
    }

    /// Whether it fell silent since a connection was made.
    fn silenced_since(&self, made: u64) -> bool {
        self.silences.load(Ordering::SeqCst) > made
    }

    fn live(&self) -> MutexGuard<'_, HashMap<u64, Pair>> {
        lock(&self.live)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
