//! Runs a command once for every point it passes, with a fault at that point.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::process::wait_with_deadline;
use crate::shim::{Kind, Mode, Shim};
use crate::workers::run_twice;

/// Names one run to repeat, as `kill:17`; all others are left out.
pub const ONLY_VARIABLE: &str = "TESTKIT_SWEEP_ONLY";

/// How many points a sample has, instead of what the test says.
pub const SAMPLE_VARIABLE: &str = "TESTKIT_SWEEP_SAMPLE";

/// A sweep of one fault over all points of a command.
pub struct Sweep {
    mode: Mode,
    kinds: Vec<Kind>,
    forever: bool,
    step: u64,
    sample: Option<u64>,
    deadline: Duration,
    pair: Option<(String, String)>,
}

/// What one run left, for the test to judge.
pub struct Outcome<'run> {
    /// The fault; [`Mode::Count`] for the first run, which has none.
    pub mode: Mode,
    /// The point that was struck, or 0 for the run without a fault.
    pub point: u64,
    /// Says whether the run came as far as the point. A program with threads may not.
    pub struck: bool,
    /// The watched directory.
    pub directory: &'run Path,
    /// How the command ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

/// What a sweep has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The points of the run without a fault.
    pub points: u64,
    /// The runs in which the fault struck.
    pub struck: u64,
}

impl Sweep {
    /// A sweep over every point, with a minute for each run.
    pub fn of(mode: Mode) -> Self {
        let kinds = match mode {
            Mode::Enospc => Kind::ON_A_FULL_DISK.to_vec(),
            _ => Vec::new(),
        };
        let deadline = Duration::from_secs(60);
        Self { mode, kinds, forever: false, step: 1, sample: None, deadline, pair: None }
    }

    /// Strikes only these kinds of call.
    pub fn only(mut self, kinds: &[Kind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// The names below the directory that [`Mode::Exchange`] and [`Mode::Blink`] exchange.
    pub fn pair(mut self, one: &str, other: &str) -> Self {
        self.pair = Some((one.to_owned(), other.to_owned()));
        self
    }

    /// Strikes every point after the first struck one too.
    pub fn forever(mut self) -> Self {
        self.forever = true;
        self
    }

    /// Takes every n-th point only, for a command with very many.
    pub fn every(mut self, step: u64) -> Self {
        self.step = step;
        self
    }

    /// Takes at most this many points, spread over all of them, or as many as [`SAMPLE_VARIABLE`] says. A
    /// command that passes no point of the kinds that were chosen is left alone.
    pub fn sample(mut self, most: u64) -> Self {
        let asked = std::env::var(SAMPLE_VARIABLE).ok();
        let most = asked.map_or(most, |asked| asked.parse().expect("a number"));
        self.sample = Some(most.max(1));
        self
    }

    /// Sets how long one run may take; one that takes longer hangs, and fails the test.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Counts the points, then runs for each of them, two at a time.
    ///
    /// `prepare` fills an empty directory and returns the command to run on it; `verify` judges
    /// what is left, and is also called for the run without a fault. What is kept beside the
    /// directory (`directory.with_file_name("acks")`) is not watched, belongs to this run alone and
    /// goes with it. Panics with the point, and how to run it again, where `verify` does.
    pub fn run(
        &self,
        prepare: impl Fn(&Path) -> Command + Sync,
        verify: impl Fn(&Outcome<'_>) + Sync,
    ) -> Swept {
        let points = self.one(Mode::Count, 0, &prepare, &verify).0;
        if points == 0 && self.sample.is_some() && !self.kinds.is_empty() {
            return Swept { points: 0, struck: 0 };
        }
        assert!(points > 0, "The command passed no point: it is not run under the shim.");
        let step = self.sample.map_or(self.step, |most| points.div_ceil(most).max(1));
        // A sample of one is in the middle.
        let first = if self.sample.is_some() { step.div_ceil(2) } else { 1 };
        let only = std::env::var(ONLY_VARIABLE).ok();
        let next = AtomicU64::new(first);
        let struck = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let point = next.fetch_add(step, Ordering::Relaxed);
                if point > points {
                    return;
                }
                if only.as_ref().is_some_and(|only| *only != format!("{}:{point}", self.mode)) {
                    continue;
                }
                let run = || self.one(self.mode, point, &prepare, &verify).1;
                match catch_unwind(AssertUnwindSafe(run)) {
                    Ok(hit) => _ = struck.fetch_add(u64::from(hit), Ordering::Relaxed),
                    Err(panic) => {
                        stop.store(true, Ordering::Relaxed);
                        eprintln!(
                            "The sweep failed at point {point} of {points} in mode {mode}. \
                             Run this test again with {ONLY_VARIABLE}={mode}:{point}.",
                            mode = self.mode
                        );
                        resume_unwind(panic);
                    }
                }
            }
        };
        run_twice(work);
        Swept { points, struck: struck.into_inner() }
    }

    /// One run; returns the points it passed and whether the fault struck.
    fn one(
        &self,
        mode: Mode,
        point: u64,
        prepare: &impl Fn(&Path) -> Command,
        verify: &impl Fn(&Outcome<'_>),
    ) -> (u64, bool) {
        let place = TempDir::with_prefix("sweep-").expect("a temporary directory");
        let directory = place.path().join("watched");
        std::fs::create_dir(&directory).expect("a directory of our own");
        let mut shim = Shim::under(&directory).mode(mode).at(point).only(&self.kinds);
        if self.forever {
            shim = shim.forever();
        }
        if let Some((one, other)) = &self.pair {
            shim = shim.pair(one, other);
        }
        let mut command = prepare(&directory);
        let (stdout, stderr) = (place.path().join("stdout"), place.path().join("stderr"));
        let mut child = shim
            .apply(&mut command)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a temporary file"))
            .stderr(File::create(&stderr).expect("a temporary file"))
            .spawn()
            .unwrap_or_else(|error| panic!("Could not start {command:?}: {error}."));
        let Some(status) = wait_with_deadline(&mut child, self.deadline) else {
            // It was not reaped, so the group is still that of this child.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().expect("our own child can be waited for");
            let said = std::fs::read_to_string(&stderr).unwrap_or_default();
            panic!("The command hangs: it did not end in {:?}. It said:\n{said}", self.deadline);
        };
        let points = shim.points();
        let struck = mode != Mode::Count && points >= point;
        verify(&Outcome {
            mode,
            point,
            struck,
            directory: &directory,
            status,
            stdout: std::fs::read(&stdout).expect("a temporary file"),
            stderr: std::fs::read(&stderr).expect("a temporary file"),
        });
        (points, struck)
    }
}
