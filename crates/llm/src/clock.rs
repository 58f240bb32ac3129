//! The wall clock, for dates that providers name. Every limit is measured with tokio's clock.

use std::time::Duration;

/// Milliseconds since 1970.
pub(crate) fn wall_millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The wall time at which a wait of this length, begun now, is over.
pub(crate) fn wall_after(wait: Duration) -> i64 {
    wall_millis().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
