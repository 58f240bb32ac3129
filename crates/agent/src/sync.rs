//! Locks between threads of the agent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. One that a panic poisoned is used all the same: what it guards is changed in one
/// step or not at all.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
