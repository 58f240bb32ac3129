//! Reading bytes. Reads leave nothing on the disk, so they are points only where somebody asks for it.

use libc::{c_int, c_void, off_t, size_t, ssize_t};

use crate::call::Call;
use crate::real;
use crate::settings::{Kind, settings};

fn read_call(file: c_int, act: impl FnOnce() -> ssize_t) -> ssize_t {
    // Reads are many; whoever does not ask for them pays nothing.
    if !settings().is_some_and(|settings| settings.counts(Kind::Read)) {
        return act();
    }
    match Call::on_descriptor(file) {
        Some(call) => call.run(Kind::Read, act, |_, _| {}),
        None => act(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn read(file: c_int, data: *mut c_void, length: size_t) -> ssize_t {
    // SAFETY: the program's own call, passed on.
    read_call(file, || unsafe { real::read()(file, data, length) })
}

#[unsafe(no_mangle)]
extern "C" fn pread(file: c_int, data: *mut c_void, length: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the program's own call, passed on.
    read_call(file, || unsafe { real::pread()(file, data, length, offset) })
}

#[unsafe(no_mangle)]
extern "C" fn pread64(file: c_int, data: *mut c_void, length: size_t, offset: off_t) -> ssize_t {
    pread(file, data, length, offset)
}
