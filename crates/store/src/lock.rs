//! Locking without fear of poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whether or not a thread panicked while it held it.
///
/// What we guard is plain data that is whole between statements; refusing to read it after a panic
/// elsewhere would turn one failed request into a dead process.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
