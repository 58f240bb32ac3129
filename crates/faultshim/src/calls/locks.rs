//! Locks: `flock`, and the locking commands of `fcntl`.

use libc::{c_int, c_ulong};

use crate::call::Call;
use crate::real;
use crate::settings::Kind;

fn lock(file: c_int, act: impl FnOnce() -> c_int) -> c_int {
    match Call::on_descriptor(file) {
        None => act(),
        Some(call) => call.run(Kind::Lock, act, |_, _| {}),
    }
}

#[unsafe(no_mangle)]
extern "C" fn flock(file: c_int, operation: c_int) -> c_int {
    // SAFETY: the program's own call, passed on.
    lock(file, || unsafe { real::flock()(file, operation) })
}

#[unsafe(no_mangle)]
extern "C" fn fcntl(file: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: the program's own call, passed on; see `calls` for the fixed argument.
    let act = || unsafe { real::fcntl()(file, command, argument) };
    match command {
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => lock(file, act),
        _ => act(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn fcntl64(file: c_int, command: c_int, argument: c_ulong) -> c_int {
    fcntl(file, command, argument)
}
