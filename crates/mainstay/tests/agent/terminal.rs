//! A real pseudo-terminal with the real program in it, and a virtual screen that reads it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use mainstay_testkit::process::{Signal, wait_for, wait_with_deadline};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);
/// How often the reader looks whether the terminal is to be closed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The program in a terminal.
pub(crate) struct Terminal {
    child: Child,
    /// The other end, until the terminal is closed.
    keyboard: Option<File>,
    reader: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
    /// Whether nobody reads the other end.
    stalled: Arc<AtomicBool>,
    /// Kept open, so that what the program left of the modes can be seen.
    line: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts the program in a terminal of this size.
    pub(crate) fn start(world: &World, (rows, columns): (u16, u16), words: &[&str]) -> Self {
        Self::start_with(world, (rows, columns), words, &[("TERM", "xterm-256color")])
    }

    /// Starts it with these variables.
    pub(crate) fn start_with(
        world: &World,
        (rows, columns): (u16, u16),
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let line = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let before = tcgetattr(&line).unwrap();
        let program = world.command(words);
        // It becomes the program itself, with the terminal as its own.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args());
        command.current_dir(world.workspace()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(variables.iter().copied());
        let end = || Stdio::from(line.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let size = |number| NonZeroU16::new(number).unwrap();
        let screen = vt100::Parser::new(size(rows), size(columns), 1_000);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new() }));
        let mut output = File::from(master.try_clone().unwrap());
        let shown = seen.clone();
        let closed = Arc::new(AtomicBool::new(false));
        let over = closed.clone();
        let stalled = Arc::new(AtomicBool::new(false));
        let paused = stalled.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while !over.load(Ordering::SeqCst) {
                let mut waits = [PollFd::new(&output, PollFlags::IN)];
                if poll(&mut waits, Some(&LOOK)) == Ok(0) {
                    continue;
                }
                if paused.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                let Ok(count @ 1..) = output.read(&mut bytes) else { return };
                let mut seen = shown.lock().unwrap();
                seen.screen.process(&bytes[..count]);
                seen.bytes.extend_from_slice(&bytes[..count]);
            }
        });
        let (keyboard, reader) = (Some(File::from(master)), Some(reader));
        Self { child, keyboard, reader, closed, stalled, line: line.into(), before, seen }
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keyboard.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Types a message and sends it.
    pub(crate) fn send(&mut self, words: &str) {
        self.keys(words);
        self.sees(words);
        self.keys("\r");
    }

    /// Waits until this can be read on the screen.
    pub(crate) fn sees(&self, words: &str) {
        self.waits_for(&format!("{words:?} on the screen"), |seen| seen.contains(words));
    }

    /// Waits until this cannot be read any more.
    pub(crate) fn sees_no(&self, words: &str) {
        self.waits_for(&format!("no {words:?} on the screen"), |seen| !seen.contains(words));
    }

    /// Waits until no turn goes on.
    pub(crate) fn rests(&self) {
        self.sees_no("Ctrl-C stops");
    }

    fn waits_for(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(what, PATIENCE, || holds(&self.screen()));
        }));
        if let Err(panic) = result {
            eprintln!("the screen is:\n{}", self.screen());
            std::panic::resume_unwind(panic);
        }
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        let seen = self.seen.lock().unwrap();
        let (_, columns) = seen.screen.screen().size();
        let rows: Vec<String> = seen.screen.screen().rows(0, columns.get()).collect();
        rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// All that was written to the terminal.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = |number| NonZeroU16::new(number).unwrap();
        self.seen.lock().unwrap().screen.screen_mut().set_size(size(rows), size(columns));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.keyboard.as_ref().unwrap(), size).unwrap();
    }

    /// Kills the program.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the terminal, like a window that is closed, and waits for the program to end.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.closed.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        self.keyboard = None;
        let ended = wait_with_deadline(&mut self.child, PATIENCE);
        ended.unwrap_or_else(|| panic!("it goes on without a terminal:\n{}", self.screen()))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal)
            .unwrap();
    }

    /// Stops reading what the program writes.
    pub(crate) fn stall(&self) {
        self.stalled.store(true, Ordering::SeqCst);
    }

    /// Reads again.
    pub(crate) fn unstall(&self) {
        self.stalled.store(false, Ordering::SeqCst);
    }

    /// Waits for the program to end in a terminal that is stalled.
    pub(crate) fn ended_unseen(mut self) -> ExitStatus {
        let ended = wait_with_deadline(&mut self.child, PATIENCE);
        ended.unwrap_or_else(|| panic!("it waits for a terminal that is stalled"))
    }

    /// Waits for a command that is no chat to end, and returns all that it wrote.
    pub(crate) fn ended_with_text(mut self) -> (ExitStatus, String) {
        const END: &str = "(the end of what it wrote)";
        let ended = wait_with_deadline(&mut self.child, PATIENCE);
        let status = ended.unwrap_or_else(|| panic!("it does not end:\n{}", self.screen()));
        rustix::io::write(&self.line, END.as_bytes()).unwrap();
        wait_for("the last words", PATIENCE, || self.written().ends_with(END));
        let written = self.written();
        (status, written[..written.len() - END.len()].to_owned())
    }

    /// Waits for the program to end; the terminal must be as it was.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let ended = wait_with_deadline(&mut self.child, PATIENCE);
        let status = ended.unwrap_or_else(|| panic!("it does not end:\n{}", self.screen()));
        let after = tcgetattr(&self.line).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes, "modes were left changed");
        assert_eq!(after.input_modes, self.before.input_modes, "modes were left changed");
        // All of it is read once this comes back.
        wait_for("the last words", PATIENCE, || self.written().contains("\x1b[?2004l"));
        assert!(!self.seen.lock().unwrap().screen.screen().hide_cursor(), "the cursor is hidden");
        (status, self.screen())
    }
}

impl Drop for Terminal {
    /// A test that fails leaves no program behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
