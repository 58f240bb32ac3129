//! The calling thread's `errno`, which the program must find as the real call would have left it.

use libc::{c_int, c_void, ssize_t};

/// Reads the thread's `errno`.
pub(crate) fn get() -> c_int {
    // SAFETY: libc returns a valid pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
pub(crate) fn set(value: c_int) {
    // SAFETY: as in `get`; no other thread can reach this location.
    unsafe { *libc::__errno_location() = value }
}

/// What a C call returns: success, or -1 with `errno` set.
pub(crate) trait Returned: Copy {
    /// The failed value, with `errno` set for the caller.
    fn failed(number: c_int) -> Self;
    /// Says whether the call did its work.
    fn succeeded(self) -> bool;
}

impl Returned for c_int {
    fn failed(number: c_int) -> Self {
        set(number);
        -1
    }
    fn succeeded(self) -> bool {
        self >= 0
    }
}

impl Returned for *mut c_void {
    fn failed(number: c_int) -> Self {
        set(number);
        std::ptr::null_mut()
    }
    fn succeeded(self) -> bool {
        !self.is_null()
    }
}

impl Returned for ssize_t {
    fn failed(number: c_int) -> Self {
        set(number);
        -1
    }
    fn succeeded(self) -> bool {
        self >= 0
    }
}
