//! The one place that reads clocks.
//!
//! Two times exist. *Wall* time is for people and for sorting; it may jump. *Uptime* is the
//! kernel's boot-time clock: it never jumps, goes on during suspend, and is the same for all
//! processes of one boot. Every time-out and every lease is measured in uptime.

use std::sync::Arc;
use std::time::Duration;

/// Reads the time; a test puts its own in.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, by the wall clock.
    fn wall_millis(&self) -> i64;
    /// Milliseconds since boot.
    fn uptime_millis(&self) -> i64;
}

/// The machine's own clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_millis(&self) -> i64 {
        wall_millis()
    }

    fn uptime_millis(&self) -> i64 {
        uptime_millis()
    }
}

/// The default clock, shared.
pub(crate) fn system() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Milliseconds since 1970, by the wall clock.
pub fn wall_millis() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Time since boot, including suspend.
pub(crate) fn uptime() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A duration in milliseconds, short enough to be added to or taken from any time.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// Milliseconds since boot.
pub(crate) fn uptime_millis() -> i64 {
    millis(uptime())
}

/// A point in uptime until which something may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Duration);

impl Deadline {
    pub(crate) fn after(patience: Duration) -> Self {
        Self(uptime().saturating_add(patience))
    }

    /// The later of the two.
    pub(crate) fn or_later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// What is left; zero when it has passed.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_sub(uptime())
    }

    pub(crate) fn passed(self) -> bool {
        self.left().is_zero()
    }
}
