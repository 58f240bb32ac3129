//! The binary on a pseudo-terminal, as a person at a keyboard meets it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mainstay_testkit::process::wait_for;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A program with a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    slave: File,
}

impl Terminal {
    /// Starts a command; its standard input, output and error are the terminal.
    pub(crate) fn start(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let side = || Stdio::from(OwnedFd::from(slave.try_clone().unwrap()));
        command.stdin(side()).stdout(side()).stderr(side());
        // SAFETY: both are bare system calls, which may be made between fork and exec.
        #[expect(unsafe_code, reason = "a child needs a controlling terminal before it starts")]
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                let stdin = std::os::fd::BorrowedFd::borrow_raw(0);
                rustix::process::ioctl_tiocsctty(stdin)?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let mut reader = File::from(master.as_fd().try_clone_to_owned().unwrap());
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails when the other side is closed.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).replace('\r', "");
                shown.lock().unwrap().push_str(&text);
            }
        });
        Self { child, keyboard: File::from(master), screen, slave }
    }

    /// Everything that was shown so far.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until something is shown.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        let began = Instant::now();
        while !self.screen().contains(text) {
            let late = began.elapsed() > Duration::from_secs(30);
            assert!(!late, "{text:?} was not shown:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types.
    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Whether the terminal shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.slave).unwrap().local_modes;
        modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// Waits for the end and answers the code.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut code = None;
        wait_for("the end of the program", Duration::from_secs(30), || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
