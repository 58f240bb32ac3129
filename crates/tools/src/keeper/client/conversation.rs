//! A process that the agent speaks with: its input and output are a connection of their own.
//!
//! The agent makes one more connection to the keeper's socket and lends it to the job that it is about
//! to start; the keeper gives it to the process and lets go of it. So the two speak without the keeper
//! in between: nothing is copied, whoever is slow holds the other up, and each sees the other's end.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::launch::connect;
use super::link::Link;
use crate::keeper::shared::protocol::{Asks, Incoming, Reply, Request, Says, frame};

/// A process that is spoken with.
pub struct Conversation {
    /// Its input and its output.
    pub stream: UnixStream,
    /// Keeps it alive.
    pub hold: Hold,
}

/// Keeps a process alive: when it is dropped, the keeper ends the process with all it started.
pub struct Hold {
    link: Arc<Link>,
    key: String,
}

impl Hold {
    pub(super) fn new(link: Arc<Link>, key: String) -> Self {
        Self { link, key }
    }

    /// The name of the process with its keeper.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.link.tell(Asks::Stop { key: std::mem::take(&mut self.key) });
    }
}

/// Makes a connection and lends it to the job with this key.
pub(super) async fn lend(directory: &Path, key: &str) -> io::Result<UnixStream> {
    let stream = connect(directory)?.stream;
    stream.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(stream)?;
    let request = Request { number: 1, asks: Asks::Lend { key: key.to_owned() } };
    stream.write_all(&frame(&request)?).await?;
    let mut incoming = Incoming::default();
    loop {
        if let Some(reply) = incoming.next::<Reply>()? {
            return match reply.says {
                Says::Done => Ok(stream),
                _ => Err(io::ErrorKind::InvalidData.into()),
            };
        }
        // Nothing follows the answer before the job is started, and that is asked for later.
        let mut piece = [0; 256];
        match stream.read(&mut piece).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => incoming.push(&piece[..length]),
        }
    }
}
