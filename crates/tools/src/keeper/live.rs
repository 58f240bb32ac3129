//! One running job: its process, its pipes, its limits.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::WaitStatus;

use super::ending::{Ended, How, Why};
use super::input::{Input, Open};
use super::job::{BACKSTOP, Job, Program};
use super::jobs::Waiter;
use super::kill::Killing;
use super::output::Output;
use super::{JOB_MARK, KEEPER_MARK};
use crate::sandbox::Chambers;

/// How often it is looked whether what a job left behind went: its children end unseen.
pub(super) const PARTING_LOOK: Duration = Duration::from_millis(10);
/// Output is read in pieces of this size, and so many of them before others have their turn.
pub(super) const PIECE: usize = 64 << 10;
const PIECES: usize = 16;

/// A job of which something runs.
pub(super) struct Live {
    pub(super) job: Job,
    pub(super) root: i32,
    pub(super) brand: Option<u64>,
    pub(super) started: Duration,
    wrote: Duration,
    pub(super) pipe: Option<OwnedFd>,
    pub(super) output: Output,
    pub(super) input: Option<Input>,
    /// How its root ended, and when.
    pub(super) exit: Option<(How, Duration)>,
    /// What was told at its end, when it left processes behind.
    pub(super) told: Option<Ended>,
    pub(super) killing: Option<Killing>,
    /// Who waits for its end.
    pub(super) waiters: Vec<Waiter>,
    /// Who waits until nothing of it is left.
    pub(super) stoppers: Vec<Waiter>,
}

/// Which way a descriptor is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    From,
    To,
}

impl Live {
    /// Starts a job; the error says why it cannot be.
    pub(super) fn start(
        keeper: &str,
        job: &Job,
        chambers: &mut Chambers,
        output: Output,
        brand: Option<u64>,
        now: Duration,
    ) -> Result<Self, String> {
        let (root, pipe, input) =
            spawn(keeper, job, chambers).map_err(|error| reason(job, &error))?;
        Ok(Self {
            job: Job {
                key: job.key.clone(),
                session: job.session.clone(),
                program: job.program.clone(),
                directory: job.directory.clone(),
                // Not needed any more, and long.
                environment: Vec::new(),
                sandbox: None,
                ..*job
            },
            root,
            brand,
            started: now,
            wrote: now,
            pipe: Some(pipe),
            output,
            input,
            exit: None,
            told: None,
            killing: None,
            waiters: Vec::new(),
            stoppers: Vec::new(),
        })
    }

    pub(super) fn group(&self) -> i32 {
        self.root
    }

    /// The limit on its time.
    fn wall(&self) -> Option<Duration> {
        if self.job.background {
            self.job.limits.wall
        } else {
            Some(self.job.limits.wall.map_or(BACKSTOP, |wall| wall.min(BACKSTOP)))
        }
    }

    pub(super) fn enforce(&mut self, now: Duration) {
        if self.exit.is_some() || self.killing.is_some() {
            return;
        }
        let why = if let Some(wall) = self.wall().filter(|wall| now >= self.started + *wall) {
            Why::Wall(wall)
        } else if let Some(idle) = self.job.limits.idle.filter(|idle| now >= self.wrote + *idle) {
            Why::Idle(idle)
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
        let wall = self.wall().map(|wall| self.started + wall);
        let idle = self.job.limits.idle.map(|idle| self.wrote + idle);
        wall.into_iter().chain(idle).min()
    }

    pub(super) fn transfer(&mut self, buffer: &mut [u8], now: Duration) {
        let before = self.output.total();
        self.drain(buffer);
        if self.output.total() > before {
            self.wrote = now;
        }
        self.flush_input();
    }

    /// Reads what is in the pipe, without waiting for its end.
    pub(super) fn drain(&mut self, buffer: &mut [u8]) {
        for _ in 0..PIECES {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut *buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.output.push(&buffer[..length]),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => self.pipe = None,
            }
        }
    }

    pub(super) fn flush_input(&mut self) {
        if self.input.as_mut().is_some_and(|input| input.flush() == Open::No) {
            self.input = None;
        }
    }
}

pub(super) fn how(status: WaitStatus) -> How {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => How::Code(code),
        (None, Some(signal)) => How::Signal(signal),
        (None, None) => How::Signal(0),
    }
}

fn reason(job: &Job, error: &io::Error) -> String {
    if job.directory.is_dir() {
        error.to_string()
    } else {
        format!("the directory {} is not there", job.directory.display())
    }
}

/// Starts the process of a job: its number, its output, its input.
#[expect(clippy::disallowed_methods, reason = "children belong to the keeper, which is here")]
fn spawn(
    keeper: &str,
    job: &Job,
    chambers: &mut Chambers,
) -> io::Result<(i32, OwnedFd, Option<Input>)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    let (output, end) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&output, true)?;
    let mut command = match &job.program {
        Program::Line(line) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(line);
            command
        }
        Program::Arguments(arguments) => {
            let (program, rest) = arguments
                .split_first()
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program given"))?;
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
    };
    // No hook before the exec: it would cost the fast way to spawn.
    command
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .env(KEEPER_MARK, keeper)
        .env(JOB_MARK, &job.key)
        .current_dir(&job.directory)
        .process_group(0)
        .stdout(end.try_clone()?)
        .stderr(end);
    let input = if job.input {
        let (end, input) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&input, true)?;
        command.stdin(end);
        Some(Input::new(input))
    } else {
        command.stdin(Stdio::null());
        None
    };
    let child = match &job.sandbox {
        Some(sandbox) => chambers.spawn(sandbox, command)?,
        None => command.spawn()?,
    };
    Ok((i32::try_from(child.id()).unwrap_or(0), output, input))
}
