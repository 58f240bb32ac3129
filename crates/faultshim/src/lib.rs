//! A preloaded library that counts, fails, kills at or records the calls by which a program changes files,
//! and counts, fails or kills at those by which it reads them; or exchanges two names there.
//!
//! It stands between a dynamically linked program and libc (`LD_PRELOAD`) and owns one idea: the
//! *point*, a call that touches a file under one directory. Points are numbered from 1, over all
//! threads, so "die at the 17th point" means the same thing each time a deterministic program runs.
//! It knows nothing of the program, and decides nothing by content.
//!
//! | variable | meaning |
//! |---|---|
//! | `FAULTSHIM_UNDER` | the directory, absolute and without symbolic links; without it nothing is intercepted |
//! | `FAULTSHIM_MODE` | `count`, `kill`, `torn`, `eio`, `enospc`, `record`, `exchange` or `blink` |
//! | `FAULTSHIM_ONE`, `FAULTSHIM_OTHER` | the names that `exchange` and `blink` exchange before the call; `blink` exchanges them back after it |
//! | `FAULTSHIM_AT` | the point that is struck, from 1 |
//! | `FAULTSHIM_FOREVER` | `1`: every later point is struck too |
//! | `FAULTSHIM_UNTIL_FILE` | nothing is struck once this file exists |
//! | `FAULTSHIM_KINDS` | which calls are points, from `write,sync,rename,lock,create,truncate,unlink` (all of these by default), `read` and `look` |
//! | `FAULTSHIM_OUT` | `record`: the operation log; otherwise the counter, 8 bytes little-endian |
//! | `FAULTSHIM_ACKS` | `record`: writes to this file are logged as acknowledgements |
//!
//! With `FAULTSHIM_OUT` the counter lives in that file, mapped and shared: it is right even after
//! SIGKILL, and the processes of a tree count together. In `enospc` mode only write, create,
//! truncate and rename calls are points, because a full disk fails nothing else. In `record` mode
//! every call is recorded whatever `FAULTSHIM_KINDS` says, because a log with gaps replays to a
//! state no disk ever had.
//!
//! Out of its sight: stores through a shared mapping, io_uring, raw system calls (rustix without
//! its `use-libc` feature), stdio streams (libc calls itself directly), symbolic links and modes.
#![allow(unsafe_code, reason = "interposing C functions is calling through C pointers")]

mod call;
mod calls;
mod errno;
mod location;
mod log;
mod real;
mod settings;

// Read the settings before `main`, while the program has one thread and no signal handlers.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn read_settings() {
        settings::settings();
    }
    read_settings
};
