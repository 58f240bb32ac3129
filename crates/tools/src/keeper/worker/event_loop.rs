//! The worker's loop: connections of agents, the outputs of jobs, ends of children, time.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use mainstay_store::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::connection::Connection;
use super::jobs::{Jobs, Said};
use super::live::Direction;
use super::spool::Spool;
use super::syscalls::child_signals;
use crate::keeper::shared::processes::signal;
use crate::keeper::shared::protocol::{Around, Asks, Reply, Request, Says, frame};
use crate::keeper::shared::spool::TOKEN;
use crate::keeper::shared::stamp;
use crate::keeper::shared::{Job, KillReason};

/// How long a fresh keeper waits for its agent, which connects as soon as it has started it. Where that
/// was killed in between, another may come for what it had written down, and the keeper goes soon if not.
const FIRST: Duration = Duration::from_secs(5);

/// Runs the worker until it has nothing to do any more.
pub(super) fn run(
    directory: &Path,
    listener: UnixListener,
    grace: Duration,
    guard: Pid,
) -> io::Result<()> {
    let name = directory.file_name().map_or_else(String::new, |name| name.display().to_string());
    listener.set_nonblocking(true)?;
    let signals = child_signals()?;
    let token = std::fs::read(directory.join(TOKEN))?;
    let spool = Spool::open(directory)?;
    // Where the limits are too low already, what is left is found by other marks.
    let _ = stamp::put_on(&name);
    let jobs = Jobs::new(name, spool)?;
    let opened = now();
    let worker = Worker {
        jobs,
        listener,
        token,
        signals,
        signalled: true,
        grace,
        connections: BTreeMap::new(),
        accepted: 0,
        opened,
        orphaned: HashMap::new(),
        abandoned: false,
        guard,
    };
    worker.work()
}

fn now() -> Duration {
    Duration::from_millis(SystemClock.uptime_millis().cast_unsigned())
}

struct Worker {
    jobs: Jobs,
    listener: UnixListener,
    /// What every connection begins with.
    token: Vec<u8>,
    signals: OwnedFd,
    /// Whether a child may have ended since it was last looked.
    signalled: bool,
    grace: Duration,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    opened: Duration,
    /// Sessions whose agent went without a word, and when.
    orphaned: HashMap<String, Duration>,
    /// Whether an agent went without a word that had asked for nothing yet: another may ask what became
    /// of its work, also if the answer is that nothing was started.
    abandoned: bool,
    guard: Pid,
}

impl Worker {
    fn work(mut self) -> io::Result<()> {
        loop {
            let now = now();
            if std::mem::take(&mut self.signalled) {
                self.jobs.reap(now);
            }
            self.jobs.advance(now);
            self.watch_sessions(now);
            self.deliver();
            self.part(now);
            if self.is_done(now) {
                // Whoever came at the last moment is served.
                self.accept();
                if self.is_done(now) {
                    break;
                }
            }
            self.wait(now)?;
        }
        self.jobs.spool().close();
        // A guard that is stopped would stay for ever.
        if let Some(guard) = rustix::process::getppid().filter(|guard| *guard == self.guard) {
            signal(guard.as_raw_nonzero().get(), Signal::CONT);
        }
        // Agents that left have what they wanted, also of what another one before them had begun.
        if !self.abandoned && self.orphaned.is_empty() {
            self.jobs.spool().remove();
        }
        Ok(())
    }

    fn is_done(&self, now: Duration) -> bool {
        let waiting = self.accepted == 0 && now < self.opened + FIRST;
        !waiting && self.connections.is_empty() && self.jobs.is_idle() && self.jobs.due().is_none()
    }

    /// Waits until something happens, then hears the agents.
    fn wait(&mut self, now: Duration) -> io::Result<()> {
        let mut descriptors = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        for connection in self.connections.values() {
            let write =
                if connection.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            descriptors.push(PollFd::new(&connection.stream, PollFlags::IN | write));
        }
        for (descriptor, direction) in self.jobs.descriptors() {
            let events = match direction {
                Direction::From => PollFlags::IN,
                Direction::To => PollFlags::OUT,
            };
            descriptors.push(PollFd::from_borrowed_fd(descriptor.as_fd(), events));
        }
        let grace = self.orphaned.iter().filter(|(session, _)| self.jobs.has_live(session));
        let grace = grace.map(|(_, since)| *since + self.grace);
        let first = (self.accepted == 0).then_some(self.opened + FIRST);
        let due = self.jobs.due().into_iter().chain(grace).chain(first).min();
        let timeout = due.map(|due| {
            let left = due.saturating_sub(now);
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
        });
        let idle = match poll(&mut descriptors, timeout.as_ref()) {
            Ok(ready) => ready == 0,
            Err(Errno::INTR) => true,
            Err(error) => return Err(error.into()),
        };
        let ready: Vec<bool> = descriptors.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(descriptors);
        // Also where time went by: a signal may be late.
        self.signalled = ready[0] || idle;
        if self.signalled {
            // How many there were does not matter: all that ended are reaped.
            let _ = rustix::io::read(&self.signals, &mut [0_u8; 4096][..]);
        }
        let heard: Vec<u64> = (self.connections.keys().zip(&ready[2..]))
            .filter_map(|(id, ready)| ready.then_some(*id))
            .collect();
        for id in heard {
            self.hear(id);
        }
        if ready[1] {
            self.accept();
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let same_user = rustix::net::sockopt::socket_peercred(&stream)
                .is_ok_and(|peer| peer.uid == rustix::process::getuid());
            if !same_user || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.accepted += 1;
            self.connections.insert(self.accepted, Connection::new(stream));
        }
    }

    /// Reads all that a connection has to say, and does it.
    fn hear(&mut self, id: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.receive();
        }
        while let Some(connection) = self.connections.get_mut(&id) {
            if !connection.greeted {
                match connection.incoming.begins_with(&self.token) {
                    Some(true) => connection.greeted = true,
                    Some(false) => return connection.closed = true,
                    // A stranger leaves nothing here.
                    None => return connection.gates.clear(),
                }
            }
            match connection.incoming.next::<Request>() {
                Ok(Some(request)) => self.answer(id, request),
                Ok(None) => return,
                Err(_) => return connection.closed = true,
            }
        }
    }

    fn answer(&mut self, id: u64, Request { number, asks }: Request) {
        let now = now();
        let waiter = (id, number);
        self.jobs.settle(|held| held.is_meant(&asks), now);
        let says = match asks {
            Asks::Attach { session } => {
                // What another agent asked for before it died counts as asked.
                let others: Vec<u64> =
                    self.connections.keys().copied().filter(|of| *of != id).collect();
                others.into_iter().for_each(|of| self.hear(of));
                // Also what it got ready: from now on it has begun or never will.
                self.jobs.settle(|held| held.job.session == session, now);
                self.orphaned.remove(&session);
                let jobs = self.jobs.list(&session, now);
                let news = self.jobs.repeat_news(&session);
                self.join(id, session);
                self.reply(id, number, Says::Jobs(jobs));
                return news.into_iter().for_each(|says| self.reply(id, 0, says));
            }
            Asks::Start { mut job, around } => {
                if self.complete(id, &mut job, around).is_err() {
                    return;
                }
                self.join(id, job.session.clone());
                match self.jobs.start(&job, now) {
                    Err(words) => Says::Refused(words),
                    Ok(()) => self.status(&job.key, now),
                }
            }
            Asks::Run { mut job, around } => {
                if self.complete(id, &mut job, around).is_err() {
                    return;
                }
                self.join(id, job.session.clone());
                match self.jobs.start(&job, now) {
                    Err(words) => Says::Refused(words),
                    Ok(()) => return self.jobs.await_end(&job.key, waiter),
                }
            }
            Asks::Prepare { mut job, around } => {
                let gate = self.connections.get_mut(&id).and_then(Connection::gate);
                if self.complete(id, &mut job, around).is_err() {
                    return;
                }
                let Some(gate) = gate else { return self.reply(id, number, Says::UnknownKey) };
                self.join(id, job.session.clone());
                return self.jobs.prepare(*job, gate, waiter, now);
            }
            Asks::Await { key } => return self.jobs.await_end(&key, waiter),
            Asks::Poll { key } => self.status(&key, now),
            Asks::Read { key, offset, limit } => self.jobs.read(&key, offset, limit),
            Asks::Write { key, bytes } => self.jobs.write(&key, Some(&bytes)),
            Asks::CloseInput { key } => self.jobs.write(&key, None),
            Asks::Stop { key } => return self.jobs.stop(&key, waiter, KillReason::Stopped, now),
            Asks::StopSession { session } => {
                self.jobs.stop_session(&session, KillReason::Stopped, now);
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.stopping.push((number, session));
                }
                return;
            }
            Asks::Secrets { secrets } => {
                self.jobs.keep_secret(secrets);
                Says::Done
            }
            Asks::Lend { key } => return self.take_loan(id, number, key),
            Asks::List { session } => Says::Jobs(self.jobs.list(&session, now)),
            Asks::Leave => return self.leave(id, number, now),
        };
        self.reply(id, number, says);
    }

    /// Takes a connection for a job. It is nobody's any more who is heard here.
    fn take_loan(&mut self, id: u64, number: u64, key: String) {
        self.reply(id, number, Says::Done);
        let Some(mut connection) = self.connections.remove(&id) else { return };
        connection.send();
        let sent = connection.outgoing.is_empty() && !connection.closed;
        if sent && connection.stream.set_nonblocking(false).is_ok() {
            self.jobs.lend(key, connection.stream.into());
        }
    }

    /// Puts back what a job was sent without; whoever refers to what it never told is cut off.
    fn complete(&mut self, id: u64, job: &mut Job, around: Around) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        let completed = connection.around.complete(job, around);
        connection.closed |= completed.is_err();
        completed
    }

    fn status(&self, key: &str, now: Duration) -> Says {
        let status = self.jobs.status(key, now);
        status.map_or(Says::UnknownKey, |status| Says::Standing(Box::new(status)))
    }

    fn join(&mut self, id: u64, session: String) {
        self.orphaned.remove(&session);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.left = false;
            connection.sessions.insert(session);
        }
    }

    /// Kills what only this connection takes part in.
    fn leave(&mut self, id: u64, number: u64, now: Duration) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.leaving = Some(number);
        self.jobs.let_go(id, now);
        for session in connection.sessions.clone() {
            if !self.is_shared(id, &session) {
                self.jobs.stop_session(&session, KillReason::AgentLeft, now);
            }
        }
    }

    fn is_shared(&self, id: u64, session: &str) -> bool {
        let mut others = self.connections.iter().filter(|(of, _)| **of != id);
        others.any(|(_, other)| other.leaving.is_none() && other.sessions.contains(session))
    }

    /// Ends what agents left behind, and answers those who wait for a session to be empty.
    fn watch_sessions(&mut self, now: Duration) {
        for (session, since) in &self.orphaned {
            if now >= *since + self.grace {
                self.jobs.stop_session(session, KillReason::AgentGone, now);
            }
        }
        let mut answers = Vec::new();
        for (id, connection) in &mut self.connections {
            let jobs = &self.jobs;
            connection.stopping.retain(|(number, session)| {
                let busy = jobs.has_live(session);
                if !busy {
                    answers.push((*id, *number));
                }
                busy
            });
        }
        for (id, connection) in &self.connections {
            if let Some(number) = connection.leaving
                && !connection
                    .sessions
                    .iter()
                    .any(|session| self.jobs.has_live(session) && !self.is_shared(*id, session))
            {
                answers.push((*id, number));
            }
        }
        for (id, number) in answers {
            self.reply(id, number, Says::Done);
            if let Some(connection) = self.connections.get_mut(&id)
                && connection.leaving == Some(number)
            {
                connection.leaving = None;
                connection.left = true;
                connection.sessions.clear();
            }
        }
    }

    fn deliver(&mut self) {
        for said in self.jobs.said() {
            match said {
                Said::Answer((id, number), says) => self.reply(id, number, says),
                Said::News(session, says) => {
                    let Ok(frame) = frame(&Reply { number: 0, says }) else { continue };
                    let all = self.connections.values_mut();
                    for connection in all.filter(|one| one.sessions.contains(&session)) {
                        connection.outgoing.extend_from_slice(&frame);
                    }
                }
            }
        }
        for connection in self.connections.values_mut() {
            connection.send();
        }
    }

    fn reply(&mut self, id: u64, number: u64, says: Says) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match frame(&Reply { number, says }) {
            Ok(frame) => connection.outgoing.extend_from_slice(&frame),
            Err(_) => connection.closed = true,
        }
    }

    /// Lets go of connections that are closed. Their sessions wait for another agent.
    fn part(&mut self, now: Duration) {
        let closed: Vec<u64> = (self.connections.iter())
            .filter(|(_, connection)| connection.closed)
            .map(|(id, _)| *id)
            .collect();
        for id in closed {
            self.jobs.forget(id, now);
            let Some(connection) = self.connections.remove(&id) else { continue };
            self.abandoned |=
                connection.greeted && !connection.left && connection.sessions.is_empty();
            for session in connection.sessions {
                if !self.is_shared(id, &session) {
                    self.jobs.end_conversations(&session, now);
                    self.orphaned.entry(session).or_insert(now);
                }
            }
        }
    }
}
