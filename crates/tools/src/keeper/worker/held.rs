//! A job whose process is there already and waits for the word to begin.
//!
//! While an agent writes down that a call is about to start, its process is got ready: it is inside
//! its sandbox, has its pipes and its directory, and needs only become the program. The agent keeps the
//! other end of its gate and opens it itself, so nobody stands between the last word of the journal and
//! the command. Nothing of the job has happened until then, and without that word it ends unseen.
//!
//! Whether it began is settled once, in the memory that the process borrows from the keeper: by the
//! process, or by the keeper when it lets it go. So whoever asks gets an answer that stays true.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::jobs::Waiter;
use super::live::{Pipes, StartContext, Started, lay_out};
use super::spawn::Beginning;
use crate::keeper::shared::brand::brand_of;
use crate::keeper::shared::protocol::Asks;
use crate::keeper::shared::{Job, Streams};
use crate::sandbox::Spawning;

/// So long a process is held. Writing down takes a moment; whoever takes longer starts it anew.
const HELD: Duration = Duration::from_secs(1);
/// It begins unheard. So often it is looked whether it did: most have ended before the first time.
const FIRST_LOOK: Duration = Duration::from_millis(3);
const LOOK: Duration = Duration::from_millis(10);

/// A job that is ready to begin.
pub(super) struct Held {
    pub(super) job: Job,
    pub(super) brand: Option<u64>,
    /// Who asked for it, and is told its end.
    pub(super) waiter: Waiter,
    /// When it was got ready; its process is that old.
    pub(super) since: Duration,
    look: Duration,
    process: Waiting,
}

/// A job that began, with what [`Held`] knew of it.
pub(super) struct Begun {
    pub(super) job: Job,
    pub(super) brand: Option<u64>,
    pub(super) waiter: Waiter,
    /// Since when its process is there.
    pub(super) forked: Duration,
    /// Since when it runs.
    pub(super) started: Duration,
    pub(super) process: Started,
}

/// What became of a job that was held.
pub(super) enum Settled {
    /// It never began, and never will: its key, and who was to be told.
    Never(String, Waiter),
    Begun(Box<Begun>),
}

impl Held {
    /// Gets the process of a job ready, which waits at a gate. Returns `None` if that cannot be done
    /// ahead.
    pub(super) fn new(
        context: &mut StartContext<'_>,
        job: Job,
        gate: OwnedFd,
        brand: Option<u64>,
        waiter: Waiter,
        now: Duration,
    ) -> Option<Self> {
        let process = Waiting::new(context, &job, gate).ok()??;
        Some(Self { job, brand, waiter, since: now, look: now + FIRST_LOOK, process })
    }

    /// Whether a job can be got ready ahead. One that reads needs the keeper from its beginning.
    pub(super) fn suits(job: &Job) -> bool {
        let reads = job.input || job.given.is_some();
        job.sandbox.is_some() && !job.background && !reads && job.streams != Streams::Lent
    }

    /// Whether a request is about it, so that it must be settled first.
    pub(super) fn is_meant(&self, asks: &Asks) -> bool {
        match asks {
            Asks::Await { key }
            | Asks::Poll { key }
            | Asks::Read { key, .. }
            | Asks::Write { key, .. }
            | Asks::CloseInput { key }
            | Asks::Stop { key } => self.job.key == *key,
            Asks::StopSession { session } | Asks::List { session } => self.job.session == *session,
            // Nothing can be started in the sandbox of one that is held.
            Asks::Start { .. } | Asks::Run { .. } | Asks::Prepare { .. } => true,
            // Who attaches hears first what others asked for, and who leaves means all that is its own.
            Asks::Attach { .. } | Asks::Leave | Asks::Secrets { .. } | Asks::Lend { .. } => false,
        }
    }

    /// Its number, as soon as there is one.
    pub(super) fn pid(&self) -> Option<i32> {
        self.process.way.as_ref().and_then(|(_, spawning, _)| spawning.number())
    }

    /// Whether a process is the one that waits.
    pub(super) fn has(&self, pid: i32) -> bool {
        self.pid() == Some(pid) || (self.brand.is_some() && brand_of(pid) == self.brand)
    }

    /// Whether it has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.process.time().is_some()
    }

    /// Whether it is let go now.
    pub(super) fn is_over(&self, now: Duration) -> bool {
        now >= self.since + HELD
    }

    /// When to look at it again.
    pub(super) fn due(&self) -> Duration {
        self.look
    }

    /// It was looked at.
    pub(super) fn looked(&mut self, now: Duration) {
        if now >= self.look {
            self.look = now + LOOK;
        }
    }

    /// Lets it go unless it has begun. `gone` where its process was reaped.
    pub(super) fn settle(mut self, gone: bool) -> Settled {
        let begun = self.process.settle(gone);
        let Self { job, brand, waiter, since, .. } = self;
        match begun {
            None => Settled::Never(job.key, waiter),
            Some((started, process)) => Settled::Begun(Box::new(Begun {
                job,
                brand,
                waiter,
                forked: since,
                started,
                process,
            })),
        }
    }
}

/// A process behind its gate. Dropped, it is let go, and is gone unless it has begun.
struct Waiting {
    way: Option<(Beginning, Spawning, Pipes)>,
}

impl Waiting {
    fn new(context: &mut StartContext<'_>, job: &Job, gate: OwnedFd) -> io::Result<Option<Self>> {
        let Some(sandbox) = &job.sandbox else { return Ok(None) };
        let (mut ready, mut pipes) = lay_out(context, job, None)?;
        let beginning = ready.wait_behind(&gate);
        pipes.theirs.push(gate);
        let spawning = context.chambers.begin(sandbox, ready)?;
        Ok(spawning.map(|spawning| Self { way: Some((beginning, spawning, pipes)) }))
    }

    /// Since when it has been running.
    fn time(&self) -> Option<Duration> {
        self.way.as_ref().and_then(|(beginning, ..)| beginning.time())
    }

    /// Lets it go, or answers what there is of it when it has begun, and since when.
    fn settle(&mut self, gone: bool) -> Option<(Duration, Started)> {
        let (beginning, spawning, pipes) = self.way.take()?;
        beginning.prevent();
        // It is known by its number before it can begin.
        if let (Some(time), Some(root)) = (beginning.time(), spawning.number()) {
            return Some((time, pipes.of(root, Some(spawning))));
        }
        if gone {
            drop(spawning.outcome());
        } else {
            // Its place is free for the next when this returns.
            spawning.give_up();
        }
        None
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.settle(false);
    }
}
