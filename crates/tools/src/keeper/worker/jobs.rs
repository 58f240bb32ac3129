//! The jobs of a keeper: started once, watched, ended. Time comes in from outside.

mod end;
mod hold;
mod retention;
mod streams;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use mainstay_message::Redactor;
use mainstay_message::redactor::Origin;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::held::Held;
use super::kill::{Claims, Killing, adopted, kill_all_below};
use super::live::{self, Live, PARTING_LOOK, PIECE, StartContext, how, reason};
use super::spool::{Place, Spool};
use super::syscalls::child_pipe;
use crate::keeper::shared::brand::Brands;
use crate::keeper::shared::processes::own_pid;
use crate::keeper::shared::protocol::Says;
use crate::keeper::shared::spool::Line;
use crate::keeper::shared::{Ended, Exit, Job, KillReason, Status, Streams};
use crate::sandbox::Chambers;

/// Who waits for an answer: a connection and the number of its request.
pub(super) type Waiter = (u64, u64);

/// What is to be sent.
pub(super) enum Said {
    /// An answer.
    Answer(Waiter, Says),
    /// News for everybody who takes part in the session.
    News(String, Says),
}

/// The jobs of a keeper.
pub(super) struct Jobs {
    name: String,
    spool: Spool,
    /// What jobs without an input read.
    nothing: OwnedFd,
    live: BTreeMap<String, Live>,
    past: HashMap<String, Past>,
    /// A job that waits for the word to begin.
    held: Option<Held>,
    /// Connections for jobs that are about to start.
    lent: HashMap<String, OwnedFd>,
    claims: Claims,
    /// Absent only where other threads start processes too, which would be branded with ours.
    brands: Option<Brands>,
    /// Where jobs with a sandbox are started.
    chambers: Chambers,
    said: Vec<Said>,
    buffer: Vec<u8>,
    /// Whether this process had children when it last looked.
    children: bool,
    /// Since when there are processes that belong to no job, and when to look for them again.
    strays: Option<(Duration, Duration)>,
    /// How long the log may become.
    long_log: u64,
    /// Knows what no output is to hold.
    redactor: Redactor,
}

/// A job of which nothing runs. How it ended is in the log.
struct Past {
    /// Counts them, in the order in which they ended.
    number: u64,
    session: String,
    command: String,
    background: bool,
    pid: i32,
    ended: Kept,
}

enum Kept {
    Logged(Place),
    /// The log could not be written to.
    Held(Box<Ended>),
}

impl Jobs {
    pub(super) fn new(name: String, spool: Spool) -> io::Result<Self> {
        Ok(Self {
            brands: Some(Brands::new(&name)),
            chambers: Chambers::new(child_pipe()),
            name,
            spool,
            nothing: File::open("/dev/null")?.into(),
            live: BTreeMap::new(),
            past: HashMap::new(),
            held: None,
            lent: HashMap::new(),
            claims: Claims::default(),
            said: Vec::new(),
            buffer: vec![0; PIECE],
            children: false,
            strays: None,
            long_log: retention::LONG_LOG,
            redactor: Redactor::default(),
        })
    }

    pub(super) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Keeps secrets out of all outputs from now on.
    pub(super) fn keep_secret(&self, secrets: Vec<(String, String)>) {
        self.redactor.add_all(secrets, Origin::Configured);
    }

    /// Whether nothing runs that anybody asked for.
    pub(super) fn is_idle(&self) -> bool {
        self.live.is_empty()
    }

    pub(super) fn has_live(&self, session: &str) -> bool {
        self.live.values().any(|live| live.job.session == session)
    }

    /// What is to be sent, once.
    pub(super) fn said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    fn watch(&mut self, live: Live) {
        self.children = true;
        self.claims.root(live.root, &live.job.key);
        self.live.insert(live.job.key.clone(), live);
    }

    /// Writes down the process of a job. It is only for finding leftovers; the marks do that too.
    fn note_start(&mut self, key: &str) {
        if let Some(live) = self.live.get(key) {
            let _ = self.spool.write(&started(live));
        }
    }

    fn is_known(&self, key: &str) -> bool {
        self.live.contains_key(key) || self.past.contains_key(key)
    }

    /// Starts a job unless its key is known. An error says why it was not started.
    pub(super) fn start(&mut self, job: &Job, now: Duration) -> Result<(), String> {
        if self.is_known(&job.key) {
            return Ok(());
        }
        let lent = self.lent.remove(&job.key);
        if job.streams == Streams::Lent && lent.is_none() {
            return Err("It has no connection to its agent. Nothing was started.".to_owned());
        }
        // Before the start: a key that is not in the log has not run.
        self.spool.write(&Line::Starting { key: job.key.clone() }).map_err(|error| {
            format!("The keeper could not write to its spool: {error}. Nothing was started.")
        })?;
        let outputs = self.outputs(job);
        let brand = self.brands.as_mut().and_then(Brands::next);
        let mut context = StartContext {
            keeper: &self.name,
            nothing: &self.nothing,
            chambers: &mut self.chambers,
        };
        match live::start(&mut context, job, lent.as_ref()) {
            Ok(started) => {
                self.watch(Live::new(job, started, outputs, brand, now, now));
                self.note_start(&job.key);
            }
            Err(error) => self.bury(job, 0, Ended::failed(reason(job, &error)), Vec::new()),
        }
        Ok(())
    }

    /// Ends the jobs of a session that only its agent, which is gone, could speak with.
    pub(super) fn end_conversations(&mut self, session: &str, now: Duration) {
        let of = self.live.values_mut().filter(|live| live.job.session == session);
        for live in of.filter(|live| live.job.streams == Streams::Lent) {
            live.killing.get_or_insert_with(|| Killing::new(KillReason::AgentGone, now));
        }
    }

    /// Tells a waiter when the job ends, or at once when it has.
    pub(super) fn await_end(&mut self, key: &str, waiter: Waiter) {
        let says = match self.live.get_mut(key) {
            Some(live) => match &live.told {
                Some(told) => Says::Ended(Box::new(told.clone())),
                None => return live.waiters.push(waiter),
            },
            None => match self.past_end(key) {
                Some(ended) => Says::Ended(Box::new(ended)),
                None => Says::UnknownKey,
            },
        };
        self.said.push(Said::Answer(waiter, says));
    }

    fn past_end(&self, key: &str) -> Option<Ended> {
        match &self.past.get(key)?.ended {
            Kept::Logged(place) => self.spool.ended(*place),
            Kept::Held(ended) => Some((**ended).clone()),
        }
    }

    /// How a job stands.
    pub(super) fn status(&self, key: &str, now: Duration) -> Option<Status> {
        if let Some(live) = self.live.get(key) {
            return Some(Status {
                key: key.to_owned(),
                session: live.job.session.clone(),
                command: live.job.program.line(),
                background: live.job.background,
                pid: live.root,
                took: live.exit.as_ref().map_or(now, |(_, at)| *at).saturating_sub(live.started),
                total: live.output.total(),
                left: live.told.as_ref().map_or_else(Vec::new, |told| told.left.clone()),
                ended: live.told.clone(),
            });
        }
        let past = self.past.get(key)?;
        let ended = self.past_end(key)?;
        Some(Status {
            key: key.to_owned(),
            session: past.session.clone(),
            command: past.command.clone(),
            background: past.background,
            pid: past.pid,
            took: ended.took,
            total: ended.output.total,
            left: Vec::new(),
            ended: Some(ended),
        })
    }

    /// The jobs of a session that run or are background jobs.
    pub(super) fn list(&self, session: &str, now: Duration) -> Vec<Status> {
        let live = self.live.iter().filter(|(_, live)| live.job.session == session);
        let past = self.past.iter().filter(|(_, past)| past.session == session && past.background);
        let keys = live.map(|(key, _)| key).chain(past.map(|(key, _)| key));
        let mut list: Vec<_> = keys.filter_map(|key| self.status(key, now)).collect();
        list.sort_by(|one, other| one.key.cmp(&other.key));
        list
    }

    /// Kills a job with all it started; the waiter is told when nothing is left.
    pub(super) fn stop(&mut self, key: &str, waiter: Waiter, why: KillReason, now: Duration) {
        match self.live.get_mut(key) {
            Some(live) => {
                live.stoppers.push(waiter);
                live.killing.get_or_insert_with(|| Killing::new(why, now));
            }
            None => {
                let known = self.past.contains_key(key);
                let says = if known { Says::Done } else { Says::UnknownKey };
                self.said.push(Said::Answer(waiter, says));
            }
        }
    }

    /// Kills all jobs of a session.
    pub(super) fn stop_session(&mut self, session: &str, why: KillReason, now: Duration) {
        for live in self.live.values_mut().filter(|live| live.job.session == session) {
            live.killing.get_or_insert_with(|| Killing::new(why, now));
        }
    }

    /// Forgets a connection that is gone.
    pub(super) fn forget(&mut self, connection: u64, now: Duration) {
        self.let_go(connection, now);
        for live in self.live.values_mut() {
            live.waiters.retain(|(of, _)| *of != connection);
            live.stoppers.retain(|(of, _)| *of != connection);
        }
    }

    /// Reaps every child that has ended.
    pub(super) fn reap(&mut self, now: Duration) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped(pid, status, now),
                Ok(None) => return self.children = true,
                Err(Errno::INTR) => {}
                Err(_) => return self.children = false,
            }
        }
    }

    fn reaped(&mut self, pid: Pid, status: WaitStatus, now: Duration) {
        let pid = pid.as_raw_nonzero().get();
        self.settle_reaped(pid, now);
        self.chambers.reaped(pid);
        if let Some(key) = self.claims.reaped(pid)
            && let Some(live) = self.live.get_mut(&key)
        {
            let failed = live.spawning.take().and_then(|spawning| spawning.outcome().err());
            let how = match failed {
                Some(error) => Exit::Failed(reason(&live.job, &error)),
                None => how(status),
            };
            live.exit.get_or_insert((how, now));
        }
    }

    /// Does what is due: reads outputs, enforces limits, notices ends.
    pub(super) fn advance(&mut self, now: Duration) {
        self.look_at_held(now);
        let keys: Vec<String> = self.live.keys().cloned().collect();
        for key in keys {
            if let Some(live) = self.live.get_mut(&key) {
                live.transfer(&mut self.buffer, now);
                live.enforce(now);
            }
            self.step(&key, now);
        }
        self.end_strays(now);
    }

    /// Kills what belongs to no job: nobody can ask for it.
    fn end_strays(&mut self, now: Duration) {
        if !self.live.is_empty() || self.held.is_some() || !self.children {
            self.strays = None;
            return;
        }
        let adopter = self.chambers.adopter();
        self.children = adopter.is_none() || !adopted(adopter).is_empty();
        if !self.children {
            self.strays = None;
            return;
        }
        kill_all_below(own_pid(), adopter);
        let since = self.strays.map_or(now, |(since, _)| since);
        // Less and less often: one that does not die hangs in the kernel.
        let pause = now.saturating_sub(since).clamp(PARTING_LOOK, Duration::from_secs(1));
        self.strays = Some((since, now + pause));
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Duration> {
        let strays = self.strays.map(|(_, next)| next);
        let held = self.held.as_ref().map(Held::due);
        self.live.values().filter_map(Live::due).chain(strays).chain(held).min()
    }
}

/// The line that tells the process of a job.
fn started(live: &Live) -> Line {
    let uptime = u64::try_from(live.forked.as_millis()).unwrap_or(u64::MAX);
    Line::Started { key: live.job.key.clone(), pid: live.root, uptime }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::{BACKSTOP, Limits, Program};

    /// Later than any process of this machine has started, so that none can be taken for the job's.
    const START: Duration = Duration::from_secs(1 << 40);

    /// The tests share a process, so every one has a key of its own.
    fn jobs(key: &str, background: bool) -> (tempfile::TempDir, Jobs, Pid) {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::open(directory.path()).unwrap();
        let mut jobs = Jobs::new("test".to_owned(), spool).unwrap();
        jobs.brands = None;
        let job = Job {
            key: key.to_owned(),
            session: "session".to_owned(),
            program: Program::Line("exec sleep 1000".to_owned()),
            directory: "/".into(),
            environment: Vec::new(),
            limits: Limits { wall: Some(10 * BACKSTOP), idle: None, output: None },
            input: false,
            given: None,
            streams: Streams::Together,
            background,
            sandbox: None,
        };
        jobs.start(&job, START).unwrap();
        jobs.await_end(key, (1, 1));
        let root = Pid::from_raw(jobs.live[key].root).unwrap();
        (directory, jobs, root)
    }

    /// Lets the job end after it was signalled. The children of other tests are left alone.
    fn ended(jobs: &mut Jobs, root: Pid, now: Duration) -> Ended {
        let (_, status) =
            rustix::process::waitpid(Some(root), WaitOptions::empty()).unwrap().unwrap();
        jobs.reaped(root, status, now);
        jobs.children = false;
        jobs.advance(now);
        match jobs.said().remove(0) {
            Said::Answer((1, 1), Says::Ended(ended)) => *ended,
            _ => panic!("the end is not told"),
        }
    }

    #[test]
    fn the_backstop_ends_a_job_in_the_foreground_after_half_an_hour_whatever_was_asked_for() {
        let (_directory, mut jobs, root) = jobs("foreground", false);
        jobs.advance(START + BACKSTOP - Duration::from_millis(1));
        assert_eq!(jobs.due(), Some(START + BACKSTOP));
        assert!(jobs.live["foreground"].killing.is_none() && jobs.said().is_empty());
        jobs.advance(START + BACKSTOP);
        let ended = ended(&mut jobs, root, START + BACKSTOP + Duration::from_millis(10));
        assert_eq!(ended.how, Exit::Killed(KillReason::Wall(BACKSTOP)));
        assert!(jobs.is_idle());
    }

    #[test]
    fn a_job_in_the_background_has_the_limit_it_asked_for() {
        let (_directory, mut jobs, root) = jobs("background", true);
        jobs.advance(START + 2 * BACKSTOP);
        assert!(jobs.live["background"].killing.is_none());
        jobs.advance(START + 10 * BACKSTOP);
        let ended = ended(&mut jobs, root, START + 10 * BACKSTOP);
        assert_eq!(ended.how, Exit::Killed(KillReason::Wall(10 * BACKSTOP)));
    }
}
