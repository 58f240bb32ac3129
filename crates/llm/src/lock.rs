//! Locking without fear of poison. The store has the same function; this crate must not know it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what stays whole even if a holder panicked: plain maps and numbers.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
