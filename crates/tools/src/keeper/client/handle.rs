//! The agent's side: a handle that starts a keeper when it is needed.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use mainstay_message::Redactor;
use mainstay_store::lock;
use rustix::process::Signal;
use tokio::sync::mpsc;

use super::collect::{Collected, collect};
use super::conversation::{Conversation, Hold, lend};
use super::endings::{Ending, Endings};
use super::error::KeeperError;
use super::launch::{Connection, Launch, Launched, connect, launch};
use super::link::Link;
use super::reply::{done, ended_of, not_started, refusal, status_of};
use super::sweep;
use crate::keeper::shared::processes::signal;
use crate::keeper::shared::protocol::{Around, Asks, Says};
use crate::keeper::shared::{BACKSTOP, Ended, Exit, Job, Status, Streams};

/// A keeper answers at once; one that does not is stopped or stuck.
const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take until everything is killed.
const KILLED: Duration = Duration::from_secs(10);
/// How often it is looked whether a dead keeper's processes are gone.
const LOOK: Duration = Duration::from_millis(10);
/// How many times after a keeper that is not our child.
const LOOKS: u32 = 500;

/// A handle to the keeper of this agent, and to those of former ones; clones share it.
///
/// The keeper is started on first use. It lives until [`leave`](Self::leave), or until its grace
/// time is over after the last clone is gone.
#[derive(Clone)]
pub struct Keeper {
    shared: Arc<Shared>,
}

struct Shared {
    launch: Launch,
    /// The keeper that new jobs go to. Held while it is started, so that there is one.
    current: tokio::sync::Mutex<Option<Arc<Link>>>,
    links: Mutex<Links>,
    endings: Arc<Endings>,
    /// What no output is to hold.
    redactor: OnceLock<Redactor>,
}

#[derive(Default)]
struct Links {
    open: Vec<Arc<Link>>,
    /// Which keeper has a job that goes on after its call.
    routes: HashMap<String, Arc<Link>>,
}

/// What came of looking for a former agent's keeper.
#[derive(Clone, Debug)]
pub enum Attached {
    /// It lives and has these jobs of the session. New jobs may use it from now on.
    Alive(Vec<Status>),
    /// It lives and does not answer: it is stopped, or stuck. Its processes may run on.
    Silent,
    /// It is gone, and so are its processes. [`Keeper::collect`] tells what it knew.
    Gone,
}

impl Keeper {
    /// A keeper that is started when it is needed.
    pub fn new(launch: Launch) -> Self {
        Self {
            shared: Arc::new(Shared {
                launch,
                current: tokio::sync::Mutex::default(),
                links: Mutex::default(),
                endings: Arc::default(),
                redactor: OnceLock::new(),
            }),
        }
    }

    /// Keeps secrets out of all outputs, also on disk. The first one who says so is heard.
    pub fn redact(&self, redactor: &Redactor) {
        let _ = self.shared.redactor.set(redactor.clone());
    }

    /// The name of the keeper that new jobs go to; it is started if need be.
    pub async fn name(&self) -> Result<String, KeeperError> {
        let mut current = self.shared.current.lock().await;
        if let Some(link) = current.as_ref().filter(|link| link.is_well()) {
            return Ok(link.name.clone());
        }
        let launched = launch(&self.shared.launch).map_err(|cause| self.cannot_start(cause))?;
        let spool = self.shared.launch.spool.clone();
        let own = launched.name.clone();
        // Off the way: nobody waits for it.
        let _ = std::thread::Builder::new()
            .name("keeper-sweep".to_owned())
            .spawn(move || sweep::sweep(&spool, &own));
        let link = self.open(launched).map_err(|cause| self.cannot_start(cause))?;
        let name = link.name.clone();
        *current = Some(link);
        Ok(name)
    }

    fn cannot_start(&self, cause: std::io::Error) -> KeeperError {
        KeeperError::Start { spool: self.shared.launch.spool.clone(), cause }
    }

    fn open(&self, launched: Launched) -> std::io::Result<Arc<Link>> {
        let Launched { name, connection, mut guard } = launched;
        let spool = self.shared.launch.spool.clone();
        let of = name.clone();
        self.take_over(name, connection, move || {
            // The guard is our child and must be reaped; it goes when everything is killed.
            let _ = std::thread::Builder::new().name("keeper-end".to_owned()).spawn(move || {
                // One that is stopped hears nothing else, and what its worker left is its to kill.
                signal(guard.id().cast_signed(), Signal::CONT);
                let ended = guard.wait();
                if !ended.is_ok_and(|status| status.success()) {
                    // It was killed with its worker, and could not do this itself.
                    while !sweep::clear(&spool, &of) {
                        std::thread::sleep(LOOK);
                    }
                }
            });
        })
    }

    fn take_over(
        &self,
        name: String,
        connection: Connection,
        closed: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Arc<Link>> {
        let endings = self.shared.endings.clone();
        let link = Link::open(name, connection, move |ending| endings.announce(ending), closed)?;
        let mut links = self.shared.links();
        links.open.retain(|link| link.is_open());
        links.routes.retain(|_, link| link.is_open());
        links.open.push(link.clone());
        Ok(link)
    }

    /// Connects to a keeper of a former agent, to collect what it has of a session.
    ///
    /// When it is gone, what it left running is killed before this returns.
    pub async fn attach(&self, name: &str, session: &str) -> Attached {
        match self.attached(name, session).await {
            Ok(jobs) => Attached::Alive(jobs),
            Err(KeeperError::Silent) => Attached::Silent,
            Err(_) => {
                self.clear(name).await;
                Attached::Gone
            }
        }
    }

    async fn attached(&self, name: &str, session: &str) -> Result<Vec<Status>, KeeperError> {
        let mut current = self.shared.current.lock().await;
        let link = match self.shared.link(name) {
            Some(link) => link,
            None => {
                let connection = connect(&self.shared.launch.spool.join(name))
                    .map_err(|cause| unreachable(&cause))?;
                let spool = self.shared.launch.spool.clone();
                let of = name.to_owned();
                // Not our child: whether it died or only let go of us is seen from its record.
                let closed = move || {
                    let _ = std::thread::Builder::new().name("keeper-end".to_owned()).spawn(
                        move || {
                            for _ in 0..LOOKS {
                                if sweep::clear(&spool, &of) {
                                    return;
                                }
                                std::thread::sleep(LOOK);
                            }
                        },
                    );
                };
                self.take_over(name.to_owned(), connection, closed)
                    .map_err(|_| KeeperError::Lost)?
            }
        };
        let asks = Asks::Attach { session: session.to_owned() };
        let Says::Jobs(jobs) = link.ask(ANSWER, asks).await? else {
            return Err(KeeperError::Lost);
        };
        let mut links = self.shared.links();
        for job in &jobs {
            links.routes.insert(job.key.clone(), link.clone());
        }
        if !current.as_ref().is_some_and(|link| link.is_open()) {
            *current = Some(link);
        }
        Ok(jobs)
    }

    /// Waits until nothing of a dead keeper runs.
    async fn clear(&self, name: &str) {
        let spool = &self.shared.launch.spool;
        let cleared = async {
            while !sweep::clear(spool, name) {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(KILLED, cleared).await.is_err() {
            tracing::warn!(keeper = name, "could not kill the processes of a dead keeper");
        }
    }

    /// Asks the spool of a keeper that is gone about a job.
    pub fn collect(&self, name: &str, key: &str) -> Collected {
        collect(&self.shared.launch.spool, name, key)
    }

    /// Gets a job ready that [`begin`](Self::begin) will begin in a moment. Nothing of it happens
    /// before that, and nothing comes of it without.
    pub fn prepare(&self, keeper: &str, job: Job) {
        if let Some(link) = self.shared.link(keeper) {
            self.shared.tell_secrets(&link);
            link.prepare(job);
        }
    }

    /// Runs a job in the foreground and waits for its end. Dropped before that, it kills the job.
    ///
    /// `keeper` is the [`name`](Self::name) that was written down for the call; a keeper with
    /// another name does not start it.
    pub async fn run(&self, keeper: &str, job: &Job) -> Result<Ended, KeeperError> {
        let link = self.shared.link(keeper).ok_or_else(not_started)?;
        self.shared.tell_secrets(&link);
        let asks = Asks::Run { job: Box::new(job.clone()), around: Around::Told };
        let limit = job.longest().unwrap_or(BACKSTOP).saturating_add(ANSWER);
        ended_of(self.shared.end_of(&link, &job.key, link.ask(limit, asks)).await?, &job.key)
    }

    /// Begins a job that was got ready by [`prepare`](Self::prepare), and waits for its end. Returns
    /// `None` if it is not ready, or not any more: then nothing was started. Dropped before its end, it
    /// kills the job.
    pub async fn begin(&self, keeper: &str, key: &str) -> Result<Option<Ended>, KeeperError> {
        let Some(link) = self.shared.link(keeper) else { return Ok(None) };
        self.shared.tell_secrets(&link);
        let Some(begun) = link.begin(key, ANSWER) else { return Ok(None) };
        match self.shared.end_of(&link, key, begun).await? {
            Says::UnknownKey => Ok(None),
            says => ended_of(says, key).map(Some),
        }
    }

    /// Starts a job that goes on in the background. Dropped before it returns, it kills the job.
    pub async fn start(&self, keeper: &str, job: &Job) -> Result<Status, KeeperError> {
        let link = self.shared.link(keeper).ok_or_else(not_started)?;
        self.shared.tell_secrets(&link);
        let end = KillOnDrop { link: &link, key: &job.key, armed: true };
        let says = link
            .ask(ANSWER, Asks::Start { job: Box::new(job.clone()), around: Around::Told })
            .await?;
        let status = status_of(says, &job.key)?;
        self.shared.links().routes.insert(job.key.clone(), link.clone());
        end.disarm();
        Ok(status)
    }

    /// Waits for the end of a job. Dropped before that, it kills the job.
    pub async fn ended(&self, key: &str) -> Result<Ended, KeeperError> {
        let link = self.link_of(key).await?;
        let end = KillOnDrop { link: &link, key, armed: true };
        let mut says = pin!(link.ask_at_length(Asks::Await { key: key.to_owned() }));
        // How long it may take is not known here, so its keeper is asked now and then: one that lives
        // keeps to the limits of its jobs.
        let says = loop {
            match tokio::time::timeout(ANSWER, &mut says).await {
                Ok(says) => break says?,
                Err(_) => drop(link.ask(ANSWER, Asks::Poll { key: key.to_owned() }).await?),
            }
        };
        end.disarm();
        ended_of(says, key)
    }

    /// Waits for the end of a job and leaves it alone when dropped. How long is the caller's to say: a
    /// keeper that is stopped never answers.
    pub async fn watch(&self, key: &str) -> Result<Ended, KeeperError> {
        let link = self.link_of(key).await?;
        ended_of(link.ask_at_length(Asks::Await { key: key.to_owned() }).await?, key)
    }

    /// How a job stands.
    pub async fn poll(&self, key: &str) -> Result<Status, KeeperError> {
        let says = self.ask_about(key, Asks::Poll { key: key.to_owned() }).await?;
        status_of(says, key)
    }

    /// How a job of this keeper stands. That the keeper does not know it is its own word: one that is
    /// lost is told as lost.
    pub async fn poll_with(&self, keeper: &str, key: &str) -> Result<Status, KeeperError> {
        let link = self.shared.link(keeper).ok_or(KeeperError::Lost)?;
        let says = link.ask(ANSWER, Asks::Poll { key: key.to_owned() }).await?;
        status_of(says, key)
    }

    /// Output of a job from an offset on: where it starts, the bytes, and how many there are in all.
    /// It starts later than asked where bytes were dropped.
    pub async fn read(
        &self,
        key: &str,
        offset: u64,
        limit: u64,
    ) -> Result<(u64, Vec<u8>, u64), KeeperError> {
        match self.ask_about(key, Asks::Read { key: key.to_owned(), offset, limit }).await? {
            Says::Output(part) => Ok((part.offset, part.bytes, part.total)),
            says => Err(refusal(says, key)),
        }
    }

    /// Writes to the input of a job.
    pub async fn write(&self, key: &str, bytes: &[u8]) -> Result<(), KeeperError> {
        let asks = Asks::Write { key: key.to_owned(), bytes: bytes.to_vec() };
        done(self.ask_about(key, asks).await?, key)
    }

    /// Ends the input of a job.
    pub async fn close_input(&self, key: &str) -> Result<(), KeeperError> {
        done(self.ask_about(key, Asks::CloseInput { key: key.to_owned() }).await?, key)
    }

    /// Kills a job and all it started; it is gone when this returns.
    pub async fn stop(&self, key: &str) -> Result<(), KeeperError> {
        done(self.ask_about(key, Asks::Stop { key: key.to_owned() }).await?, key)
    }

    /// The jobs of a session that run, and the background jobs that have ended.
    pub async fn list(&self, session: &str) -> Result<Vec<Status>, KeeperError> {
        let mut list = Vec::new();
        for link in self.shared.open() {
            let asks = Asks::List { session: session.to_owned() };
            match link.ask(ANSWER, asks).await {
                Ok(Says::Jobs(jobs)) => list.extend(jobs),
                Ok(_) | Err(KeeperError::Lost) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(list)
    }

    /// Kills all jobs of a session; they are gone when this returns.
    pub async fn stop_session(&self, session: &str) {
        for link in self.shared.open() {
            let asks = Asks::StopSession { session: session.to_owned() };
            let _ = link.ask(KILLED, asks).await;
        }
    }

    /// Kills all jobs of this agent and lets the keeper go; they are gone when this returns. A keeper
    /// that is stopped is woken for this, and one that does not answer is killed.
    pub async fn leave(&self) {
        let mut current = self.shared.current.lock().await;
        for link in self.shared.open() {
            sweep::wake(&self.shared.launch.spool, &link.name);
            let left = link.ask(KILLED, Asks::Leave).await;
            link.close();
            if matches!(left, Err(KeeperError::Silent)) {
                tracing::warn!(keeper = link.name, "killed a process keeper that did not answer");
                sweep::kill(&self.shared.launch.spool, &link.name);
                self.clear(&link.name).await;
            }
        }
        *current = None;
    }

    /// Leaves, and takes away what the keeper has written: for who will ask for nothing of it later.
    pub async fn leave_without_trace(&self) {
        let names: Vec<_> = self.shared.links().open.iter().map(|link| link.name.clone()).collect();
        self.leave().await;
        let spool = &self.shared.launch.spool;
        for name in names {
            // One that lives would write on.
            self.clear(&name).await;
            let _ = std::fs::remove_dir_all(spool.join(name));
        }
        // It stays where others have something in it.
        let _ = std::fs::remove_dir(spool);
    }

    /// Hears of background jobs that end. What came before the first listener is not lost.
    pub fn endings(&self) -> mpsc::UnboundedReceiver<Ending> {
        self.shared.endings.listen()
    }

    /// Starts a process that is spoken with through its input and output, which are one connection to
    /// it. What it writes to standard error is its output for [`read`](Self::read).
    ///
    /// The keeper ends it when the [`Hold`] on it is dropped, and at once when this agent is gone.
    pub async fn converse(&self, keeper: &str, job: &Job) -> Result<Conversation, KeeperError> {
        let link = self.shared.link(keeper).ok_or_else(not_started)?;
        let job = Job { streams: Streams::Lent, background: false, ..job.clone() };
        let directory = self.shared.launch.spool.join(keeper);
        let stream = tokio::time::timeout(ANSWER, lend(&directory, &job.key))
            .await
            .map_err(|_| KeeperError::Silent)?
            .map_err(|_| KeeperError::Lost)?;
        let status = self.start(keeper, &job).await?;
        let hold = Hold::new(link, job.key);
        match status.ended {
            None => Ok(Conversation { stream, hold }),
            Some(Ended { how: how @ Exit::Failed(_), .. }) => {
                Err(KeeperError::Refused(format!("It {how}.")))
            }
            Some(ended) => Err(KeeperError::Refused(format!("It ended at once: {}.", ended.how))),
        }
    }

    async fn ask_about(&self, key: &str, asks: Asks) -> Result<Says, KeeperError> {
        let link = self.link_of(key).await?;
        link.ask(ANSWER, asks).await
    }

    /// The keeper that knows a job.
    async fn link_of(&self, key: &str) -> Result<Arc<Link>, KeeperError> {
        if let Some(link) = self.shared.links().routes.get(key).filter(|link| link.is_open()) {
            return Ok(link.clone());
        }
        let mut unknown = KeeperError::Unknown(key.to_owned());
        for link in self.shared.open() {
            let asks = Asks::Poll { key: key.to_owned() };
            match link.ask(ANSWER, asks).await {
                Ok(Says::Standing(_)) => return Ok(link),
                // It may be the one that knows.
                Err(silent @ KeeperError::Silent) => unknown = silent,
                Ok(_) | Err(_) => {}
            }
        }
        Err(unknown)
    }
}

/// Why a keeper cannot be connected to.
fn unreachable(cause: &std::io::Error) -> KeeperError {
    match cause.kind() {
        // It has not taken in those who came before.
        std::io::ErrorKind::WouldBlock => KeeperError::Silent,
        _ => KeeperError::Lost,
    }
}

impl Shared {
    fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }

    fn open(&self) -> Vec<Arc<Link>> {
        self.links().open.iter().filter(|link| link.is_open()).cloned().collect()
    }

    /// Waits for the end of a job that is started; remembers who has what it left running. Dropped
    /// before that, it kills the job.
    async fn end_of(
        &self,
        link: &Arc<Link>,
        key: &str,
        answer: impl Future<Output = Result<Says, KeeperError>>,
    ) -> Result<Says, KeeperError> {
        let end = KillOnDrop { link, key, armed: true };
        let says = answer.await;
        if matches!(&says, Ok(Says::Ended(ended)) if !ended.left.is_empty()) {
            self.links().routes.insert(key.to_owned(), link.clone());
        }
        // One that does not answer is told to end the job, for when it can hear again.
        if !matches!(says, Err(KeeperError::Silent)) {
            end.disarm();
        }
        says
    }

    fn tell_secrets(&self, link: &Link) {
        if let Some(redactor) = self.redactor.get() {
            link.tell_secrets(redactor);
        }
    }

    fn link(&self, name: &str) -> Option<Arc<Link>> {
        self.open().into_iter().find(|link| link.name == name)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.open().iter().for_each(|link| link.close());
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keeper").field("launch", &self.shared.launch).finish()
    }
}

/// Kills a job unless its end was seen.
struct KillOnDrop<'a> {
    link: &'a Link,
    key: &'a str,
    armed: bool,
}

impl KillOnDrop<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.link.tell(Asks::Stop { key: self.key.to_owned() });
        }
    }
}
