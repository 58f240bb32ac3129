//! A kernel that lacks something: system calls that answer with an error, in a real child.
#![allow(unsafe_code, reason = "a filter of system calls has no safe face")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Lets the system calls with these numbers fail with an error, in the command and in all that it
/// starts. Calls are told by their numbers alone, which is enough for programs of this machine.
pub fn answer(command: &mut Command, calls: &[libc::c_long], error: i32) {
    let step = |code, k, jump_true, jump_false| libc::sock_filter {
        code,
        jt: jump_true,
        jf: jump_false,
        k,
    };
    let mut filter = vec![step(LOAD_WORD, 0, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        // To the last step, past the other calls and the step that allows.
        let to_the_end = u8::try_from(calls.len() - index).unwrap();
        let number = u32::try_from(*call).unwrap();
        filter.push(step(JUMP_IF_EQUAL, number, to_the_end, 0));
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let error = u32::try_from(error).unwrap();
    filter.push(step(RETURN, libc::SECCOMP_RET_ERRNO | error, 0, 0));
    let install = move || {
        let program =
            libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the program is whole, and the kernel copies it.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
                    == 0
        };
        if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}
