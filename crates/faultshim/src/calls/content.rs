//! Changing a file's size, and copies inside the kernel.

use libc::{c_int, c_uint, off_t, size_t, ssize_t};

use crate::call::Call;
use crate::errno::{self, Returned};
use crate::log::{Entry, Tag, status_of_descriptor};
use crate::real;
use crate::settings::Kind;

/// Does a call that may change the size, and logs the size it left.
fn resize(file: c_int, act: impl FnOnce() -> c_int) -> c_int {
    let Some(call) = Call::on_descriptor(file) else { return act() };
    call.run(Kind::Truncate, act, |turn, _| {
        let status = status_of_descriptor(file);
        let number = status.st_size as u64;
        turn.append(&Entry {
            inode: status.st_ino,
            number,
            ..Entry::new(Tag::Truncate, call.path())
        });
    })
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(file: c_int, size: off_t) -> c_int {
    // SAFETY: the program's own call, passed on.
    resize(file, || unsafe { real::ftruncate()(file, size) })
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(file: c_int, size: off_t) -> c_int {
    ftruncate(file, size)
}

#[unsafe(no_mangle)]
extern "C" fn fallocate(file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    // Punching holes is not in the log's vocabulary; filesystems may refuse it, so do we.
    if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 && Call::on_descriptor(file).is_some() {
        return c_int::failed(libc::EOPNOTSUPP);
    }
    // SAFETY: the program's own call, passed on.
    resize(file, || unsafe { real::fallocate()(file, mode, offset, length) })
}

#[unsafe(no_mangle)]
extern "C" fn fallocate64(file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    fallocate(file, mode, offset, length)
}

#[unsafe(no_mangle)]
extern "C" fn posix_fallocate(file: c_int, offset: off_t, length: off_t) -> c_int {
    // This one returns its error instead of setting errno.
    let done = resize(file, || {
        // SAFETY: the program's own call, passed on.
        match unsafe { real::posix_fallocate()(file, offset, length) } {
            0 => 0,
            number => c_int::failed(number),
        }
    });
    if done == 0 { 0 } else { errno::get() }
}

#[unsafe(no_mangle)]
extern "C" fn posix_fallocate64(file: c_int, offset: off_t, length: off_t) -> c_int {
    posix_fallocate(file, offset, length)
}

/// Refused into our directory, so that the caller falls back to `write`, which we see.
#[unsafe(no_mangle)]
unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    if Call::on_descriptor(to).is_some() {
        return ssize_t::failed(libc::ENOSYS);
    }
    // SAFETY: the program's own call, passed on.
    unsafe { real::copy_file_range()(from, from_offset, to, to_offset, length, flags) }
}

/// Refused into our directory, as `copy_file_range` is.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    length: size_t,
) -> ssize_t {
    if Call::on_descriptor(to).is_some() {
        return ssize_t::failed(libc::ENOSYS);
    }
    // SAFETY: the program's own call, passed on.
    unsafe { real::sendfile()(to, from, offset, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    length: size_t,
) -> ssize_t {
    // SAFETY: `off_t` has 64 bits here, so the two are the same.
    unsafe { sendfile(to, from, offset, length) }
}
