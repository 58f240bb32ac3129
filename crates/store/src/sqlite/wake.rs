//! Wake-ups between processes on one host: a datagram socket a process, in the side directory.
//!
//! A sender names the topics its commit touched and never waits: a full or dead socket is passed
//! over, because every listener looks again by itself after a while.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::files::Files;
use crate::fsatomic::private_directory;
use crate::hub::Hub;
use crate::lock::lock;
use crate::{Error, Id, Result};

/// Longer lists of topics become [`EVERYBODY`].
const LONGEST: usize = 4096;
/// The message that wakes every listener. No topic is empty.
const EVERYBODY: &str = "";

pub(super) struct Wake {
    directory: PathBuf,
    hub: Arc<Hub>,
    ear: Mutex<Option<Ear>>,
    mouth: Mutex<Option<Mouth>>,
}

/// The socket this process hears on.
struct Ear {
    path: PathBuf,
    name: std::ffi::OsString,
    socket: Arc<UnixDatagram>,
}

/// What sending needs, kept open between commits.
struct Mouth {
    socket: UnixDatagram,
    directory: File,
}

impl Wake {
    pub(super) fn new(files: &Files, hub: Arc<Hub>) -> Self {
        let directory = files.side_file("wake");
        Self { directory, hub, ear: Mutex::new(None), mouth: Mutex::new(None) }
    }

    /// Starts to hear other processes. Called before the first listener looks at the store, so
    /// that nothing falls between the look and the wait.
    pub(super) fn hear(&self) -> Result<()> {
        let mut ear = lock(&self.ear);
        if ear.is_some() {
            return Ok(());
        }
        *ear = Some(self.bind().map_err(|error| Error::file(&self.directory, &error))?);
        Ok(())
    }

    fn bind(&self) -> io::Result<Ear> {
        private_directory(&self.directory)?;
        let directory = File::open(&self.directory)?;
        let name = std::ffi::OsString::from(format!("{}-{}", std::process::id(), Id::new()));
        let socket = Arc::new(UnixDatagram::bind(address(&self.directory, &directory, &name))?);
        let hub = self.hub.clone();
        let hearing = socket.clone();
        let path = self.directory.join(&name);
        std::thread::Builder::new()
            .name("wake-ups".to_owned())
            .spawn(move || listen(&hearing, &hub))?;
        Ok(Ear { path, name, socket })
    }

    /// Wakes the listeners of `topics` everywhere.
    pub(super) fn send(&self, topics: &BTreeSet<String>) {
        self.hub.ring(topics.iter().map(String::as_str));
        let length: usize = topics.iter().map(|topic| topic.len() + 1).sum();
        if length > LONGEST {
            self.tell(EVERYBODY);
        } else {
            self.tell(&topics.iter().map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
    }

    fn tell(&self, message: &str) {
        let own = lock(&self.ear).as_ref().map(|ear| ear.name.clone());
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut mouth = lock(&self.mouth);
        for entry in entries.flatten() {
            let name = entry.file_name();
            if own.as_ref() == Some(&name) {
                continue;
            }
            if mouth.is_none() {
                match Mouth::open(&self.directory) {
                    Ok(opened) => *mouth = Some(opened),
                    Err(error) => return tracing::warn!(%error, "no socket for wake-ups"),
                }
            }
            let Some(mouth) = mouth.as_ref() else { return };
            let to = address(&self.directory, &mouth.directory, &name);
            if let Err(error) = mouth.socket.send_to(message.as_bytes(), to)
                && error.kind() == io::ErrorKind::ConnectionRefused
            {
                // Its process is gone.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Mouth {
    fn open(directory: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, directory: File::open(directory)? })
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // Ends the listening thread.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

fn listen(socket: &UnixDatagram, hub: &Hub) {
    let mut buffer = [0; LONGEST];
    loop {
        match socket.recv(&mut buffer) {
            // Nobody sends less than a byte but `EVERYBODY`, and a socket that was shut down
            // hears silence for ever: a last call does no harm.
            Ok(0) => {
                hub.ring_all();
                if is_shut_down(socket) {
                    return;
                }
            }
            Ok(length) => match std::str::from_utf8(&buffer[..length]) {
                Ok(topics) => hub.ring(topics.split('\n')),
                Err(_) => hub.ring_all(),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Whether the reading side was shut down, as opposed to an empty message.
fn is_shut_down(socket: &UnixDatagram) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut sockets = [PollFd::new(socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut sockets, Some(&at_once)).is_err()
        || sockets[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP)
}

/// The path of a socket. Linux limits it to 108 bytes, whatever the home's path; through the
/// descriptor of its directory it is always short.
#[cfg(target_os = "linux")]
fn address(_path: &Path, directory: &File, name: &std::ffi::OsStr) -> PathBuf {
    use std::os::fd::AsRawFd;
    Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}

#[cfg(not(target_os = "linux"))]
fn address(path: &Path, _directory: &File, name: &std::ffi::OsStr) -> PathBuf {
    path.join(name)
}
