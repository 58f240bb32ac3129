//! One connection of an agent to a keeper.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mainstay_message::Redactor;
use mainstay_store::lock;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};

use super::endings::Ending;
use super::error::KeeperError;
use super::launch::Connection;
use super::one_way::one_way;
use crate::keeper::shared::gates::{self, Opener};
use crate::keeper::shared::protocol::{Asks, Incoming, Reply, Request, Says, Surroundings, frame};
use crate::keeper::shared::{BACKSTOP, Job};

/// One connection of an agent to a keeper.
pub(super) struct Link {
    pub(super) name: String,
    /// Woken only when there is something to read: with both ways each request would wake this
    /// process once more, when the keeper takes it in.
    stream: AsyncFd<UnixStream>,
    state: Mutex<State>,
    /// Something could not be sent at once.
    blocked: Notify,
    /// How many secrets the keeper was told.
    secrets: AtomicUsize,
    /// Whether an answer did not come in time, and nothing has come since.
    silent: AtomicBool,
    /// The keeper's directory, which stays as long as this does.
    _occupied: File,
}

#[derive(Default)]
struct State {
    outgoing: Vec<u8>,
    waiting: HashMap<u64, oneshot::Sender<Says>>,
    /// What the keeper was told of the surroundings of jobs.
    around: Surroundings,
    /// The job that it was last told to get ready.
    ready: Option<Prepared>,
    last: u64,
    closed: bool,
}

impl State {
    /// The number of the next request, and where its answer comes.
    fn expect(&mut self) -> (u64, oneshot::Receiver<Says>) {
        self.last += 1;
        let (sender, answer) = oneshot::channel();
        self.waiting.insert(self.last, sender);
        (self.last, answer)
    }
}

/// A job that a keeper has got ready, as far as its agent knows.
struct Prepared {
    key: String,
    opener: Opener,
    answer: oneshot::Receiver<Says>,
    /// How long the job may take.
    longest: Duration,
}

impl Link {
    /// Takes a connection over; `news` is called with what nobody asked for, `closed` at the end.
    pub(super) fn open(
        name: String,
        connection: Connection,
        news: impl Fn(Ending) + Send + 'static,
        closed: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let Connection { stream, occupied } = connection;
        stream.set_nonblocking(true)?;
        let stream = one_way(stream, Interest::READABLE)?;
        let link = Arc::new(Self {
            name,
            stream,
            state: Mutex::default(),
            blocked: Notify::new(),
            secrets: AtomicUsize::new(0),
            silent: AtomicBool::new(false),
            _occupied: occupied,
        });
        let reading = link.clone();
        tokio::spawn(async move {
            reading.converse(news).await;
            reading.close();
            closed();
        });
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.state().closed
    }

    /// Whether new jobs may go there.
    pub(super) fn is_well(&self) -> bool {
        self.is_open() && !self.is_silent()
    }

    /// Whether the keeper owes an answer whose time is over: it is stopped, or stuck.
    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Acquire)
    }

    /// Ends the connection; whoever waits learns of it.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        state.ready = None;
        let _ = rustix::net::shutdown(self.stream.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Sends a request whose answer nobody waits for. It works without waiting, so that what is
    /// dropped can say so.
    pub(super) fn tell(&self, asks: Asks) {
        let _ = self.send(&mut self.state(), &Request { number: 0, asks });
    }

    /// Has the keeper get a job ready that may be begun in a moment. Where that cannot be done at once,
    /// it is left.
    pub(super) fn prepare(&self, mut job: Job) {
        let mut state = self.state();
        state.ready = None;
        if state.closed || !state.outgoing.is_empty() {
            return;
        }
        let Ok((opener, gate)) = Opener::new() else { return };
        let key = job.key.clone();
        let longest = job.longest().unwrap_or(BACKSTOP);
        let around = state.around.shorten(&mut job);
        let (number, answer) = state.expect();
        let asks = Asks::Prepare { job: Box::new(job), around };
        let sent = frame(&Request { number, asks }).ok().and_then(|frame| {
            let sent = gates::send(self.stream.get_ref(), &frame, &gate).ok()?;
            self.keep(&mut state, &frame[sent..]);
            Some(())
        });
        if sent.is_none() {
            state.waiting.remove(&number);
            // It was not told what this job was to tell.
            state.around = Surroundings::default();
            return;
        }
        state.ready = Some(Prepared { key, opener, answer, longest });
    }

    /// Lets a job begin that the keeper was told last to get ready; what it says of it comes later, with
    /// `patience` beyond the time that the job may take. Returns `None` if there is no such job, or
    /// nobody waits for the word to begin any more.
    pub(super) fn begin(
        &self,
        key: &str,
        patience: Duration,
    ) -> Option<impl Future<Output = Result<Says, KeeperError>>> {
        let Prepared { opener, answer, longest, .. } =
            self.state().ready.take_if(|ready| ready.key == key)?;
        let limit = longest.saturating_add(patience);
        let answer = async { answer.await.map_err(|_| KeeperError::Lost) };
        opener.open().then_some(async move { self.within(limit, answer).await })
    }

    /// Tells the keeper the secrets that it does not know yet. What is asked later comes later; what was
    /// got ready would begin without that, and is let go.
    pub(super) fn tell_secrets(&self, redactor: &Redactor) {
        let count = redactor.count();
        if count > self.secrets.load(Ordering::Acquire) {
            let mut state = self.state();
            state.ready = None;
            let asks = Asks::Secrets { secrets: redactor.secrets() };
            let _ = self.send(&mut state, &Request { number: 0, asks });
            self.secrets.fetch_max(count, Ordering::Release);
        }
    }

    /// Sends a request and waits for the answer, but not longer than `limit`: a keeper that is stopped
    /// takes requests and says nothing.
    pub(super) async fn ask(&self, limit: Duration, asks: Asks) -> Result<Says, KeeperError> {
        self.within(limit, self.ask_at_length(asks)).await
    }

    async fn within(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<Says, KeeperError>>,
    ) -> Result<Says, KeeperError> {
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            self.silent.store(true, Ordering::Release);
            Err(KeeperError::Silent)
        })
    }

    /// Sends a request and waits for the answer, for whoever has a limit of its own.
    pub(super) async fn ask_at_length(&self, mut asks: Asks) -> Result<Says, KeeperError> {
        let answer = {
            let mut state = self.state();
            let (number, answer) = state.expect();
            if let Asks::Start { job, around } | Asks::Run { job, around } = &mut asks {
                *around = state.around.shorten(job);
            }
            if let Err(error) = self.send(&mut state, &Request { number, asks }) {
                state.waiting.remove(&number);
                // It may not have been told what this was to tell.
                state.around = Surroundings::default();
                return Err(error);
            }
            answer
        };
        answer.await.map_err(|_| KeeperError::Lost)
    }

    fn send(&self, state: &mut State, request: &Request) -> Result<(), KeeperError> {
        if state.closed {
            return Err(KeeperError::Lost);
        }
        let frame = frame(request).map_err(|error| {
            KeeperError::Refused(format!("Could not send the request to the keeper: {error}."))
        })?;
        let mut sent = 0;
        if state.outgoing.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(self.stream.get_ref(), &frame, flags) {
                Ok(length) => sent = length,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Err(KeeperError::Lost),
            }
        }
        self.keep(state, &frame[sent..]);
        Ok(())
    }

    /// Keeps what could not be sent at once until there is room.
    fn keep(&self, state: &mut State, rest: &[u8]) {
        state.outgoing.extend_from_slice(rest);
        if !state.outgoing.is_empty() {
            self.blocked.notify_one();
        }
    }

    /// Reads and writes until the connection ends.
    async fn converse(&self, news: impl Fn(Ending)) {
        let mut incoming = Incoming::default();
        let mut buffer = vec![0; 16 << 10];
        loop {
            let blocked = !self.state().outgoing.is_empty();
            tokio::select! {
                readable = self.stream.readable() => {
                    let Ok(mut ready) = readable else { return };
                    match ready.try_io(|stream| stream.get_ref().read(&mut buffer)) {
                        Ok(Ok(0)) => return,
                        Ok(Ok(length)) => {
                            incoming.push(&buffer[..length]);
                            if length < buffer.len() {
                                // That was all; what comes later is announced.
                                ready.clear_ready();
                            }
                        }
                        Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Ok(Err(_)) => return,
                        Err(_) => continue,
                    }
                }
                flushed = self.flush(), if blocked => {
                    if flushed.is_err() { return }
                }
                () = self.blocked.notified() => {}
            }
            loop {
                match incoming.next::<Reply>() {
                    Ok(Some(reply)) => self.receive(reply, &news),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    }

    /// Sends what could not be sent at once, when there is room.
    async fn flush(&self) -> io::Result<()> {
        let stream = self.stream.get_ref().try_clone()?;
        let stream = one_way(stream, Interest::WRITABLE)?;
        loop {
            let mut ready = stream.writable().await?;
            let mut state = self.state();
            if state.outgoing.is_empty() {
                return Ok(());
            }
            match ready.try_io(|stream| stream.get_ref().write(&state.outgoing)) {
                Ok(Ok(length)) => drop(state.outgoing.drain(..length)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn receive(&self, Reply { number, says }: Reply, news: &impl Fn(Ending)) {
        self.silent.store(false, Ordering::Release);
        if let Says::News { key, session, ended } = says {
            return news(Ending { key, session, keeper: self.name.clone(), ended: *ended });
        }
        if let Some(waiting) = self.state().waiting.remove(&number) {
            let _ = waiting.send(says);
        }
    }
}
