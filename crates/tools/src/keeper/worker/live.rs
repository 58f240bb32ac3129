//! One running job: its process, its pipes, its limits.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::WaitStatus;

use super::input::{Input, Open};
use super::jobs::Waiter;
use super::kill::Killing;
use super::output::Output;
use super::spawn::{Entrance, Ready, Start};
use crate::keeper::shared::marks::{JOB_MARK, KEEPER_MARK};
use crate::keeper::shared::{Ended, Exit, Job, KillReason, Shown, Streams};
use crate::sandbox::{Chambers, Spawning};

/// How often it is looked whether what a job left behind went: its children end unseen.
pub(super) const PARTING_LOOK: Duration = Duration::from_millis(10);
/// Output is read in pieces of this size, and so many of them before others have their turn.
pub(super) const PIECE: usize = 64 << 10;
const PIECES: usize = 16;

/// So long nobody looks at a job's output: most have ended by then, and one look is enough. The pipe
/// holds what comes meanwhile.
const YOUNG: Duration = Duration::from_millis(3);

/// A job of which something runs.
pub(super) struct Live {
    pub(super) job: Job,
    pub(super) root: i32,
    /// Tells whether it became its program, where that was not waited for.
    pub(super) spawning: Option<Spawning>,
    pub(super) brand: Option<u64>,
    /// How old its process is.
    pub(super) forked: Duration,
    pub(super) started: Duration,
    wrote: Duration,
    young: bool,
    pub(super) pipe: Option<OwnedFd>,
    pub(super) output: Output,
    /// Standard error, where it is read by itself. It is bounded by what is shown of it.
    errors: Option<(Option<OwnedFd>, Output)>,
    pub(super) input: Option<Input>,
    /// How its root ended, and when.
    pub(super) exit: Option<(Exit, Duration)>,
    /// What was told at its end, when it left processes behind.
    pub(super) told: Option<Ended>,
    pub(super) killing: Option<Killing>,
    /// Who waits for its end.
    pub(super) waiters: Vec<Waiter>,
    /// Who waits until nothing of it is left.
    pub(super) stoppers: Vec<Waiter>,
}

/// Where what a job writes goes.
pub(super) struct Outputs {
    pub(super) output: Output,
    /// For standard error, where it is read by itself.
    pub(super) errors: Output,
}

/// Which way a descriptor is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    From,
    To,
}

impl Live {
    /// A job whose process is there since `forked` and runs since `now`.
    pub(super) fn new(
        job: &Job,
        started: Started,
        outputs: Outputs,
        brand: Option<u64>,
        forked: Duration,
        now: Duration,
    ) -> Self {
        let Started { root, pipe, errors, input, spawning } = started;
        let mut live = Self {
            job: Job {
                key: job.key.clone(),
                session: job.session.clone(),
                program: job.program.clone(),
                directory: job.directory.clone(),
                // Not needed any more, and long.
                environment: Vec::new(),
                sandbox: None,
                given: None,
                ..*job
            },
            root,
            spawning,
            brand,
            forked,
            started: now,
            wrote: now,
            young: true,
            pipe: Some(pipe),
            output: outputs.output,
            errors: errors.map(|pipe| (Some(pipe), outputs.errors)),
            input,
            exit: None,
            told: None,
            killing: None,
            waiters: Vec::new(),
            stoppers: Vec::new(),
        };
        live.flush_input();
        live
    }

    /// What it wrote, and what to standard error where that is told apart.
    pub(super) fn shown(&mut self) -> (Shown, Option<Box<Shown>>) {
        self.output.settle();
        if let Some((_, errors)) = &mut self.errors {
            errors.settle();
        }
        let errors = self.errors.as_ref().map(|(_, errors)| Box::new(errors.shown()));
        (self.output.shown(), errors)
    }

    pub(super) fn group(&self) -> i32 {
        self.root
    }

    pub(super) fn enforce(&mut self, now: Duration) {
        if self.exit.is_some() || self.killing.is_some() {
            return;
        }
        let why = if let Some(wall) = self.job.longest().filter(|wall| now >= self.started + *wall)
        {
            KillReason::Wall(wall)
        } else if let Some(idle) = self.job.limits.idle.filter(|idle| now >= self.wrote + *idle) {
            KillReason::Idle(idle)
        } else {
            return;
        };
        self.killing = Some(Killing::new(why, now));
    }

    pub(super) fn due(&self) -> Option<Duration> {
        if let Some(killing) = &self.killing {
            return Some(killing.due());
        }
        if let Some((_, at)) = &self.exit {
            // What was left behind ends as a child of this process, which is signalled.
            return self.told.is_none().then_some(*at + PARTING_LOOK);
        }
        let wall = self.job.longest().map(|wall| self.started + wall);
        let idle = self.job.limits.idle.map(|idle| self.wrote + idle);
        let look = self.young.then_some(self.started + YOUNG);
        wall.into_iter().chain(idle).chain(look).min()
    }

    /// The outputs that are waited for.
    pub(super) fn watched(&self) -> impl Iterator<Item = &OwnedFd> {
        let errors = self.errors.as_ref().and_then(|(pipe, _)| pipe.as_ref());
        self.pipe.iter().chain(errors).filter(|_| !self.young)
    }

    pub(super) fn transfer(&mut self, buffer: &mut [u8], now: Duration) {
        self.young &= now < self.started + YOUNG;
        if self.young {
            return self.flush_input();
        }
        let total = |live: &Self| {
            live.output.total() + live.errors.as_ref().map_or(0, |(_, errors)| errors.total())
        };
        let before = total(self);
        self.drain(buffer);
        if total(self) > before {
            self.wrote = now;
        }
        self.flush_input();
    }

    /// Reads what is in the pipes, without waiting for their end.
    pub(super) fn drain(&mut self, buffer: &mut [u8]) {
        drain(&mut self.pipe, &mut self.output, buffer);
        if let Some((pipe, errors)) = &mut self.errors {
            drain(pipe, errors, buffer);
        }
    }

    pub(super) fn flush_input(&mut self) {
        if self.input.as_mut().is_some_and(|input| input.flush() == Open::No) {
            self.input = None;
        }
    }
}

fn drain(pipe: &mut Option<OwnedFd>, output: &mut Output, buffer: &mut [u8]) {
    for _ in 0..PIECES {
        let Some(open) = &pipe else { return };
        match rustix::io::read(open, &mut *buffer) {
            Ok(0) => *pipe = None,
            Ok(length) => output.push(&buffer[..length]),
            Err(Errno::AGAIN) => return,
            Err(Errno::INTR) => {}
            Err(_) => *pipe = None,
        }
    }
}

pub(super) fn how(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Signal(0),
    }
}

/// Why a job could not be started.
pub(super) fn reason(job: &Job, error: &io::Error) -> String {
    if job.directory.is_dir() {
        error.to_string()
    } else {
        format!("the directory {} does not exist", job.directory.display())
    }
}

/// A process that was started, and our ends of its pipes.
pub(super) struct Started {
    root: i32,
    pipe: OwnedFd,
    errors: Option<OwnedFd>,
    input: Option<Input>,
    /// Tells whether it became its program, where that was not waited for.
    spawning: Option<Spawning>,
}

/// What every process of a keeper is started with.
pub(super) struct StartContext<'a> {
    /// The keeper's name, which marks the process.
    pub(super) keeper: &'a str,
    /// What a job reads that has no input and was lent no connection.
    pub(super) nothing: &'a OwnedFd,
    /// Where jobs with a sandbox are started.
    pub(super) chambers: &'a mut Chambers,
}

/// The pipes of a process that is about to be there.
pub(super) struct Pipes {
    pipe: OwnedFd,
    errors: Option<OwnedFd>,
    input: Option<Input>,
    /// What the process takes over, open until it is there.
    pub(super) theirs: Vec<OwnedFd>,
}

impl Pipes {
    /// They are those of this process.
    pub(super) fn of(self, root: i32, spawning: Option<Spawning>) -> Started {
        let Self { pipe, errors, input, .. } = self;
        Started { root, pipe, errors, input, spawning }
    }
}

/// A pipe whose first end, which is ours, never blocks.
fn pipe_from() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

/// Starts the process of a job, which may have been lent a connection.
pub(super) fn start(
    context: &mut StartContext<'_>,
    job: &Job,
    lent: Option<&OwnedFd>,
) -> io::Result<Started> {
    let (ready, pipes) = lay_out(context, job, lent)?;
    let root = match &job.sandbox {
        Some(sandbox) => context.chambers.spawn(sandbox, ready)?,
        None => ready.spawn(Entrance::default())?,
    };
    Ok(pipes.of(root, None))
}

/// Lays out what the process of a job is started with.
pub(super) fn lay_out(
    context: &StartContext<'_>,
    job: &Job,
    lent: Option<&OwnedFd>,
) -> io::Result<(Ready, Pipes)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    let (pipe, end) = pipe_from()?;
    let errors = match job.streams {
        Streams::Together | Streams::Lent => None,
        Streams::Apart => Some(pipe_from()?),
    };
    let input = if job.input || job.given.is_some() {
        let (end, input) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&input, true)?;
        let input = match &job.given {
            Some(bytes) => Input::given(input, bytes.clone()),
            None => Input::new(input),
        };
        Some((end, input))
    } else {
        None
    };
    let own = job.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let environment: Vec<(&str, &str)> =
        own.chain([(KEEPER_MARK, context.keeper), (JOB_MARK, &job.key)]).collect();
    let ready = Start {
        program: &job.program,
        directory: &job.directory,
        environment: &environment,
        input: lent.unwrap_or(input.as_ref().map_or(context.nothing, |(end, _)| end)).as_fd(),
        output: lent.unwrap_or(&end).as_fd(),
        errors: errors.as_ref().map_or(end.as_fd(), |(_, end)| end.as_fd()),
    }
    .ready()?;
    let mut theirs = vec![end];
    let errors = errors.map(|(errors, end)| {
        theirs.push(end);
        errors
    });
    let input = input.map(|(end, input)| {
        theirs.push(end);
        input
    });
    Ok((ready, Pipes { pipe, errors, input, theirs }))
}
