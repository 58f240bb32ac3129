//! Fair turns at writing, across processes.
//!
//! SQLite's own busy handler lets whoever just wrote barge in again; with eight processes the
//! longest wait is seconds. Here a process takes *next*, then *turn*, lets *next* go, writes, and
//! lets *turn* go: the one who just wrote queues behind the one who waits.
//!
//! The truth of each lock is an advisory lock on a side file, which the kernel frees when its
//! holder dies. A word of shared memory beside it only tells waiters when to look again, so that
//! nobody polls: if a wake-up is lost with its sender, a waiter looks again after [`LOOK_AGAIN`].

#![allow(unsafe_code, reason = "maps the shared words")]

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::files::Files;
use crate::clock::Deadline;
use crate::fsatomic::{open_side_file, private_directory};
use crate::{Error, Result};

/// How long a waiter sleeps at most before it tries the lock again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// One page: what is mapped, and a size that is really allocated on every file system.
const MAPPED_BYTES: usize = 4096;

/// The two gates of a store.
#[derive(Debug)]
pub(crate) struct Turnstile {
    next: Gate,
    turn: Gate,
    store: String,
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turnstile);

#[derive(Debug)]
struct Gate {
    lock: File,
    shared: Shared,
}

impl Turnstile {
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let side = files.side();
        private_directory(&side).map_err(|error| Error::file(&side, &error))?;
        Ok(Self {
            next: Gate::open(&files.side_file("next"))?,
            turn: Gate::open(&files.side_file("turn"))?,
            store: files.database.display().to_string(),
        })
    }

    /// Waits for the turn. When the deadline passes, the error names who has it.
    pub(crate) fn enter(&self, deadline: Deadline) -> Result<Turn<'_>> {
        if !self.next.take(deadline)? {
            return Err(self.in_use(&self.next));
        }
        let taken = self.turn.take(deadline);
        self.next.give()?;
        if taken? { Ok(Turn(self)) } else { Err(self.in_use(&self.turn)) }
    }

    fn in_use(&self, gate: &Gate) -> Error {
        let holder = match gate.shared.holder().load(Ordering::Relaxed) {
            0 => "another process".to_owned(),
            pid => format!("process {pid}"),
        };
        Error::InUse { what: format!("the store {}", self.store), holder }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // An unlock fails only when the file is not locked; the kernel frees it at exit anyway.
        if let Err(error) = self.0.turn.give() {
            tracing::error!(%error, "the turn could not be given back");
        }
    }
}

impl Gate {
    fn open(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| Error::file(path, &error);
        let lock = open_side_file(path).map_err(failed)?;
        if lock.metadata().map_err(failed)?.len() != MAPPED_BYTES as u64 {
            // Written, not only extended: touching a hole on a full disk would be a fatal signal.
            lock.write_all_at(&[0; MAPPED_BYTES], 0).map_err(failed)?;
            lock.sync_all().map_err(failed)?;
        }
        let shared = Shared::map(&lock).map_err(failed)?;
        Ok(Self { lock, shared })
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
            self.shared.wait(seen, left.min(LOOK_AGAIN));
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

/// Two words shared by all processes: how often the lock was released, and who has it.
#[derive(Debug)]
struct Shared(std::ptr::NonNull<[AtomicU32; 2]>);

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

    fn words(&self) -> &[AtomicU32; 2] {
        // SAFETY: the mapping is page-aligned, longer than two words, and lives until drop.
        unsafe { self.0.as_ref() }
    }

    fn releases(&self) -> &AtomicU32 {
        &self.words()[0]
    }

    fn holder(&self) -> &AtomicU32 {
        &self.words()[1]
    }

    #[cfg(target_os = "linux")]
    fn wait(&self, seen: u32, patience: Duration) {
        use rustix::thread::futex;
        let patience = futex::Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        // Woken, timed out or interrupted: the caller looks again in every case.
        let _ = futex::wait(self.releases(), futex::Flags::empty(), seen, Some(&patience));
    }

    #[cfg(target_os = "linux")]
    fn wake_one(&self) {
        use rustix::thread::futex;
        // Fails for no valid address.
        let _ = futex::wake(self.releases(), futex::Flags::empty(), 1);
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(&self, _seen: u32, patience: Duration) {
        std::thread::sleep(patience.min(Duration::from_millis(1)));
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
