//! Standard output and standard error while a turn goes on: nobody waits for whoever reads them.
//!
//! Each has a thread that writes what was put in line for it. A reader that is behind holds up that
//! thread alone: the turn goes on, and signals are heard. The line is bounded, so a reader that is far
//! behind misses something, and is told so when it reads again; the record has all of it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mainstay_store::lock;
use rustix::io::Errno;

/// How many bytes may wait for a reader: more than a long turn says.
const MOST: usize = 16 << 20;
/// How long what goes to one of the two waits for the other, so that they come in order where both are
/// one terminal.
const ORDER: Duration = Duration::from_millis(200);

/// One of the two.
pub(crate) struct Outlet {
    state: Mutex<State>,
    changed: Condvar,
    descriptor: fn() -> BorrowedFd<'static>,
    name: &'static str,
}

struct State {
    waiting: Vec<u8>,
    /// What was left out since the reader was last told.
    missed: u64,
    /// How many bytes the thread took out of the line and is writing.
    writing: usize,
    thread: Thread,
    end: End,
    /// Whether it was waited for in vain since it last was empty.
    behind: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    None,
    Writes,
}

/// Why nothing is written any more.
enum End {
    NotYet,
    /// The reader has seen enough, which is no error.
    Closed,
    Failed(Errno),
}

static STDOUT: Outlet = Outlet::new("standard output", rustix::stdio::stdout);
static STDERR: Outlet = Outlet::new("standard error", rustix::stdio::stderr);

/// Standard output.
pub(crate) fn stdout() -> &'static Outlet {
    &STDOUT
}

/// Standard error.
pub(crate) fn stderr() -> &'static Outlet {
    &STDERR
}

/// Waits until both readers have all there is, or the time for each is over. Without a limit it lasts as long as
/// they take; nothing is held meanwhile, and a signal ends it.
pub(crate) fn drain(limit: Option<Duration>) {
    for outlet in [stdout(), stderr()] {
        outlet.drained(limit);
    }
}

impl Outlet {
    const fn new(name: &'static str, descriptor: fn() -> BorrowedFd<'static>) -> Self {
        let state = State {
            waiting: Vec::new(),
            missed: 0,
            writing: 0,
            thread: Thread::None,
            end: End::NotYet,
            behind: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), descriptor, name }
    }

    /// Puts a line in line. One that has no room is left out; once there is room again the reader is told,
    /// in the words of `told`, how many were.
    pub(crate) fn put(&'static self, line: &[u8], told: impl FnOnce(u64) -> Vec<u8>) {
        let mut state = lock(&self.state);
        let room = if state.missed > 0 { MOST / 2 } else { MOST };
        if state.waiting.len() + state.writing + line.len() > room {
            state.missed += 1;
            return;
        }
        tell_missed(&mut state, told);
        self.append(state, line);
    }

    /// Puts a line in line that must not be missed: an answer, the last event.
    pub(crate) fn put_always(&'static self, line: &[u8], told: impl FnOnce(u64) -> Vec<u8>) {
        let mut state = lock(&self.state);
        tell_missed(&mut state, told);
        self.append(state, line);
    }

    fn append(&'static self, mut state: MutexGuard<'_, State>, line: &[u8]) {
        if !matches!(state.end, End::NotYet) {
            return;
        }
        state.waiting.extend_from_slice(line);
        if state.thread == Thread::None {
            let work = || self.work();
            let spawned = std::thread::Builder::new().name("outlet".to_owned()).spawn(work);
            if spawned.is_err() {
                // Without a thread it is written here, as it used to be everywhere.
                let bytes = std::mem::take(&mut state.waiting);
                if let Err(error) = self.write(&bytes) {
                    state.end = End::of(error);
                }
                return;
            }
            state.thread = Thread::Writes;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Whether the reader has all there is.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.state).is_idle()
    }

    /// Lets what was put here before come before what is put elsewhere, unless the reader is behind.
    pub(crate) fn settle(&self) {
        let behind = lock(&self.state).behind;
        if !behind {
            self.drained(Some(ORDER));
        }
    }

    /// Why it could not be written to. A reader that went is no reason.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        match lock(&self.state).end {
            End::Failed(error) => Some(error.into()),
            End::NotYet | End::Closed => None,
        }
    }

    /// Whether it is closed at the other end, or broken.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(lock(&self.state).end, End::NotYet)
    }

    /// Gives up what is not written yet, and takes a failure for an end: whoever wrote has dealt with it.
    pub(crate) fn give_up(&self) {
        let mut state = lock(&self.state);
        if !state.is_idle() || matches!(state.end, End::Failed(_)) {
            state.end = End::Closed;
            state.waiting = Vec::new();
        }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Waits until the reader has all there is; `false` when that took too long.
    pub(crate) fn drained(&self, limit: Option<Duration>) -> bool {
        let state = lock(&self.state);
        let busy = |state: &mut State| !state.is_idle();
        let Some(limit) = limit else {
            drop(self.changed.wait_while(state, busy).unwrap_or_else(PoisonError::into_inner));
            return true;
        };
        let waited = self.changed.wait_timeout_while(state, limit, busy);
        let (mut state, late) = waited.unwrap_or_else(PoisonError::into_inner);
        state.behind |= late.timed_out();
        !late.timed_out()
    }

    /// Writes what is in line, for ever.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            state.writing = 0;
            if state.waiting.is_empty() {
                state.behind = false;
                self.changed.notify_all();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let bytes = std::mem::take(&mut state.waiting);
            state.writing = bytes.len();
            drop(state);
            let written = self.write(&bytes);
            state = lock(&self.state);
            if let Err(error) = written {
                state.end = End::of(error);
                state.waiting = Vec::new();
            }
        }
    }

    fn write(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match rustix::io::write((self.descriptor)(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                // Somebody who shares it has made it so.
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> Result<(), Errno> {
        let descriptor = (self.descriptor)();
        let mut waits = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::OUT)];
        match rustix::event::poll(&mut waits, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        let over = !matches!(self.end, End::NotYet);
        over || self.waiting.is_empty() && self.writing == 0
    }
}

impl End {
    fn of(error: Errno) -> Self {
        if error == Errno::PIPE { Self::Closed } else { Self::Failed(error) }
    }
}

fn tell_missed(state: &mut State, told: impl FnOnce(u64) -> Vec<u8>) {
    if state.missed > 0 {
        let missed = std::mem::take(&mut state.missed);
        state.waiting.extend(told(missed));
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::OnceLock;

    use super::*;

    /// An outlet into a pipe that nobody reads yet, and its other end.
    macro_rules! piped {
        () => {{
            static END: OnceLock<OwnedFd> = OnceLock::new();
            static OUTLET: Outlet = Outlet::new("a pipe", || END.get().unwrap().as_fd());
            let (read, write) = rustix::pipe::pipe().unwrap();
            END.set(write).unwrap();
            (&OUTLET, std::fs::File::from(read))
        }};
    }

    fn told(missed: u64) -> Vec<u8> {
        format!("missed {missed}\n").into_bytes()
    }

    #[test]
    fn nobody_waits_for_a_reader_and_what_it_misses_is_told_once() {
        use std::io::{BufRead as _, BufReader};
        let (outlet, read) = piped!();
        let line = [b'x'; 1 << 20];
        let line = [&line[1..], b"\n"].concat();
        let most = MOST >> 20;
        // More than has room in the line and the pipe. None of these waits.
        for _ in 0..most + 10 {
            outlet.put(&line, told);
        }
        outlet.put_always(b"the end\n", told);
        assert!(!outlet.is_idle());
        let lines: Vec<String> = {
            let reader = BufReader::new(read);
            let mut lines = Vec::new();
            for line in reader.lines() {
                lines.push(line.unwrap());
                if lines.last().is_some_and(|line| line == "the end") {
                    break;
                }
            }
            lines
        };
        let whole = lines.iter().filter(|line| line.starts_with('x')).count();
        let missed: Vec<_> = lines.iter().filter(|line| line.starts_with("missed")).collect();
        assert_eq!(missed, [&format!("missed {}", most + 10 - whole)]);
        assert_eq!(whole, most);
        assert!(outlet.drained(None));
        assert!(outlet.failure().is_none());
    }

    #[test]
    fn a_reader_that_went_is_no_failure() {
        let (outlet, read) = piped!();
        drop(read);
        outlet.put(b"x\n", told);
        assert!(outlet.drained(None));
        assert!(outlet.is_over() && outlet.failure().is_none());
    }
}
