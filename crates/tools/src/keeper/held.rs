//! A job whose process is there already and waits for the word to begin.
//!
//! While an agent writes down that a call is about to start, its process is got ready: it is inside
//! its sandbox, has its pipes and its directory, and needs only become the program. Nothing of the job
//! has happened until it is told to begin, and without that word it ends unseen.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::brand::brand_of;
use super::job::{Job, Streams};
use super::live::{Pipes, Started, lay_out};
use super::spawn::{Opener, gate};
use crate::sandbox::{Chambers, Spawning};

/// So long a process is held. Writing down takes a moment; whoever takes longer starts it anew.
const HELD: Duration = Duration::from_secs(1);

/// A job that is ready to begin.
pub(super) struct Held {
    pub(super) job: Job,
    pub(super) brand: Option<u64>,
    /// The connection that asked for it.
    pub(super) connection: u64,
    /// When it was got ready; its process is that old.
    pub(super) since: Duration,
    pub(super) process: Waiting,
}

impl Held {
    /// Gets the process of a job ready; nothing where that cannot be done ahead.
    pub(super) fn new(
        keeper: &str,
        job: Job,
        nothing: &OwnedFd,
        chambers: &mut Chambers,
        (brand, connection): (Option<u64>, u64),
        now: Duration,
    ) -> Option<Self> {
        let process = Waiting::new(keeper, &job, nothing, chambers).ok()??;
        Some(Self { job, brand, connection, since: now, process })
    }

    /// When it is let go.
    pub(super) fn until(&self) -> Duration {
        self.since + HELD
    }

    /// Whether a process is the one that waits.
    pub(super) fn has(&self, pid: i32) -> bool {
        self.process.pid() == Some(pid) || (self.brand.is_some() && brand_of(pid) == self.brand)
    }

    /// Whether a job can be got ready ahead.
    pub(super) fn suits(job: &Job) -> bool {
        job.sandbox.is_some() && !job.background && job.streams != Streams::Lent
    }
}

/// A process behind its gate. Dropped, it is let go without having begun, and is gone.
pub(super) struct Waiting {
    way: Option<(Opener, Spawning, Pipes)>,
}

impl Waiting {
    fn new(
        keeper: &str,
        job: &Job,
        nothing: &OwnedFd,
        chambers: &mut Chambers,
    ) -> io::Result<Option<Self>> {
        let Some(sandbox) = &job.sandbox else { return Ok(None) };
        let (mut ready, mut pipes) = lay_out(keeper, job, nothing, None)?;
        let (opener, closed) = gate()?;
        ready.wait_behind(&closed, &opener);
        pipes.theirs.push(closed);
        let spawning = chambers.begin(sandbox, ready)?;
        Ok(spawning.map(|spawning| Self { way: Some((opener, spawning, pipes)) }))
    }

    /// Its number, as soon as there is one.
    pub(super) fn pid(&self) -> Option<i32> {
        self.way.as_ref().and_then(|(_, spawning, _)| spawning.number())
    }

    /// It ended before it began, and was reaped.
    pub(super) fn ended(mut self) {
        if let Some((opener, spawning, _)) = self.way.take() {
            drop(opener);
            let _ = spawning.outcome();
        }
    }

    /// Lets it become its program. Whether it could is known when it has ended.
    pub(super) fn begin(mut self) -> io::Result<(Started, Option<Spawning>)> {
        let gone = || io::Error::other("it was let go");
        let (opener, spawning, pipes) = self.way.take().ok_or_else(gone)?;
        opener.open()?;
        match spawning.number() {
            Some(root) => Ok((pipes.of(root), Some(spawning))),
            None => Ok((pipes.of(spawning.wait()?), None)),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((opener, spawning, _)) = self.way.take() {
            drop(opener);
            // Its place is free for the next when this returns.
            spawning.give_up();
        }
    }
}
