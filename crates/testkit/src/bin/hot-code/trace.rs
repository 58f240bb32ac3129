//! Which functions processes enter.
//!
//! Every function begins with a breakpoint, which is taken away when it is met for the first time. The
//! processes that a traced one starts are traced too; those that run the same program are counted.
#![allow(unsafe_code, reason = "ptrace has no safe face")]

use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_long, c_void};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use libc::pid_t;

const BREAKPOINT: u8 = 0xcc;

/// Notes which functions of a program are entered.
pub(crate) struct Tracer {
    program: PathBuf,
    functions: Vec<u64>,
    /// What stood where the breakpoints are.
    first_bytes: HashMap<u64, u8>,
    /// In the order in which they were entered first.
    touched: Vec<u64>,
    known: HashSet<u64>,
    /// Those that a process entered which a traced one started.
    below: HashSet<u64>,
}

impl Tracer {
    pub(crate) fn new(program: &Path, functions: Vec<u64>) -> Self {
        Self {
            program: program.to_owned(),
            functions,
            first_bytes: HashMap::new(),
            touched: Vec::new(),
            known: HashSet::new(),
            below: HashSet::new(),
        }
    }

    /// The functions that were entered: first those that smaller processes share with the rest, so that
    /// these touch little else.
    pub(crate) fn touched(&self) -> Vec<u64> {
        let (below, rest): (Vec<u64>, Vec<u64>) =
            self.touched.iter().partition(|function| self.below.contains(function));
        [below, rest].concat()
    }

    /// Runs a command to its end, with all that it starts.
    pub(crate) fn run(&mut self, command: &mut Command) -> io::Result<()> {
        // SAFETY: the child makes one system call, which takes no lock and allocates nothing.
        let child =
            unsafe { command.pre_exec(|| check(ptrace(libc::PTRACE_TRACEME, 0, nothing()))) };
        let first = pid_t::try_from(child.spawn()?.id()).map_err(io::Error::other)?;
        let mut options = Some(());
        let mut result = 0;
        loop {
            let mut status = 0;
            // SAFETY: `status` is ours.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
            if pid == -1 {
                break;
            }
            if !libc::WIFSTOPPED(status) {
                if pid == first {
                    result = status;
                }
                continue;
            }
            if options.take_if(|()| pid == first).is_some() {
                let all = libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK
                    | libc::PTRACE_O_TRACEEXEC;
                check(ptrace(libc::PTRACE_SETOPTIONS, first, number(all)))?;
                self.set_breakpoints(first)?;
                check(ptrace(libc::PTRACE_CONT, first, nothing()))?;
                continue;
            }
            let signal = self.stopped(pid, first, status)?;
            // One that was killed meanwhile is gone.
            let _ = check(ptrace(libc::PTRACE_CONT, pid, number(signal)));
        }
        match result {
            0 => Ok(()),
            status => Err(io::Error::other(format!("{command:?} ended with status {status:#x}"))),
        }
    }

    /// Sees why a process stopped, and answers the signal that it is to get.
    fn stopped(&mut self, pid: pid_t, first: pid_t, status: c_int) -> io::Result<c_int> {
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        if event == libc::PTRACE_EVENT_EXEC {
            self.set_breakpoints(pid)?;
        }
        if event != 0 || signal == libc::SIGSTOP {
            return Ok(0);
        }
        if signal == libc::SIGTRAP
            && let Some(function) = self.entered(pid)
        {
            if process_of(pid) != Some(first) {
                self.below.insert(function);
            }
            return Ok(0);
        }
        Ok(signal)
    }

    /// Notes the function that a process enters, and lets it go on there.
    fn entered(&mut self, pid: pid_t) -> Option<u64> {
        // SAFETY: registers are numbers, for which zeros are valid, and the place for them is ours.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        check(ptrace(libc::PTRACE_GETREGS, pid, (&raw mut registers).cast())).ok()?;
        let at = registers.rip.checked_sub(1)?;
        let function = at.checked_sub(self.base(pid)?)?;
        let byte = *self.first_bytes.get(&function)?;
        memory(pid).ok()?.write_all_at(&[byte], at).ok()?;
        registers.rip = at;
        check(ptrace(libc::PTRACE_SETREGS, pid, (&raw mut registers).cast())).ok()?;
        if self.known.insert(function) {
            self.touched.push(function);
        }
        Some(function)
    }

    fn set_breakpoints(&mut self, pid: pid_t) -> io::Result<()> {
        let Some(base) = self.base(pid) else { return Ok(()) };
        let memory = memory(pid)?;
        for function in &self.functions {
            if !self.first_bytes.contains_key(function) {
                let mut byte = [0];
                memory.read_exact_at(&mut byte, base + function)?;
                self.first_bytes.insert(*function, byte[0]);
            }
            memory.write_all_at(&[BREAKPOINT], base + function)?;
        }
        Ok(())
    }

    /// Where the program lies in the memory of a process. Returns `None` if it runs another one.
    fn base(&self, pid: pid_t) -> Option<u64> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let program = self.program.to_str()?;
        let line = maps.lines().find(|line| line.ends_with(program))?;
        u64::from_str_radix(line.split('-').next()?, 16).ok()
    }
}

/// The process that a thread belongs to.
fn process_of(thread: pid_t) -> Option<pid_t> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

fn memory(pid: pid_t) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

fn ptrace(request: libc::c_uint, pid: pid_t, data: *mut c_void) -> c_long {
    // SAFETY: what `data` points to, where it is an address, is valid while the call lasts.
    unsafe { libc::ptrace(request, pid, nothing(), data) }
}

fn nothing() -> *mut c_void {
    std::ptr::null_mut()
}

/// A number where a request wants one.
fn number(number: c_int) -> *mut c_void {
    std::ptr::without_provenance_mut(number.cast_unsigned() as usize)
}

fn check(result: c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
