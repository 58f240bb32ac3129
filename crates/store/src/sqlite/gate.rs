//! One lock between processes, with a word that tells waiters when to look again.
//!
//! The truth of the lock is an advisory lock on a side file, which the kernel frees when its holder
//! dies. The words of shared memory beside it only save waiters from polling: if a wake-up is lost
//! with its sender, a waiter looks again after a while.

#![allow(unsafe_code, reason = "maps the shared words")]

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::clock::Deadline;
use crate::fsatomic::open_side_file;
use crate::{Error, Result};

/// One page: what is mapped, and a size that is really allocated on every file system.
const MAPPED_BYTES: usize = 4096;

/// A lock on a side file.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) lock: File,
    pub(super) shared: Shared,
    pub(super) look_again: Duration,
}

impl Gate {
    pub(super) fn open(path: &Path, look_again: Duration) -> Result<Self> {
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
    pub(super) fn take(&self, deadline: Deadline) -> Result<bool> {
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

    pub(super) fn give(&self) -> Result<()> {
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
pub(super) struct Shared(std::ptr::NonNull<[AtomicU32; 4]>);

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

    fn counters(&self) -> &[AtomicU32; 4] {
        // SAFETY: the mapping is page-aligned, longer than four words, and lives until drop.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn releases(&self) -> &AtomicU32 {
        &self.counters()[0]
    }

    pub(super) fn holder(&self) -> &AtomicU32 {
        &self.counters()[1]
    }

    pub(super) fn waiting(&self) -> &AtomicU32 {
        &self.counters()[2]
    }

    pub(super) fn copied(&self) -> &AtomicU32 {
        &self.counters()[3]
    }

    /// Waits for a release after `seen`; `false` when there was none in time.
    #[cfg(target_os = "linux")]
    pub(super) fn wait(&self, seen: u32, patience: Duration) -> bool {
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
    pub(super) fn wait(&self, seen: u32, patience: Duration) -> bool {
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
