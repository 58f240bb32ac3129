//! One connection: a thread for each direction.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;

use super::frontend::{Frontend, is_answered};
use super::messages::Message;
use super::{Fate, Pair, Shared, lock};

/// Codes in the place of a protocol version.
const CANCEL: [u8; 4] = 80_877_102_u32.to_be_bytes();
const ENCRYPTION: [[u8; 4]; 2] = [80_877_103_u32.to_be_bytes(), 80_877_104_u32.to_be_bytes()];

/// What the two directions know of each other.
#[derive(Default)]
struct Exchange {
    /// How many messages were sent that the server ends with "ready for query".
    requests: u64,
    /// How many times the proxy had fallen silent when it was made.
    made: u64,
    /// The request whose answer is lost, with all that comes after it.
    lost: Option<(u64, Fate)>,
}

/// Starts the two threads of a connection.
pub(super) fn run(shared: &Arc<Shared>, number: u64, client: TcpStream, server: UnixStream) {
    let clones = (client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone());
    let (Ok(to_client), Ok(to_server), Ok(kept_client), Ok(kept_server)) = clones else { return };
    // Answers are small and waited for.
    let _ = client.set_nodelay(true);
    shared.live().insert(number, Pair { client: kept_client, server: kept_server });
    let made = shared.silences.load(Ordering::SeqCst);
    let exchange = Arc::new(Mutex::new(Exchange { made, ..Exchange::default() }));

    let (upward, known) = (Arc::clone(shared), Arc::clone(&exchange));
    thread::spawn(move || {
        let ended = client_to_server(&upward, &known, client, to_server);
        // In silence nobody hears of the other's end.
        let known = lock(&known);
        let silent =
            matches!(known.lost, Some((_, Fate::GoSilent))) || upward.silenced_since(known.made);
        drop(known);
        if ended.is_err() && !silent {
            upward.close(number);
        }
    });
    let downward = Arc::clone(shared);
    thread::spawn(move || {
        let _ = server_to_client(&downward, &exchange, server, to_client);
        // Every end of the server's side is the end of the connection, except in silence.
        let made = lock(&exchange).made;
        if !downward.silenced_since(made) {
            downward.close(number);
        }
    });
}

impl Shared {
    fn close(&self, number: u64) {
        if let Some(pair) = self.live().remove(&number) {
            pair.close();
        }
    }
}

/// Passes the client's messages on until the connection ends, always with an error.
fn client_to_server(
    shared: &Shared,
    exchange: &Mutex<Exchange>,
    mut client: TcpStream,
    mut server: UnixStream,
) -> io::Result<()> {
    loop {
        let first = Message::read_first(&mut client)?;
        if ENCRYPTION.iter().any(|code| first.body() == code) {
            client.write_all(b"N")?;
            continue;
        }
        // The server answers the beginning, too, with "ready for query".
        lock(exchange).requests = u64::from(!first.body().starts_with(&CANCEL));
        server.write_all(first.bytes())?;
        break;
    }
    let mut frontend = Frontend::default();
    loop {
        let message = Message::read(&mut client)?;
        let made = lock(exchange).made;
        if shared.silenced_since(made) {
            return swallow(&mut client);
        }
        let fate = if frontend.commits(&message) { shared.count_commit() } else { None };
        if fate == Some(Fate::LoseRequest) {
            shared.happened.fetch_add(1, Ordering::SeqCst);
            return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
        }
        let mut known = lock(exchange);
        let answered = is_answered(&message);
        // The answer to an Execute comes with that to the next Sync.
        if let Some(fate) = fate {
            known.lost = Some((known.requests + 1, fate));
        }
        known.requests += u64::from(answered);
        // Known before it is sent: the answer must not come first.
        drop(known);
        server.write_all(message.bytes())?;
        if answered && is_silent(exchange) {
            return swallow(&mut client);
        }
    }
}

/// Says whether the request after which nothing passes any more has been sent.
fn is_silent(exchange: &Mutex<Exchange>) -> bool {
    let known = lock(exchange);
    matches!(known.lost, Some((request, Fate::GoSilent)) if known.requests >= request)
}

fn swallow(client: &mut TcpStream) -> io::Result<()> {
    io::copy(client, &mut io::sink()).map(drop)
}

/// Passes the server's messages on until the connection ends.
fn server_to_client(
    shared: &Shared,
    exchange: &Mutex<Exchange>,
    mut server: impl Read,
    mut client: TcpStream,
) -> io::Result<()> {
    let mut answers = 0;
    loop {
        let message = Message::read(&mut server)?;
        let Exchange { lost, made, .. } = *lock(exchange);
        if shared.silenced_since(made) {
            continue;
        }
        let swallowed = lost.is_some_and(|(request, _)| answers + 1 >= request);
        if !swallowed {
            client.write_all(message.bytes())?;
        }
        if message.kind() != b'Z' {
            continue;
        }
        answers += 1;
        match lost {
            Some((request, fate)) if answers == request => {
                shared.happened.fetch_add(1, Ordering::SeqCst);
                if fate == Fate::LoseAnswer {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}
