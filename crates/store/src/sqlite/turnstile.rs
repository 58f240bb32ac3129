//! Fair turns at writing, across processes.
//!
//! SQLite's own busy handler lets whoever just wrote barge in again; with eight processes the
//! longest wait is seconds. Here a process takes *next*, then *turn*, lets *next* go, writes, and
//! lets *turn* go: the one who just wrote queues behind the one who waits.
//!
//! A hand-over between processes costs as much as a commit, so a process that is waited for may
//! *keep* its turn for a moment and write again without queueing: at most [`QUANTUM`] in all, and
//! not when it has nothing to write. With nobody waiting the turn is let go after every batch.
//!
//! The truth of each lock is an advisory lock on a side file, which the kernel frees when its
//! holder dies. A word of shared memory beside it only tells waiters when to look again, so that
//! nobody polls: if a wake-up is lost with its sender, a waiter looks again after a while.

#![allow(unsafe_code, reason = "maps the shared words")]

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::files::Files;
use crate::clock::{Deadline, uptime};
use crate::fsatomic::{open_side_file, private_directory};
use crate::held::held;
use crate::{Error, Result};

/// How long a process that keeps writing keeps its turn while another waits.
const QUANTUM: Duration = Duration::from_millis(15);

/// How long a kept turn may lie idle before it is let go.
const IDLE: Duration = Duration::from_millis(1);

/// How long the one who is next sleeps at most before it tries the lock again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The same for those in the queue behind it. Longer than a turn, because who looks again loses
/// its place.
const LOOK_AGAIN_IN_QUEUE: Duration = Duration::from_millis(200);

/// One page: what is mapped, and a size that is really allocated on every file system.
const MAPPED_BYTES: usize = 4096;

/// The two gates of a store.
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
    next: Gate,
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

#[derive(Debug)]
struct Gate {
    lock: File,
    shared: Shared,
    look_again: Duration,
}

impl Turnstile {
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let side = files.side();
        private_directory(&side).map_err(|error| Error::file(&side, &error))?;
        let gates = Gates {
            next: Gate::open(&files.side_file("next"), LOOK_AGAIN_IN_QUEUE)?,
            turn: Gate::open(&files.side_file("turn"), LOOK_AGAIN)?,
            store: files.database.display().to_string(),
            hold: Mutex::new(Hold::Nothing),
            changed: Condvar::new(),
        };
        Ok(Self { gates: Arc::new(gates), idler: OnceLock::new() })
    }

    /// Waits for the turn. When the deadline passes, the error names who has it. Only one thread
    /// of a process asks at a time.
    pub(crate) fn enter(&self, deadline: Deadline) -> Result<Turn<'_>> {
        let gates = &self.gates;
        let mut hold = held(&gates.hold);
        if let Hold::Kept(since, _) = *hold {
            *hold = Hold::Writing(since);
            return Ok(Turn(self));
        }
        drop(hold);
        gates.let_others_pass();
        if !gates.next.take(deadline)? {
            return Err(gates.in_use(&gates.next));
        }
        let taken = gates.turn.take(deadline);
        gates.next.give()?;
        if !taken? {
            return Err(gates.in_use(&gates.turn));
        }
        *held(&gates.hold) = Hold::Writing(uptime());
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
        let mut hold = held(&gates.hold);
        let Hold::Writing(since) = *hold else { return Ok(()) };
        let used = uptime().saturating_sub(since);
        if used < QUANTUM && gates.is_wanted() && self.has_idler() {
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
        let mut hold = held(&self.hold);
        loop {
            match *hold {
                Hold::Closed => return,
                Hold::Kept(..) => {
                    let before = *hold;
                    drop(hold);
                    std::thread::sleep(IDLE);
                    hold = held(&self.hold);
                    if *hold == before {
                        *hold = Hold::Nothing;
                        self.forget_a_dead_waiter();
                        if let Err(error) = self.turn.give() {
                            tracing::error!(%error, "the turn could not be given back");
                        }
                    }
                }
                Hold::Writing(_) => {
                    // Looks again soon rather than being woken by every batch.
                    drop(hold);
                    std::thread::sleep(IDLE);
                    hold = held(&self.hold);
                }
                Hold::Nothing => {
                    hold = self.changed.wait(hold).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Who wrote last goes to the end of the queue before *next*, where it would otherwise be back
    /// before the one that is being woken.
    fn let_others_pass(&self) {
        let wrote_last = self.turn.shared.holder().load(Ordering::Relaxed) == std::process::id();
        let queue = self.next.shared.waiting();
        if !wrote_last || queue.load(Ordering::Relaxed) == 0 {
            return;
        }
        let seen = self.next.shared.releases().load(Ordering::Acquire);
        if !self.next.shared.wait(seen, self.next.look_again) {
            // Nobody moved: the queue is of those who died in it.
            queue.store(0, Ordering::Relaxed);
        }
    }

    /// Whether somebody waits for the turn, or in the queue behind. One that died waiting leaves
    /// its mark.
    fn is_wanted(&self) -> bool {
        [&self.turn, &self.next]
            .iter()
            .any(|gate| gate.shared.waiting().load(Ordering::Relaxed) != 0)
    }

    /// Whoever waits for the turn holds *next*: if that is free, the marks are of the dead.
    fn forget_a_dead_waiter(&self) {
        if self.next.lock.try_lock().is_ok() {
            self.turn.shared.waiting().store(0, Ordering::Relaxed);
            self.next.shared.waiting().store(0, Ordering::Relaxed);
            // An unlock fails only when there is no lock.
            let _ = self.next.give();
        }
    }

    fn in_use(&self, gate: &Gate) -> Error {
        let holder = match gate.shared.holder().load(Ordering::Relaxed) {
            0 => "another process".to_owned(),
            pid => format!("process {pid}"),
        };
        Error::InUse { what: format!("the store {}", self.store), holder }
    }
}

impl Drop for Turnstile {
    fn drop(&mut self) {
        let mut hold = held(&self.gates.hold);
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

impl Gate {
    fn open(path: &Path, look_again: Duration) -> Result<Self> {
        let failed = |error: std::io::Error| Error::file(path, &error);
        let lock = open_side_file(path).map_err(failed)?;
        if lock.metadata().map_err(failed)?.len() != MAPPED_BYTES as u64 {
            // Written, not only extended: touching a hole on a full disk would be a fatal signal.
            lock.write_all_at(&[0; MAPPED_BYTES], 0).map_err(failed)?;
            lock.sync_all().map_err(failed)?;
        }
        let shared = Shared::map(&lock).map_err(failed)?;
        Ok(Self { lock, shared, look_again })
    }

    /// Takes the lock, or answers `false` when the deadline has passed.
    fn take(&self, deadline: Deadline) -> Result<bool> {
        loop {
            // Read before the attempt: a release in between changes it, and the wait returns.
            let seen = self.shared.releases().load(Ordering::Acquire);
            match self.lock.try_lock() {
                Ok(()) => {
                    self.shared.holder().store(std::process::id(), Ordering::Relaxed);
                    return Ok(true);
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(Error::Io(format!("a lock beside the store failed: {error}")));
                }
            }
            let left = deadline.left();
            if left.is_zero() {
                return Ok(false);
            }
            let queue = self.shared.waiting();
            queue.fetch_add(1, Ordering::Relaxed);
            self.shared.wait(seen, left.min(self.look_again));
            // Not below zero, where it may have been set meanwhile.
            let _ = queue.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                Some(count.saturating_sub(1))
            });
        }
    }

    fn give(&self) -> Result<()> {
        // Once more after a passing failure: a lock that stays would keep everybody out.
        let unlocked = self.lock.unlock().or_else(|_| self.lock.unlock());
        unlocked.map_err(|error| Error::Io(format!("a lock beside the store failed: {error}")))?;
        self.shared.releases().fetch_add(1, Ordering::Release);
        self.shared.wake_one();
        Ok(())
    }
}

/// Words shared by all processes: how often the lock was released, who has it, how many wait for
/// it, and how much of the write-ahead log was copied.
#[derive(Debug)]
struct Shared(std::ptr::NonNull<[AtomicU32; 4]>);

// SAFETY: the words are atomics in a mapping that lives as long as this value.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn map(file: &File) -> std::io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is at least as
        // long, and nothing but atomics is read from or written to it.
        let address =
            unsafe { mmap(std::ptr::null_mut(), MAPPED_BYTES, access, MapFlags::SHARED, file, 0)? };
        std::ptr::NonNull::new(address.cast())
            .map(Self)
            .ok_or_else(|| std::io::Error::other("the kernel mapped nothing"))
    }

    fn words(&self) -> &[AtomicU32; 4] {
        // SAFETY: the mapping is page-aligned, longer than four words, and lives until drop.
        unsafe { self.0.as_ref() }
    }

    fn releases(&self) -> &AtomicU32 {
        &self.words()[0]
    }

    fn holder(&self) -> &AtomicU32 {
        &self.words()[1]
    }

    fn waiting(&self) -> &AtomicU32 {
        &self.words()[2]
    }

    fn copied(&self) -> &AtomicU32 {
        &self.words()[3]
    }

    /// Waits for a release after `seen`; `false` when there was none in time.
    #[cfg(target_os = "linux")]
    fn wait(&self, seen: u32, patience: Duration) -> bool {
        use rustix::thread::futex;
        let patience = futex::Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let woken = futex::wait(self.releases(), futex::Flags::empty(), seen, Some(&patience));
        woken != Err(rustix::io::Errno::TIMEDOUT)
    }

    #[cfg(target_os = "linux")]
    fn wake_one(&self) {
        use rustix::thread::futex;
        // Fails for no valid address.
        let _ = futex::wake(self.releases(), futex::Flags::empty(), 1);
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(&self, seen: u32, patience: Duration) -> bool {
        std::thread::sleep(patience.min(Duration::from_millis(1)));
        self.releases().load(Ordering::Acquire) != seen
    }

    #[cfg(not(target_os = "linux"))]
    fn wake_one(&self) {}
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made by `map` with this length, and never used after this.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), MAPPED_BYTES) };
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
        let turn = one.enter(Deadline::after(Duration::ZERO)).unwrap();
        let refused = two.enter(Deadline::after(Duration::from_millis(20))).unwrap_err();
        assert!(refused.to_string().ends_with(&format!("process {}", std::process::id())));
        drop(turn);
        two.enter(Deadline::after(Duration::ZERO)).unwrap();
    }

    #[test]
    fn the_one_who_waits_is_woken_by_the_release() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(&directory.path().join("store.db"));
        let one = Turnstile::open(&files).unwrap();
        let turn = one.enter(Deadline::after(Duration::ZERO)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let two = Turnstile::open(&files).unwrap();
                two.enter(Deadline::after(Duration::from_secs(30))).map(drop)
            });
            drop(turn);
            waiting.join().unwrap().unwrap();
        });
    }
}
