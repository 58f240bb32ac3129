//! One connection of an agent to a keeper.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_message::Redactor;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, oneshot};

use super::client::Ending;
use super::error::KeeperError;
use super::job::Job;
use super::protocol::{Asks, Incoming, Reply, Request, Says, Surroundings, frame};
use super::syscalls::one_way;

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
}

#[derive(Default)]
struct State {
    outgoing: Vec<u8>,
    waiting: HashMap<u64, oneshot::Sender<Says>>,
    /// What the keeper was told of the surroundings of jobs.
    around: Surroundings,
    /// The key of the job that it was last told to get ready.
    ready: Option<String>,
    last: u64,
    closed: bool,
}

impl Link {
    /// Takes a connection over; `news` is called with what nobody asked for, `closed` at the end.
    pub(super) fn open(
        name: String,
        stream: UnixStream,
        news: impl Fn(Ending) + Send + 'static,
        closed: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        stream.set_nonblocking(true)?;
        let stream = one_way(stream, Interest::READABLE)?;
        let link = Arc::new(Self {
            name,
            stream,
            state: Mutex::default(),
            blocked: Notify::new(),
            secrets: AtomicUsize::new(0),
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.state().closed
    }

    /// Ends the connection; whoever waits learns of it.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
        let _ = rustix::net::shutdown(self.stream.get_ref(), rustix::net::Shutdown::Both);
    }

    /// Sends a request whose answer nobody waits for. It works without waiting, so that what is
    /// dropped can say so.
    pub(super) fn tell(&self, asks: Asks) {
        let _ = self.send(&mut self.state(), &Request { number: 0, asks });
    }

    /// Has the keeper get a job ready that may be begun in a moment.
    pub(super) fn prepare(&self, mut job: Job) {
        let mut state = self.state();
        let around = state.around.shorten(&mut job);
        let key = job.key.clone();
        let asks = Asks::Prepare { job: Box::new(job), around };
        state.ready = self.send(&mut state, &Request { number: 0, asks }).is_ok().then_some(key);
    }

    /// Whether the keeper was told last to get this job ready; it is asked once.
    pub(super) fn was_prepared(&self, key: &str) -> bool {
        self.state().ready.take_if(|ready| ready == key).is_some()
    }

    /// Tells the keeper the secrets that it does not know yet. What is asked later comes later.
    pub(super) fn tell_secrets(&self, redactor: &Redactor) {
        let count = redactor.count();
        if count > self.secrets.swap(count, Ordering::Relaxed) {
            self.tell(Asks::Secrets { secrets: redactor.secrets() });
        }
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn ask(&self, mut asks: Asks) -> Result<Says, KeeperError> {
        let answer = {
            let mut state = self.state();
            state.last += 1;
            let number = state.last;
            if let Asks::Start { job, around } | Asks::Run { job, around } = &mut asks {
                *around = state.around.shorten(job);
            }
            self.send(&mut state, &Request { number, asks })?;
            let (sender, answer) = oneshot::channel();
            state.waiting.insert(number, sender);
            answer
        };
        answer.await.map_err(|_| KeeperError::Lost)
    }

    fn send(&self, state: &mut State, request: &Request) -> Result<(), KeeperError> {
        if state.closed {
            return Err(KeeperError::Lost);
        }
        let frame = frame(request).map_err(|error| {
            KeeperError::Refused(format!("The keeper cannot be asked that: {error}."))
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
        state.outgoing.extend_from_slice(&frame[sent..]);
        if !state.outgoing.is_empty() {
            self.blocked.notify_one();
        }
        Ok(())
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
                        Ok(Ok(length)) => incoming.push(&buffer[..length]),
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
        if let Says::News { key, session, ended } = says {
            return news(Ending { key, session, keeper: self.name.clone(), ended: *ended });
        }
        if let Some(waiting) = self.state().waiting.remove(&number) {
            let _ = waiting.send(says);
        }
    }
}
