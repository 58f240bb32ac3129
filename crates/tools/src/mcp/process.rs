//! A server that is a program under the keeper.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use mainstay_store::Id;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::client::LONGEST_MESSAGE;
use crate::Keeper;
use crate::keeper::{self, Conversation, Ended, Hold, Job, Limits, Streams};

/// The most that a server may say between two questions.
const MOST_UNASKED: u64 = 4 * LONGEST_MESSAGE as u64;
/// How much of what it complains of is kept, and how much of that is told.
const COMPLAINTS: u64 = 32 << 10;
const TOLD: usize = 300;
/// How long it is waited for the end of a server that hung up.
const PARTING: Duration = Duration::from_secs(1);

/// A server that is a program.
#[derive(Clone, Debug)]
pub struct Program {
    /// What runs.
    pub program: keeper::Program,
    /// The directory it runs in.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
}

/// A server that was started.
pub(super) struct Started {
    pub(super) transport: AsyncRwTransport<RoleClient, Ear, OwnedWriteHalf>,
    pub(super) patience: Patience,
    /// The other hold on it is the transport's.
    pub(super) hold: Arc<Hold>,
}

/// How much a server may still say until it is asked again.
#[derive(Clone)]
pub(super) struct Patience(Arc<AtomicU64>);

impl Patience {
    pub(super) fn renew(&self) {
        self.0.store(MOST_UNASKED, Ordering::Relaxed);
    }
}

/// Starts a server. It ends when nobody holds it.
pub(super) async fn start(program: &Program, keeper: &Keeper) -> Result<Started, String> {
    let name = keeper.name().await.map_err(|error| error.to_string())?;
    let key = format!("mcp-{}", Id::new());
    let job = Job {
        // It belongs to this process, not to a conversation.
        session: key.clone(),
        key,
        program: program.program.clone(),
        directory: program.directory.clone(),
        environment: program.environment.clone(),
        limits: Limits { wall: None, idle: None, output: Some(COMPLAINTS) },
        input: false,
        given: None,
        streams: Streams::Lent,
        background: false,
        // It is the user's own.
        sandbox: None,
    };
    let started = keeper.converse(&name, &job).await.map_err(|error| error.to_string())?;
    let Conversation { stream, hold } = started;
    let (reads, writes) = stream.into_split();
    let patience = Patience(Arc::new(AtomicU64::new(MOST_UNASKED)));
    let hold = Arc::new(hold);
    let ear = Ear { reads, patience: patience.clone(), _hold: hold.clone() };
    let transport = AsyncRwTransport::new(ear, writes).with_max_line_length(LONGEST_MESSAGE);
    Ok(Started { transport, patience, hold })
}

/// How a server ended that hung up, in a clause. Returns `None` if it does not end by itself.
pub(super) async fn ending(keeper: &Keeper, hold: &Hold) -> Option<String> {
    let ended = tokio::time::timeout(PARTING, keeper.watch(hold.key())).await.ok()?.ok()?;
    Some(ending_clause(&ended))
}

fn ending_clause(ended: &Ended) -> String {
    let text = ended.output.text();
    let complaint = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    if let Some(file) = &ended.output.file {
        // Nobody else reads it.
        let _ = std::fs::remove_file(file);
    }
    match complaint {
        None => format!("it ended ({})", ended.how),
        Some(line) => {
            let line: String = line.chars().take(TOLD).collect();
            format!("it ended ({}): {line}", ended.how)
        }
    }
}

/// What a server says, as far as there is patience. It is dropped with the transport, and the process
/// goes with it.
pub(super) struct Ear {
    reads: OwnedReadHalf,
    patience: Patience,
    _hold: Arc<Hold>,
}

impl AsyncRead for Ear {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.reads).poll_read(context, buffer))?;
        let heard = (buffer.filled().len() - before) as u64;
        let left = self.patience.0.load(Ordering::Relaxed);
        if heard > left {
            return Poll::Ready(Err(io::Error::other("it sent more than was asked for")));
        }
        self.patience.0.store(left - heard, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}
