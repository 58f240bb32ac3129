//! The functions of libc that this library hides, found behind it in the search order.

use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_char, c_int, c_long, c_uint, c_void, iovec, mode_t, off_t, size_t, ssize_t};

/// Finds a function once and keeps its address; racing threads find the same one.
fn find(kept: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = kept.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name is a C string; RTLD_NEXT searches the libraries loaded after this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        // The program asked for a function this libc lacks: it could not have been linked.
        std::process::abort();
    }
    kept.store(found, Ordering::Relaxed);
    found
}

macro_rules! real {
    ($($name:ident: $signature:ty;)*) => {$(
        pub(crate) fn $name() -> $signature {
            static KEPT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            // SAFETY: the address is libc's function of this name, and this its C signature.
            unsafe { transmute::<*mut c_void, $signature>(find(&KEPT, NAME)) }
        }
    )*};
}

real! {
    read: unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t;
    pread: unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
    write: unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    pwrite: unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    writev: unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
    ftruncate: unsafe extern "C" fn(c_int, off_t) -> c_int;
    fallocate: unsafe extern "C" fn(c_int, c_int, off_t, off_t) -> c_int;
    posix_fallocate: unsafe extern "C" fn(c_int, off_t, off_t) -> c_int;
    copy_file_range: unsafe extern "C" fn(c_int, *mut off_t, c_int, *mut off_t, size_t, c_uint) -> ssize_t;
    sendfile: unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
    fsync: unsafe extern "C" fn(c_int) -> c_int;
    fdatasync: unsafe extern "C" fn(c_int) -> c_int;
    open: unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
    openat: unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;
    mkdirat: unsafe extern "C" fn(c_int, *const c_char, mode_t) -> c_int;
    renameat: unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char) -> c_int;
    renameat2: unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_uint) -> c_int;
    linkat: unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int;
    unlinkat: unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
    syscall: unsafe extern "C" fn(c_long, ...) -> c_long;
    statx: unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut c_void) -> c_int;
    stat: unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
    lstat: unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
    fstatat: unsafe extern "C" fn(c_int, *const c_char, *mut c_void, c_int) -> c_int;
    readlinkat: unsafe extern "C" fn(c_int, *const c_char, *mut c_char, size_t) -> ssize_t;
    realpath: unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char;
    opendir: unsafe extern "C" fn(*const c_char) -> *mut c_void;
    chmod: unsafe extern "C" fn(*const c_char, mode_t) -> c_int;
    flock: unsafe extern "C" fn(c_int, c_int) -> c_int;
    fcntl: unsafe extern "C" fn(c_int, c_int, ...) -> c_int;
}
