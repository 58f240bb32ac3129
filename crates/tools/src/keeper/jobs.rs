//! The jobs of a keeper: started once, watched, ended. Time comes in from outside.

mod holding;
mod retention;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use mainstay_message::Redactor;
use mainstay_message::redactor::Origin;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::brand::Brands;
use super::descendants::{Snapshot, command_line, own_children};
use super::ending::{Ended, How, Left, Why};
use super::held::Held;
use super::job::{Job, Streams};
use super::kill::{Claims, Killing};
use super::live::{self, Direction, Live, PARTING_LOOK, PIECE, how, reason};
use super::output::{self, CAP, Output};
use super::protocol::{Says, Standing};
use super::spool::{Line, Place, Spool};
use crate::sandbox::Chambers;

/// How long the processes that a job leaves behind may take to go by themselves before it is said
/// that it left them.
const PARTING: Duration = Duration::from_millis(50);

/// So many connections are lent at once before their jobs are started; more is a mistake.
const MOST_LENT: usize = 64;

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
            chambers: Chambers::default(),
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

    fn outputs(&self, job: &Job) -> (Output, Output) {
        let cap = job.limits.output.unwrap_or(CAP);
        let output = Output::new(self.spool.output_path(&job.key), cap);
        let without = |output: Output| output.without_secrets(&self.redactor);
        (without(output), without(Output::in_memory()))
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
            return Err("Nobody lent it a connection. Nothing was started.".to_owned());
        }
        // Before the start: a key that is not in the log has not run.
        self.spool.write(&Line::Starting { key: job.key.clone() }).map_err(|error| {
            format!("The keeper cannot write to its spool: {error}. Nothing was started.")
        })?;
        let outputs = self.outputs(job);
        let brand = self.brands.as_mut().and_then(Brands::next);
        let (nothing, chambers) = (&self.nothing, &mut self.chambers);
        match live::start(&self.name, job, nothing, lent.as_ref(), chambers) {
            Ok(started) => {
                self.watch(Live::new(job, (started, None), outputs, brand, (now, now)));
                self.note_start(&job.key);
            }
            Err(error) => self.bury(job, 0, Ended::failed(reason(job, &error)), Vec::new()),
        }
        Ok(())
    }

    /// Keeps a connection for the job with this key.
    pub(super) fn lend(&mut self, key: String, connection: OwnedFd) {
        if self.lent.len() < MOST_LENT {
            self.lent.insert(key, connection);
        }
    }

    /// Ends the jobs of a session that only its agent, which is gone, could speak with.
    pub(super) fn end_conversations(&mut self, session: &str, now: Duration) {
        let of = self.live.values_mut().filter(|live| live.job.session == session);
        for live in of.filter(|live| live.job.streams == Streams::Lent) {
            live.killing.get_or_insert_with(|| Killing::new(Why::AgentGone, now));
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
    pub(super) fn standing(&self, key: &str, now: Duration) -> Option<Standing> {
        if let Some(live) = self.live.get(key) {
            return Some(Standing {
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
        Some(Standing {
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
    pub(super) fn list(&self, session: &str, now: Duration) -> Vec<Standing> {
        let live = self.live.iter().filter(|(_, live)| live.job.session == session);
        let past = self.past.iter().filter(|(_, past)| past.session == session && past.background);
        let keys = live.map(|(key, _)| key).chain(past.map(|(key, _)| key));
        let mut list: Vec<_> = keys.filter_map(|key| self.standing(key, now)).collect();
        list.sort_by(|one, other| one.key.cmp(&other.key));
        list
    }

    /// Output of a job from an offset on.
    pub(super) fn read(&mut self, key: &str, offset: u64, limit: u64) -> Says {
        let part = match self.live.get_mut(key) {
            Some(live) => {
                // Whoever reads may wait for the very last letter, of a question for one.
                live.output.settle();
                Some(live.output.read(offset, limit))
            }
            None => self.past_end(key).map(|ended| output::read(&ended.output, offset, limit)),
        };
        part.map_or(Says::UnknownKey, Says::Output)
    }

    /// Bytes for the input of a job, or its end.
    pub(super) fn write(&mut self, key: &str, bytes: Option<&[u8]>) -> Says {
        let Some(live) = self.live.get_mut(key) else {
            return match self.past.contains_key(key) {
                true => Says::Refused("It has ended.".to_owned()),
                false => Says::UnknownKey,
            };
        };
        let Some(input) = &mut live.input else {
            return Says::Refused("Its input is closed.".to_owned());
        };
        match bytes {
            Some(bytes) => {
                if let Err(words) = input.push(bytes) {
                    return Says::Refused(words);
                }
            }
            None => input.close(),
        }
        live.flush_input();
        Says::Done
    }

    /// Kills a job with all it started; the waiter is told when nothing is left.
    pub(super) fn stop(&mut self, key: &str, waiter: Waiter, why: Why, now: Duration) {
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
    pub(super) fn stop_session(&mut self, session: &str, why: Why, now: Duration) {
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
        if let Some(key) = self.claims.reaped(pid)
            && let Some(live) = self.live.get_mut(&key)
        {
            let failed = live.spawning.take().and_then(|spawning| spawning.outcome().err());
            let how = match failed {
                Some(error) => How::Failed(reason(&live.job, &error)),
                None => how(status),
            };
            live.exit.get_or_insert((how, now));
        }
    }

    /// The descriptors to wait for: outputs, and inputs for which something waits.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = (&OwnedFd, Direction)> {
        self.live.values().flat_map(|live| {
            let pipes = live.watched().map(|pipe| (pipe, Direction::From));
            let input = live.input.as_ref().filter(|input| input.is_waiting());
            pipes.chain(input.map(|input| (input.pipe(), Direction::To)))
        })
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
        super::kill::kill_all_below(super::descendants::own_pid());
        let since = self.strays.map_or(now, |(since, _)| since);
        // Less and less often: one that does not die hangs in the kernel.
        let pause = now.saturating_sub(since).clamp(PARTING_LOOK, Duration::from_secs(1));
        self.strays = Some((since, now + pause));
    }

    /// Moves one job on: kills it further, or notices that it ended.
    fn step(&mut self, key: &str, now: Duration) {
        let Some(live) = self.live.get_mut(key) else { return };
        if let Some(killing) = live.killing.as_mut() {
            if !killing.is_due(now) && live.exit.is_none() {
                return;
            }
            let snapshot = Snapshot::take();
            let owned = self.claims.owned(key, &snapshot, &self.live, self.held.as_ref());
            // The borrow of all jobs is over; take this one again.
            let Some(live) = self.live.get_mut(key) else { return };
            let Some(killing) = live.killing.as_mut() else { return };
            let patience = killing.step(&owned, &snapshot, now);
            let gone = owned.is_empty() && live.exit.is_some();
            if gone || !patience {
                self.end(key, &owned, now);
            }
            return;
        }
        if live.exit.is_none() {
            return;
        }
        let left = self.left(key);
        let Some(live) = self.live.get_mut(key) else { return };
        let since = live.exit.as_ref().map_or(now, |(_, at)| *at);
        if left.is_empty() || (live.told.is_none() && now >= since + PARTING) {
            self.end(key, &left, now);
        }
    }

    /// What still runs of a job whose root has ended.
    fn left(&mut self, key: &str) -> Vec<i32> {
        if !self.children || own_children().iter().all(|pid| self.claims.is_root(*pid)) {
            return Vec::new();
        }
        let snapshot = Snapshot::take();
        self.claims.owned(key, &snapshot, &self.live, self.held.as_ref())
    }

    /// Tells how a job ended; it stays as long as something of it runs.
    fn end(&mut self, key: &str, left: &[i32], now: Duration) {
        let Some(live) = self.live.get_mut(key) else { return };
        let killed = live.killing.is_some();
        if live.told.is_none() {
            live.drain(&mut self.buffer);
            let (exit, at) = live.exit.clone().unwrap_or((How::Signal(libc::SIGKILL), now));
            let how = match &live.killing {
                Some(killing) => How::Killed(killing.why),
                None => exit,
            };
            let left: Vec<_> =
                left.iter().map(|pid| Left { pid: *pid, command: command_line(*pid) }).collect();
            let took = at.saturating_sub(live.started);
            let (output, errors) = live.shown();
            let ended = Ended { how, took, output, errors, left, rest: None };
            if !ended.left.is_empty() && !killed {
                return self.tell(key, ended);
            }
            if let Some(live) = self.live.remove(key) {
                self.bury(&live.job, live.root, ended, live.waiters);
                self.answer_stoppers(live.stoppers);
            }
        } else if left.is_empty() || killed {
            self.over(key);
        }
    }

    /// Tells the end of a job that left processes behind.
    fn tell(&mut self, key: &str, ended: Ended) {
        let _ = self.spool.write(&Line::Ended { key: key.to_owned(), ended: ended.clone() });
        let Some(live) = self.live.get_mut(key) else { return };
        for waiter in live.waiters.drain(..) {
            self.said.push(Said::Answer(waiter, Says::Ended(Box::new(ended.clone()))));
        }
        if live.job.background {
            self.said.push(news(&live.job, &ended));
        }
        live.told = Some(ended);
    }

    /// Notices that the last process that a job left behind is gone.
    fn over(&mut self, key: &str) {
        let Some(mut live) = self.live.remove(key) else { return };
        live.drain(&mut self.buffer);
        let Some(told) = live.told.take() else { return };
        // How it ended stays as it was told; only what it left behind was killed.
        let rest = live.killing.as_ref().map(|killing| killing.why);
        let (output, errors) = live.shown();
        let ended = Ended { rest, output, errors, left: Vec::new(), ..told };
        let place = self.spool.write(&Line::Ended { key: key.to_owned(), ended: ended.clone() });
        let _ = self.spool.write(&Line::Over { key: key.to_owned() });
        self.said.push(news(&live.job, &ended));
        self.remember(&live.job, live.root, place, ended);
        self.answer_stoppers(live.stoppers);
    }

    /// Writes down how a job ended and tells it.
    fn bury(&mut self, job: &Job, pid: i32, ended: Ended, waiters: Vec<Waiter>) {
        let line = Line::Ended { key: job.key.clone(), ended };
        let place = self.spool.write(&line);
        let Line::Ended { ended, .. } = line else { return };
        for waiter in waiters {
            self.said.push(Said::Answer(waiter, Says::Ended(Box::new(ended.clone()))));
        }
        if job.background {
            self.said.push(news(job, &ended));
        }
        self.remember(job, pid, place, ended);
    }

    fn remember(&mut self, job: &Job, pid: i32, place: io::Result<Place>, ended: Ended) {
        let past = Past {
            number: self.past.len() as u64,
            session: job.session.clone(),
            command: if job.background { job.program.line() } else { String::new() },
            background: job.background,
            pid,
            ended: place.map_or_else(|_| Kept::Held(Box::new(ended)), Kept::Logged),
        };
        self.past.insert(job.key.clone(), past);
        self.trim();
    }

    fn answer_stoppers(&mut self, stoppers: Vec<Waiter>) {
        self.said.extend(stoppers.into_iter().map(|waiter| Said::Answer(waiter, Says::Done)));
    }

    /// Says again which background jobs of a session have ended.
    pub(super) fn repeat_news(&self, session: &str) -> Vec<Says> {
        let past = self.past.iter().filter(|(_, past)| past.session == session && past.background);
        let past = past.filter_map(|(key, _)| Some((key, self.past_end(key)?)));
        let live = self.live.iter().filter(|(_, live)| live.job.session == session);
        let told = live.filter(|(_, live)| live.job.background);
        let told = told.filter_map(|(key, live)| Some((key, live.told.clone()?)));
        past.chain(told)
            .map(|(key, ended)| Says::News {
                key: key.clone(),
                session: session.to_owned(),
                ended: Box::new(ended),
            })
            .collect()
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

fn news(job: &Job, ended: &Ended) -> Said {
    let says = Says::News {
        key: job.key.clone(),
        session: job.session.clone(),
        ended: Box::new(ended.clone()),
    };
    Said::News(job.session.clone(), says)
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
        assert_eq!(ended.how, How::Killed(Why::Wall(BACKSTOP)));
        assert!(jobs.is_idle());
    }

    #[test]
    fn a_job_in_the_background_has_the_limit_it_asked_for() {
        let (_directory, mut jobs, root) = jobs("background", true);
        jobs.advance(START + 2 * BACKSTOP);
        assert!(jobs.live["background"].killing.is_none());
        jobs.advance(START + 10 * BACKSTOP);
        let ended = ended(&mut jobs, root, START + 10 * BACKSTOP);
        assert_eq!(ended.how, How::Killed(Why::Wall(10 * BACKSTOP)));
    }
}
