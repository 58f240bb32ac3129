//! The entry of the keeper's process, and the guard: whatever becomes of the worker, nothing of it
//! is left.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, WaitOptions, set_child_subreaper, set_dumpable_behavior,
};

use super::event_loop;
use super::kill::kill_all_below;
use super::syscalls::{Side, fork};
use crate::keeper::shared::processes::own_pid;

/// How often the guard kills what is left; a process may fork while it is looked for. One that hangs
/// in the kernel is looked for less and less often.
const LOOK: Duration = Duration::from_millis(2);
const SELDOM: Duration = Duration::from_secs(1);

/// Runs a keeper until it has nothing to do any more.
///
/// The program calls this before it starts any thread, with the arguments that follow those of
/// [`Launch`](crate::keeper::Launch). Its standard input is the socket that agents connect to.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn start(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "the keeper is not for people");
    let directory = PathBuf::from(arguments.next().ok_or_else(usage)?);
    let grace = arguments.next().and_then(|text| text.to_str()?.parse().ok()).ok_or_else(usage)?;
    let grace = Duration::from_millis(grace);
    // A process that was started and is not its program yet shares this memory, inside the sandbox:
    // another command there must not look into it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let listener = take_input()?;
    // Away from the agent's terminal and its signals. It fails only for who leads a group already,
    // and the agent does not start it so.
    let _ = rustix::process::setsid();
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let guard = rustix::process::getpid();
    match fork()? {
        Side::Child => {
            set_child_subreaper(Some(rustix::process::getpid()))?;
            event_loop::run(&directory, UnixListener::from(listener), grace, guard)
        }
        Side::Parent(worker) => {
            // Only the worker answers.
            drop(listener);
            wait_for(worker);
            kill_the_rest();
            Ok(())
        }
    }
}

/// Takes the standard input away, and leaves an empty one.
fn take_input() -> io::Result<OwnedFd> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let empty = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&empty)?;
    Ok(input)
}

fn wait_for(worker: Pid) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) if pid == worker => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Kills everything that fell to the guard, until there is nothing.
fn kill_the_rest() {
    let mut pause = LOOK;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => {
                kill_all_below(own_pid(), None);
                std::thread::sleep(pause);
                pause = (pause + pause / 4).min(SELDOM);
            }
            Err(_) => return,
        }
    }
}
