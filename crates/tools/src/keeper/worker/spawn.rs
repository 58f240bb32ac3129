//! Starting a process, the short way.
//!
//! The child borrows this process's memory until it has become another program, as `posix_spawn`
//! does it, so nothing is copied. That function takes every signal back to its default, one call
//! each, and has no place for what a sandbox needs; here only what this process changed is undone.
#![allow(unsafe_code, reason = "a child that borrows our memory has no safe face")]

use std::ffi::{CString, c_char, c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

use mainstay_store::{Clock, SystemClock};

use crate::keeper::shared::Program;
use crate::sandbox::Doors;

/// The stack of the child while it borrows our memory. It makes a few calls and has no deep ones.
const STACK: usize = 64 << 10;
const SHELL: &str = "/bin/sh";
/// Signals that this process handles or ignores; a new program has the defaults.
const CHANGED: [c_int; 4] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGSEGV, libc::SIGBUS];

/// What a process is started with.
pub(super) struct Start<'a> {
    pub(super) program: &'a Program,
    pub(super) directory: &'a Path,
    /// Its whole environment.
    pub(super) environment: &'a [(&'a str, &'a str)],
    pub(super) input: BorrowedFd<'a>,
    pub(super) output: BorrowedFd<'a>,
    pub(super) errors: BorrowedFd<'a>,
}

/// What a process is started with, laid out for the child. The descriptors belong to whoever had it
/// laid out, and stay open until it has been spawned.
pub(crate) struct Ready {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: CString,
    input: RawFd,
    output: RawFd,
    errors: RawFd,
    /// The gate that it waits at before it becomes its program.
    gate: Option<(RawFd, Beginning)>,
    number: Number,
}

/// The number of a process, as soon as there is one: it may still wait, or fail, to be its program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Number(Arc<AtomicI32>);

impl Number {
    pub(crate) fn get(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Acquire)).filter(|number| *number > 0)
    }
}

/// Whether a process that waits at a gate has begun, and when. It is settled once: by the process, which
/// was let through, or by whoever gives it up.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning(Arc<AtomicI64>);

impl Beginning {
    const OPEN: i64 = 0;
    const NEVER: i64 = -1;

    /// Since when it has been running, by the uptime.
    pub(super) fn time(&self) -> Option<Duration> {
        let millis = u64::try_from(self.0.load(Ordering::Acquire)).ok()?;
        (millis > 0).then_some(Duration::from_millis(millis))
    }

    /// Keeps it from beginning, unless it has begun.
    pub(super) fn prevent(&self) {
        settle(&self.0, Self::NEVER);
    }
}

/// Settles a beginning. False where that was done before.
fn settle(beginning: &AtomicI64, how: i64) -> bool {
    let (then, now) = (Ordering::AcqRel, Ordering::Acquire);
    beginning.compare_exchange(Beginning::OPEN, how, then, now).is_ok()
}

/// Where a process is before it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entrance {
    /// A user namespace that it enters, without an enclosure.
    pub(crate) user: Option<RawFd>,
    /// A network that it enters.
    pub(crate) network: Option<RawFd>,
    /// An enclosure that it enters.
    pub(crate) doors: Option<Doors>,
    /// Whether it is in an enclosure, which it enters or is born in.
    pub(crate) is_enclosed: bool,
}

impl Start<'_> {
    /// Lays out what the child needs: it may not allocate.
    pub(super) fn ready(&self) -> io::Result<Ready> {
        let arguments = match self.program {
            Program::Line(line) => vec![c_string(SHELL)?, c_string("-c")?, c_string(line)?],
            Program::Arguments(words) => words.iter().map(c_string).collect::<io::Result<_>>()?,
        };
        let program = match self.program {
            Program::Line(_) => c_string(SHELL)?,
            Program::Arguments(words) => c_string(find(words, self)?.as_os_str())?,
        };
        let environment = self.environment.iter();
        Ok(Ready {
            program,
            arguments,
            environment: environment
                .map(|(name, value)| c_string(&format!("{name}={value}")))
                .collect::<io::Result<_>>()?,
            directory: c_string(self.directory.as_os_str())?,
            input: self.input.as_raw_fd(),
            output: self.output.as_raw_fd(),
            errors: self.errors.as_raw_fd(),
            gate: None,
            number: Number::default(),
        })
    }
}

impl Ready {
    /// Has the process wait at a gate until a byte can be read there, before it becomes its program. It
    /// never does where nobody is left who could write one. Whatever becomes of it, it is reaped by
    /// whoever reaps all.
    pub(super) fn wait_behind(&mut self, gate: &OwnedFd) -> Beginning {
        let beginning = Beginning::default();
        self.gate = Some((gate.as_raw_fd(), beginning.clone()));
        beginning
    }

    /// Tells the number of the process.
    pub(crate) fn number(&self) -> Number {
        self.number.clone()
    }

    /// Starts a process as the leader of a group of its own, and answers its number. It has what this
    /// thread has of a sandbox.
    pub(crate) fn spawn(&self, entrance: Entrance) -> io::Result<i32> {
        let Self {
            program,
            arguments,
            environment,
            directory,
            input,
            output,
            errors,
            gate,
            number,
        } = self;
        let Entrance { user, network, doors, is_enclosed } = entrance;
        let absent = |descriptor: Option<RawFd>| descriptor.unwrap_or(-1);
        let (arguments, environment) = (pointers(arguments), pointers(environment));
        let mut child = Child {
            program: program.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            directory: directory.as_ptr(),
            input: *input,
            output: *output,
            errors: *errors,
            user: absent(user),
            network: absent(network),
            doors,
            // Nobody has a parent that is not in the same process namespace.
            parent: if is_enclosed { 0 } else { std::process::id().cast_signed() },
            number: number.0.as_ptr(),
            below: std::ptr::null_mut(),
            gate: gate.as_ref().map_or(-1, |(gate, _)| *gate),
            beginning: gate.as_ref().map_or(std::ptr::null(), |(_, begun)| Arc::as_ptr(&begun.0)),
            // SAFETY: an empty set of signals is one of all zeros, and it is filled in below.
            mask: unsafe { std::mem::zeroed() },
            failed: 0,
        };
        let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
        let mut below: Vec<u128> = Vec::new();
        // Who enters a process namespace is not in it itself, only what it starts is.
        let life: extern "C" fn(*mut c_void) -> c_int = if doors.is_some() {
            below.reserve_exact(STACK / size_of::<u128>());
            // SAFETY: it is the end of what was reserved.
            child.below = unsafe { below.as_mut_ptr().add(below.capacity()) }.cast();
            go_between
        } else {
            become_program
        };
        // SAFETY: the sets are valid. The child runs `become_program` on a stack of its own while this
        // thread waits, so what `child` points to lives, and nothing is used by both at once. No handler
        // of ours can run in the child, because all signals are blocked until they have their defaults.
        let pid = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const all, &raw mut child.mask);
            let before = child.mask;
            // This thread may leave it to others; a program that waits for it would wait for ever.
            libc::sigdelset(&raw mut child.mask, libc::SIGCHLD);
            let mut between = 0;
            let told = if doors.is_some() { &raw mut between } else { number.0.as_ptr() };
            let pid = libc::clone(
                life,
                stack.as_mut_ptr().add(stack.capacity()).cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD,
                (&raw mut child).cast(),
                told,
            );
            let error = (pid == -1).then(io::Error::last_os_error);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            if let Some(error) = error {
                return Err(error);
            }
            if doors.is_some() {
                // It has ended, or whoever reaps all was faster.
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                number.get().unwrap_or(0)
            } else {
                pid
            }
        };
        // SAFETY: the child is gone or another program; it wrote this before, through the pointer.
        let failed = unsafe { std::ptr::read_volatile(&raw const child.failed) };
        if failed != 0 {
            if let Some(pid) = rustix::process::Pid::from_raw(pid).filter(|_| gate.is_none()) {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            }
            return Err(io::Error::from_raw_os_error(failed));
        }
        Ok(pid)
    }
}

/// What the child needs, laid out before it is there: it may not allocate.
struct Child {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: *const c_char,
    input: RawFd,
    output: RawFd,
    errors: RawFd,
    /// Namespaces to enter; below zero where there are none.
    user: RawFd,
    network: RawFd,
    /// An enclosure that a go-between enters.
    doors: Option<Doors>,
    /// Where the number of the process goes that a go-between starts, and the stack that it has.
    number: *mut c_int,
    below: *mut c_void,
    /// The process that starts it, as it is seen from inside.
    parent: c_int,
    /// The gate to wait at, below zero where there is none, and where to say that it was let through.
    gate: RawFd,
    beginning: *const AtomicI64,
    /// The signals that are blocked in the program.
    mask: libc::sigset_t,
    /// What went wrong; zero while nothing did.
    failed: c_int,
}

/// The life of one that enters namespaces and has its parent's next child start in them.
extern "C" fn go_between(child: *mut c_void) -> c_int {
    let next = child;
    let child = child.cast::<Child>();
    // SAFETY: as in `become_program`. The one that it starts has a stack of its own, and this one waits
    // until it is another program or gone.
    unsafe {
        let entered = (*child).doors.is_some_and(Doors::enter);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT;
        let flags = flags | libc::CLONE_PARENT_SETTID;
        let stack = (*child).below;
        if !entered || libc::clone(become_program, stack, flags, next, (*child).number) == -1 {
            let failed = &raw mut (*child).failed;
            failed.write_volatile(*libc::__errno_location());
        }
        libc::_exit(0)
    }
}

/// The life of the child until it is another program.
extern "C" fn become_program(child: *mut c_void) -> c_int {
    let child = child.cast::<Child>();
    // SAFETY: the pointer is the one that `spawn` gave, and whoever owns it waits. All that is called
    // is allowed after a fork: it takes no lock and allocates nothing.
    unsafe {
        let ready = libc::setpgid(0, 0) == 0
            && libc::dup2((*child).input, 0) != -1
            && libc::dup2((*child).output, 1) != -1
            && libc::dup2((*child).errors, 2) != -1
            && libc::chdir((*child).directory) == 0
            && ((*child).user < 0 || libc::setns((*child).user, libc::CLONE_NEWUSER) == 0)
            && ((*child).network < 0 || libc::setns((*child).network, libc::CLONE_NEWNET) == 0)
            && ((*child).gate < 0 || is_let_through(&*child));
        if ready {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            for signal in CHANGED {
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const (*child).mask, std::ptr::null_mut());
            libc::execve((*child).program, (*child).arguments, (*child).environment);
        }
        let failed = &raw mut (*child).failed;
        failed.write_volatile(*libc::__errno_location());
        libc::_exit(127)
    }
}

/// Waits at a gate. False where nobody is left who could open it, or it was given up. One whose parent
/// dies meanwhile dies with it: nobody would look after it.
///
/// # Safety
///
/// Only for a child that borrows memory: the gate is its own, and the word is there for as long.
unsafe fn is_let_through(child: &Child) -> bool {
    let mut word = 0_u8;
    // SAFETY: the gate is a descriptor of the child, one byte is valid for writing, and the pointer is to
    // what whoever waits for the child owns.
    unsafe {
        let guarded =
            libc::prctl(libc::PR_SET_PDEATHSIG, c_ulong::from(libc::SIGKILL.cast_unsigned())) == 0
                && libc::getppid() == child.parent;
        let opened = guarded
            && loop {
                match libc::read(child.gate, (&raw mut word).cast(), 1) {
                    -1 if *libc::__errno_location() == libc::EINTR => {}
                    read => break read == 1,
                }
            };
        let through = opened && settle(&*child.beginning, SystemClock.uptime_millis().max(1));
        libc::prctl(libc::PR_SET_PDEATHSIG, c_ulong::MIN);
        if !through {
            *libc::__errno_location() = libc::ECANCELED;
        }
        through
    }
}

fn c_string(text: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> io::Result<CString> {
    CString::new(text.as_ref().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "it contains a zero byte"))
}

/// Pointers to texts, with the null that ends them. They live as long as the texts.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The file of a program: the name itself where it is a path, else the first in the child's PATH.
fn find(words: &[String], start: &Start<'_>) -> io::Result<PathBuf> {
    let name = words
        .first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program given"))?;
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let path = start.environment.iter().find(|(variable, _)| *variable == "PATH");
    let places = path.map_or("/usr/local/bin:/usr/bin:/bin", |(_, path)| path);
    places
        .split(':')
        .map(|place| start.directory.join(place).join(name))
        .find(|file| {
            rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
        })
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn spawn(start: &Start<'_>) -> io::Result<i32> {
        start.ready()?.spawn(Entrance::default())
    }

    /// Runs a program and answers its exit code and what it wrote.
    fn run(program: &Program, directory: &Path, environment: &[(&str, &str)]) -> (i32, String) {
        let (mut from, to) = io::pipe().unwrap();
        let input = std::fs::File::open("/dev/null").unwrap();
        let start = Start {
            program,
            directory,
            environment,
            input: input.as_fd(),
            output: to.as_fd(),
            errors: to.as_fd(),
        };
        let pid = rustix::process::Pid::from_raw(spawn(&start).unwrap()).unwrap();
        drop(to);
        let output = io::read_to_string(&mut from).unwrap();
        let options = rustix::process::WaitOptions::empty();
        let (_, status) = rustix::process::waitpid(Some(pid), options).unwrap().unwrap();
        (status.exit_status().unwrap(), output)
    }

    #[test]
    fn a_program_gets_its_words_its_directory_its_environment_and_a_group_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().canonicalize().unwrap();
        let line =
            "pwd; echo \"$NAME\"; env | sort | head -1; cut -d' ' -f5 /proc/$$/stat; echo $$";
        let line = Program::Line(line.to_owned());
        let environment = [("NAME", "a b"), ("PATH", "/usr/bin:/bin")];
        let (code, output) = run(&line, &here, &environment);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(code, 0, "{output}");
        assert_eq!(lines[..3], [here.to_str().unwrap(), "a b", "NAME=a b"]);
        assert_eq!(lines[3], lines[4], "it leads its group");
    }

    #[test]
    fn signals_are_as_a_new_program_expects_them() {
        for leaves_them in [false, true] {
            let read = move || {
                if leaves_them {
                    crate::keeper::leave_child_signals_to_others();
                }
                let line = Program::Line("cat /proc/self/status".to_owned());
                run(&line, Path::new("/"), &[("PATH", "/usr/bin:/bin")]).1
            };
            let output = std::thread::spawn(read).join().unwrap();
            let lines = output.lines().filter_map(|line| line.split_once(':'));
            let masks = lines.filter(|(name, _)| ["SigBlk", "SigIgn", "SigCgt"].contains(name));
            assert_eq!(masks.clone().count(), 3, "{output}");
            for (name, bits) in masks {
                // The C library's two own signals may be ignored; nobody can send them.
                let bits = u64::from_str_radix(bits.trim(), 16).unwrap() & !(0b11 << 31);
                assert_eq!(bits, 0, "{name}");
            }
        }
    }

    #[test]
    fn a_program_is_found_in_the_path_it_will_have() {
        let directory = tempfile::tempdir().unwrap();
        let words =
            Program::Arguments(vec!["printf".to_owned(), "%s-%s".into(), "a b".into(), "c".into()]);
        assert_eq!(run(&words, directory.path(), &[("PATH", "/nowhere:/usr/bin:/bin")]).1, "a b-c");
        let input = std::fs::File::open("/dev/null").unwrap();
        for (words, path, error) in [
            (vec!["printf".to_owned()], "/nowhere", libc::ENOENT),
            (vec!["/etc/passwd".to_owned()], "/bin", libc::EACCES),
            (vec!["./nothing".to_owned()], "/bin", libc::ENOENT),
        ] {
            let start = Start {
                program: &Program::Arguments(words),
                directory: directory.path(),
                environment: &[("PATH", path)],
                input: input.as_fd(),
                output: input.as_fd(),
                errors: input.as_fd(),
            };
            assert_eq!(spawn(&start).unwrap_err().raw_os_error(), Some(error));
        }
    }

    #[test]
    fn what_cannot_be_started_says_so_and_leaves_no_process() {
        let input = std::fs::File::open("/dev/null").unwrap();
        let start = Start {
            program: &Program::Line("true".to_owned()),
            directory: Path::new("/nowhere"),
            environment: &[],
            input: input.as_fd(),
            output: input.as_fd(),
            errors: input.as_fd(),
        };
        for _ in 0..10 {
            assert_eq!(spawn(&start).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        let zero = Start { program: &Program::Line("a\0b".to_owned()), ..start };
        assert_eq!(spawn(&zero).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
