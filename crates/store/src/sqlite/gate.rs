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

use crate::clock::{Deadline, uptime_millis};
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

    /// Takes the lock if nobody has it.
    pub(super) fn try_take(&self) -> Result<bool> {
        match self.lock.try_lock() {
            Ok(()) => {
                self.shared.holder().store(std::process::id(), Ordering::Relaxed);
                self.shared.moved();
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => {
                Err(Error::Io(format!("a lock beside the store failed: {error}")))
            }
        }
    }

    /// Takes the lock, or answers `false` when patience is at its end.
    pub(super) fn take(&self, patience: &mut Patience) -> Result<bool> {
        loop {
            // Read before the attempt: a release in between changes it, and the wait returns.
            let seen = self.shared.releases().load(Ordering::Acquire);
            if self.try_take()? {
                return Ok(true);
            }
            let left = patience.left(seen);
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
        self.shared.moved();
        self.shared.wake_one();
        Ok(())
    }
}

/// Words shared by all processes: how often the lock was released, who has it, how many wait for
/// it, how much of the write-ahead log was copied; of the line before it, the number that the next
/// one gets, the number that is at the front, and when anything last moved.
#[derive(Debug)]
pub(super) struct Shared(std::ptr::NonNull<Words>);

type Words = [AtomicU32; 7];

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

    fn counters(&self) -> &Words {
        // SAFETY: the mapping is page-aligned, longer than these words, and lives until drop.
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

    pub(super) fn last_number(&self) -> &AtomicU32 {
        &self.counters()[4]
    }

    pub(super) fn front(&self) -> &AtomicU32 {
        &self.counters()[5]
    }

    /// Takes note that the lock was taken or released, or a number called.
    pub(super) fn moved(&self) {
        self.counters()[6].store(low_millis(), Ordering::Relaxed);
    }

    /// Whether nothing of that happened for that long.
    pub(super) fn is_still_for(&self, time: Duration) -> bool {
        let moved = self.counters()[6].load(Ordering::Relaxed);
        u128::from(low_millis().wrapping_sub(moved)) > time.as_millis()
    }

    /// Waits for a release after `seen`, for less than a second.
    #[cfg(target_os = "linux")]
    fn wait(&self, seen: u32, patience: Duration) {
        use rustix::thread::futex;
        let patience = futex::Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        // Woken or not, the caller looks again.
        let _ = futex::wait(self.releases(), futex::Flags::empty(), seen, Some(&patience));
    }

    #[cfg(target_os = "linux")]
    fn wake_one(&self) {
        use rustix::thread::futex;
        // Fails for no valid address.
        let _ = futex::wake(self.releases(), futex::Flags::empty(), 1);
    }

    /// Waits while `seen` is at the front, for whoever has `number`.
    #[cfg(target_os = "linux")]
    pub(super) fn wait_for_front(&self, seen: u32, number: u32, patience: Duration) {
        use rustix::thread::futex;
        // With a bit set, the time is one of this clock and not a duration.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let nanos = now.tv_nsec + i64::from(patience.subsec_nanos());
        let until = futex::Timespec {
            tv_sec: now.tv_sec + patience.as_secs().cast_signed() + nanos / 1_000_000_000,
            tv_nsec: nanos % 1_000_000_000,
        };
        let flags = futex::Flags::empty();
        // Woken or not, the caller looks again.
        let _ = futex::wait_bitset(self.front(), flags, seen, Some(&until), bit(number));
    }

    /// Wakes whoever has `number`, and the few others with the same bit.
    #[cfg(target_os = "linux")]
    pub(super) fn wake_at_front(&self, number: u32) {
        use rustix::thread::futex;
        let all = i32::MAX.cast_unsigned();
        // Fails for no valid address.
        let _ = futex::wake_bitset(self.front(), futex::Flags::empty(), all, bit(number));
    }

    #[cfg(not(target_os = "linux"))]
    fn wait(&self, _seen: u32, patience: Duration) {
        std::thread::sleep(patience.min(Duration::from_millis(1)));
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn wait_for_front(&self, _seen: u32, _number: u32, patience: Duration) {
        std::thread::sleep(patience.min(Duration::from_millis(1)));
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn wake_at_front(&self, _number: u32) {}

    #[cfg(not(target_os = "linux"))]
    fn wake_one(&self) {}
}

/// The bit by which the one with this number is woken.
#[cfg(target_os = "linux")]
fn bit(number: u32) -> std::num::NonZeroU32 {
    std::num::NonZeroU32::new(1 << (number % 32)).unwrap_or(std::num::NonZeroU32::MAX)
}

/// The low bits of the uptime, for times that are compared within days.
fn low_millis() -> u32 {
    (uptime_millis() & i64::from(u32::MAX)).try_into().unwrap_or_default()
}

/// How long somebody waits in vain: as long as the lock is released again and again, those before
/// it are being served, and the time begins anew.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    seen: u32,
    until: Deadline,
    /// The end in any case.
    last: Deadline,
}

/// So many times its patience somebody waits at most, however much goes on.
const LONGEST: u32 = 30;

impl Patience {
    pub(super) fn new(limit: Duration, shared: &Shared) -> Self {
        let seen = shared.releases().load(Ordering::Acquire);
        let last = Deadline::after(limit.saturating_mul(LONGEST));
        Self { limit, seen, until: Deadline::after(limit), last }
    }

    /// How long to wait yet, where the lock was released so many times; zero when that is over.
    pub(super) fn left(&mut self, releases: u32) -> Duration {
        if releases != self.seen {
            self.seen = releases;
            self.until = Deadline::after(self.limit);
        }
        self.until.left().min(self.last.left())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made by `map` with this length, and never used after this.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), MAPPED_BYTES) };
    }
}
