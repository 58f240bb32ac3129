//! How an agent starts a keeper, and connects to one.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mainstay_store::Id;
use mainstay_store::fsatomic::{PRIVATE_DIR, PRIVATE_FILE, create_new};
use mainstay_store::occupancy::occupy;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::keeper::shared::spool::{SOCKET, TOKEN};

/// How a keeper is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program that calls [`serve`](super::serve), usually this one.
    pub program: PathBuf,
    /// The arguments that make it call it.
    pub arguments: Vec<OsString>,
    /// The directory in which every keeper has its own.
    pub spool: PathBuf,
    /// How long a keeper goes on when its agent has died, for another to come.
    pub grace: Duration,
}

/// A keeper that was just started.
pub(super) struct Launched {
    pub(super) name: String,
    pub(super) connection: Connection,
    pub(super) guard: Child,
}

/// A connection to a keeper, and a hold on its directory, which is not cleared up as long as anybody
/// may ask what is in it.
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    pub(super) occupied: File,
}

/// How often another name is tried where whoever clears up was faster.
const NAMES: u32 = 100;

/// Starts a keeper with a new name.
#[expect(
    clippy::disallowed_methods,
    reason = "the keeper itself is nobody's child but the agent's"
)]
pub(super) fn launch(launch: &Launch) -> io::Result<Launched> {
    // The keeper's own directory is `/`.
    let spool = std::path::absolute(&launch.spool)?;
    let (name, occupied) = new_directory(&spool)?;
    let directory = spool.join(&name);
    let token = new_token();
    create_new(&directory.join(TOKEN), PRIVATE_FILE)?.write_all(token.as_bytes())?;
    // Bound here, so that it can be connected to before the keeper has got up.
    let listener = UnixListener::bind(address(&occupied))?;
    let guard = Command::new(&launch.program)
        .args(&launch.arguments)
        .arg(&directory)
        .arg(launch.grace.as_millis().to_string())
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let guard = guard.inspect_err(|_| drop(std::fs::remove_dir_all(&directory)))?;
    let stream = greeted(UnixStream::connect(address(&occupied))?, &token)?;
    Ok(Launched { name, connection: Connection { stream, occupied }, guard })
}

/// Makes a directory in the spool and occupies it. Nothing in it is synced: it has to survive the
/// keeper, not the machine.
fn new_directory(spool: &Path) -> io::Result<(String, File)> {
    for _ in 0..NAMES {
        let name = Id::new().to_string();
        let directory = spool.join(&name);
        let made = DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(&directory);
        match made.and_then(|()| occupy(&directory)) {
            Ok(occupied) => return Ok((name, occupied)),
            // Another process took it, or an empty spool, away in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("its directory is removed as soon as it is made"))
}

/// Connects to a keeper, without waiting: where one that is stopped has a full queue of connections
/// that it has not taken in, the error is that this would block.
pub(super) fn connect(directory: &Path) -> io::Result<Connection> {
    let occupied = occupy(directory)?;
    let token = std::fs::read_to_string(directory.join(TOKEN))?;
    let address = SocketAddrUnix::new(address(&occupied))?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    let stream = greeted(UnixStream::from(socket), &token)?;
    Ok(Connection { stream, occupied })
}

fn greeted(mut stream: UnixStream, token: &str) -> io::Result<UnixStream> {
    stream.write_all(token.as_bytes())?;
    Ok(stream)
}

fn new_token() -> String {
    let mut random = [0; 16];
    // Without the system's randomness the token could be guessed: better to stop.
    #[expect(clippy::expect_used, reason = "getrandom fails only on a broken kernel")]
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of the socket. Linux limits it to 107 bytes, whatever the home's path; through the
/// descriptor of its directory it is always short.
fn address(directory: &File) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(SOCKET)
}
