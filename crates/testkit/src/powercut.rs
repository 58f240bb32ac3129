//! The states in which a power cut may leave a disk, built from a recorded run.
//!
//! The model is harsh, and says so: a file's bytes and size are durable only after a sync of that
//! file, a directory's entries only after a sync of that directory, and anything not yet durable
//! may have happened or not, each by itself and a write even by sectors of 512 bytes. Only two
//! things are atomic: one change of names (a rename never loses the file), which is settled by the
//! sync of the directory it arrives in, and one sector.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::oplog::Op;
use crate::workers::run_twice;

mod choice;
mod content;
mod scratch;
mod snapshot;
mod state;
mod volume;

pub use snapshot::Snapshot;
pub use state::State;

use choice::Choice;
use volume::Volume;

/// Names one state to look at, as `117:torn-2`; all others are left out.
pub const ONLY_VARIABLE: &str = "TESTKIT_CUT_ONLY";

/// Whether the disk does what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// A sync makes durable.
    Honest,
    /// A sync makes nothing durable: the positive control, under which a check must see loss.
    IgnoresSync,
}

/// Which of the changes that were not durable have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// Some, by lot.
    Subset(u32),
    /// Some, by lot, and of each write some sectors.
    Torn(u32),
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("nothing"),
            Self::Everything => formatter.write_str("everything"),
            Self::Subset(number) => write!(formatter, "subset-{number}"),
            Self::Torn(number) => write!(formatter, "torn-{number}"),
        }
    }
}

/// A power cut after each operation of a recorded run.
pub struct PowerCut {
    operations: Vec<Op>,
    initial: Snapshot,
    disk: Disk,
    seed: u64,
    subsets: u32,
    every: usize,
    skip: Box<dyn Fn(&Path) -> bool + Sync>,
}

impl PowerCut {
    /// Power cuts of a run that began with an empty directory, on an honest disk.
    pub fn of(operations: Vec<Op>) -> Self {
        Self {
            operations,
            initial: Snapshot::default(),
            disk: Disk::Honest,
            seed: 1,
            subsets: 2,
            every: 1,
            skip: Box::new(|_| false),
        }
    }

    /// Sets what was in the directory, durably, before the recording began.
    pub fn starting_from(mut self, initial: Snapshot) -> Self {
        self.initial = initial;
        self
    }

    /// Sets the disk.
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disk = disk;
        self
    }

    /// Sets the seed of the lots.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how many lots are drawn after each operation, for whole writes and for torn ones each.
    pub fn subsets(mut self, count: u32) -> Self {
        self.subsets = count;
        self
    }

    /// Cuts after every n-th operation only, and after the last.
    pub fn every(mut self, step: usize) -> Self {
        self.every = step.max(1);
        self
    }

    /// Leaves files out, such as one whose content is mapped and was not recorded.
    pub fn skip(mut self, skip: impl Fn(&Path) -> bool + Sync + 'static) -> Self {
        self.skip = Box::new(skip);
        self
    }

    /// The states, in the order of the run. A state that was there after the operation
    /// before, with as much acknowledged, is left out.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let only = std::env::var(ONLY_VARIABLE).ok();
        let mut volume = Volume::new(&self.initial);
        let mut recent: Vec<State> = Vec::new();
        (0..=self.operations.len())
            .flat_map(move |at| {
                if let Some(done) = at.checked_sub(1) {
                    volume.apply(&self.operations[done], self.disk);
                }
                if at % self.every != 0 && at != self.operations.len() {
                    return Vec::new();
                }
                let mut current: Vec<State> = Vec::new();
                let mut found = Vec::new();
                for variant in self.variants() {
                    let choice = Choice::new(variant, self.seed, at);
                    let state = volume.state(at, variant, choice, &*self.skip);
                    if current.iter().any(|known| known.same_as(&state)) {
                        continue;
                    }
                    if !recent.iter().any(|known| known.same_as(&state)) {
                        found.push(state.clone());
                    }
                    current.push(state);
                }
                recent = current;
                found
            })
            .filter(move |state| only.as_ref().is_none_or(|only| *only == state.name()))
    }

    /// Writes every state into an empty directory and has it checked, two at a time; returns how
    /// many there were. Panics with the state, and how to see it again, where the check does.
    pub fn verify(&self, check: impl Fn(&State, &Path) + Sync) -> usize {
        let states = Mutex::new(self.states());
        let checked = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let next = states.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
                let Some(state) = next else { return };
                let directory = scratch::directory();
                state.materialise(directory.path());
                let verdict = catch_unwind(AssertUnwindSafe(|| check(&state, directory.path())));
                if let Err(panic) = verdict {
                    stop.store(true, Ordering::Relaxed);
                    eprintln!(
                        "The state {name} with seed {seed} is wrong; the last operation was {last}. \
                         Run this test again with {ONLY_VARIABLE}={name}.",
                        name = state.name(),
                        seed = self.seed,
                        last = self.describe(state.at),
                    );
                    resume_unwind(panic);
                }
                checked.fetch_add(1, Ordering::Relaxed);
            }
        };
        run_twice(work);
        checked.into_inner()
    }

    fn variants(&self) -> impl Iterator<Item = Variant> {
        [Variant::Nothing, Variant::Everything]
            .into_iter()
            .chain((0..self.subsets).map(Variant::Subset))
            .chain((0..self.subsets).map(Variant::Torn))
    }

    /// The operation before a cut, short enough for a message.
    fn describe(&self, at: usize) -> String {
        match at.checked_sub(1).map(|last| &self.operations[last]) {
            None => "none".to_owned(),
            Some(Op::Write { path, offset, data, .. }) => {
                format!("a write of {} bytes at {offset} to {}", data.len(), path.display())
            }
            Some(Op::Acknowledge { data }) => {
                format!("the acknowledgement {:?}", String::from_utf8_lossy(data))
            }
            Some(other) => format!("{other:?}"),
        }
    }
}
