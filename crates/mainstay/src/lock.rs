//! Locking a mutex whose data stays valid when a holder panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic: the data behind our mutexes is replaced as a whole, so no panic
/// leaves it half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
