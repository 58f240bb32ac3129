//! Looking names up without changing anything: points only where somebody asks for it.

use std::ffi::CStr;

use libc::{AT_FDCWD, c_char, c_int, c_long, c_uint, c_void, mode_t, size_t, ssize_t};

use crate::call::Call;
use crate::errno::Returned;
use crate::real;
use crate::settings::{Kind, settings};

/// Does a call that looks a path up.
pub(super) fn look<R: Returned>(directory: c_int, path: &CStr, act: impl FnOnce() -> R) -> R {
    // Looks are many; whoever does not ask for them pays nothing.
    if !settings().is_some_and(|settings| settings.counts(Kind::Look)) {
        return act();
    }
    match Call::on_path(directory, path) {
        Some(call) => call.run(Kind::Look, act, |_, _| {}),
        None => act(),
    }
}

/// A path argument; an empty path for a null pointer.
///
/// # Safety
/// The pointer must be null or that of a C string.
unsafe fn text<'a>(path: *const c_char) -> &'a CStr {
    if path.is_null() {
        return c"";
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(path) }
}

/// The raw calls of programs: of those that look a path up, `openat2` is the one that libc has no
/// function for.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    one: c_long,
    two: c_long,
    three: c_long,
    four: c_long,
    five: c_long,
    six: c_long,
) -> c_long {
    // SAFETY: the program's own call, passed on; see `calls` for the fixed arguments.
    let act = || unsafe { real::syscall()(number, one, two, three, four, five, six) };
    if number != libc::SYS_openat2 {
        return act();
    }
    // SAFETY: the second argument of this call is a C string.
    let path = unsafe { text(two as *const c_char) };
    look(one as c_int, path, || act() as ssize_t) as c_long
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the program's own call, passed on.
    let act = || unsafe { real::statx()(directory, path, flags, mask, found) };
    // SAFETY: the program promises libc a C string.
    look(directory, unsafe { text(path) }, act)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn stat(path: *const c_char, found: *mut c_void) -> c_int {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(AT_FDCWD, text(path), || real::stat()(path, found)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn stat64(path: *const c_char, found: *mut c_void) -> c_int {
    // SAFETY: on 64-bit targets the two are the same.
    unsafe { stat(path, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lstat(path: *const c_char, found: *mut c_void) -> c_int {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(AT_FDCWD, text(path), || real::lstat()(path, found)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lstat64(path: *const c_char, found: *mut c_void) -> c_int {
    // SAFETY: on 64-bit targets the two are the same.
    unsafe { lstat(path, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat(
    directory: c_int,
    path: *const c_char,
    found: *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(directory, text(path), || real::fstatat()(directory, path, found, flags)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat64(
    directory: c_int,
    path: *const c_char,
    found: *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: on 64-bit targets the two are the same.
    unsafe { fstatat(directory, path, found, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    directory: c_int,
    path: *const c_char,
    buffer: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(directory, text(path), || real::readlinkat()(directory, path, buffer, size)) }
}

/// Many looks in one: libc makes them by itself, out of our sight.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, buffer: *mut c_char) -> *mut c_char {
    // SAFETY: the program's own call, passed on, with a C string.
    let act = || unsafe { real::realpath()(path, buffer) }.cast::<c_void>();
    // SAFETY: the program promises libc a C string.
    look(AT_FDCWD, unsafe { text(path) }, act).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(AT_FDCWD, text(path), || real::opendir()(path)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn chmod(path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the program's own call, passed on, with a C string.
    unsafe { look(AT_FDCWD, text(path), || real::chmod()(path, mode)) }
}
