//! Fair turns at writing, across processes.
//!
//! SQLite's own busy handler lets whoever just wrote barge in again; with eight processes the
//! longest wait is seconds. Here a process stands in [`line`](super::line), takes the *turn*, writes,
//! and lets it go: the one who just wrote queues behind those who wait.
//!
//! A hand-over between processes costs as much as a commit, so a process that is waited for may
//! *keep* its turn for a moment and write again without queueing: at most [`QUANTUM`] in all, and
//! not when it has nothing to write. With nobody waiting the turn is let go after every batch.
//!
//! The turn is a [`Gate`]: a lock that the kernel frees when its holder dies.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::files::Files;
use super::gate::{Gate, Patience};
use super::line::{is_wanted, take_in_order};
use crate::clock::uptime;
use crate::fsatomic::private_directory;
use crate::lock::lock;
use crate::{Error, Result};

/// How long a process that keeps writing keeps its turn while another waits.
const QUANTUM: Duration = Duration::from_millis(15);

/// How long a kept turn may lie idle before it is let go.
const IDLE: Duration = Duration::from_millis(1);

/// How long the one at the front sleeps at most before it tries the lock again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The gate of a store, and the line before it.
#[derive(Debug)]
pub(crate) struct Turnstile {
    gates: Arc<Gates>,
    /// Lets a kept turn go when it lies idle. Started when a turn is first kept.
    idler: OnceLock<()>,
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turnstile);

#[derive(Debug)]
struct Gates {
    turn: Gate,
    store: String,
    hold: Mutex<Hold>,
    changed: Condvar,
}

/// What this process has of the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Nothing,
    /// Writing, since this uptime.
    Writing(Duration),
    /// Not writing, but still holding on; since when, and how long after that it was last used.
    Kept(Duration, Duration),
    /// The store was closed.
    Closed,
}

impl Turnstile {
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let side = files.side();
        private_directory(&side).map_err(|error| Error::file(&side, &error))?;
        let gates = Gates {
            turn: Gate::open(&files.side_file("turn"), LOOK_AGAIN)?,
            store: files.database.display().to_string(),
            hold: Mutex::new(Hold::Nothing),
            changed: Condvar::new(),
        };
        Ok(Self { gates: Arc::new(gates), idler: OnceLock::new() })
    }

    /// Waits for the turn, behind those who came before. When nobody was served for `patience`, the
    /// error names who has it. Only one thread of a process asks at a time.
    pub(crate) fn enter(&self, patience: Duration) -> Result<Turn<'_>> {
        let gates = &self.gates;
        let mut hold = lock(&gates.hold);
        if let Hold::Kept(since, _) = *hold {
            *hold = Hold::Writing(since);
            return Ok(Turn(self));
        }
        drop(hold);
        let mut patience = Patience::new(patience, &gates.turn.shared);
        if !take_in_order(&gates.turn, &mut patience)? {
            return Err(gates.in_use());
        }
        *lock(&gates.hold) = Hold::Writing(uptime());
        Ok(Turn(self))
    }

    /// How many frames of the write-ahead log some process was about to copy last: a hint, so that
    /// not every process copies the same ones.
    pub(crate) fn copied_frames(&self) -> &AtomicU32 {
        self.gates.turn.shared.copied()
    }

    /// Keeps the turn for the next batch, or lets it go.
    fn leave(&self) -> Result<()> {
        let gates = &self.gates;
        let mut hold = lock(&gates.hold);
        let Hold::Writing(since) = *hold else { return Ok(()) };
        let used = uptime().saturating_sub(since);
        if used < QUANTUM && is_wanted(&gates.turn) && self.has_idler() {
            *hold = Hold::Kept(since, used);
            gates.changed.notify_one();
            return Ok(());
        }
        *hold = Hold::Nothing;
        gates.turn.give()
    }

    fn has_idler(&self) -> bool {
        if self.idler.get().is_none() {
            let gates = self.gates.clone();
            let spawned =
                std::thread::Builder::new().name("turn".to_owned()).spawn(move || gates.idle());
            if spawned.is_err() {
                return false;
            }
            // Set once, by the only thread that leaves turns.
            let _ = self.idler.set(());
        }
        true
    }
}

impl Gates {
    /// Lets a kept turn go when nothing was written for a moment.
    fn idle(&self) {
        let mut hold = lock(&self.hold);
        loop {
            match *hold {
                Hold::Closed => return,
                Hold::Kept(..) => {
                    let before = *hold;
                    drop(hold);
                    std::thread::sleep(IDLE);
                    hold = lock(&self.hold);
                    if *hold == before {
                        *hold = Hold::Nothing;
                        if let Err(error) = self.turn.give() {
                            tracing::error!(%error, "the turn could not be given back");
                        }
                    }
                }
                Hold::Writing(_) => {
                    // Looks again soon rather than being woken by every batch.
                    drop(hold);
                    std::thread::sleep(IDLE);
                    hold = lock(&self.hold);
                }
                Hold::Nothing => {
                    hold = self.changed.wait(hold).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn in_use(&self) -> Error {
        let holder = match self.turn.shared.holder().load(Ordering::Relaxed) {
            0 => "another process".to_owned(),
            pid => format!("process {pid}"),
        };
        Error::InUse { what: format!("the store {}", self.store), holder }
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        let mut hold = lock(&self.gates.hold);
        if let Hold::Kept(..) = *hold {
            // Closing the files frees the lock in any case.
            let _ = self.gates.turn.give();
        }
        *hold = Hold::Closed;
        self.gates.changed.notify_one();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // An unlock fails only when the file is not locked; the kernel frees it at exit anyway.
        if let Err(error) = self.0.leave() {
            tracing::error!(%error, "the turn could not be given back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_waits_and_then_learns_who_has_the_turn() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(&directory.path().join("store.db"));
        let (one, two) = (Turnstile::open(&files).unwrap(), Turnstile::open(&files).unwrap());
        let turn = one.enter(Duration::ZERO).unwrap();
        let refused = two.enter(Duration::from_millis(20)).unwrap_err();
        assert!(refused.to_string().ends_with(&format!("process {}", std::process::id())));
        drop(turn);
        two.enter(Duration::ZERO).unwrap();
    }

    #[test]
    fn the_one_who_waits_is_woken_by_the_release() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(&directory.path().join("store.db"));
        let one = Turnstile::open(&files).unwrap();
        let turn = one.enter(Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let two = Turnstile::open(&files).unwrap();
                two.enter(Duration::from_secs(30)).map(drop)
            });
            drop(turn);
            waiting.join().unwrap().unwrap();
        });
    }
}
