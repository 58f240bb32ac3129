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
    pub(super) stream: UnixStream,
    pub(super) guard: Child,
}

/// Starts a keeper with a new name.
#[expect(
    clippy::disallowed_methods,
    reason = "the keeper itself is nobody's child but the agent's"
)]
pub(super) fn launch(launch: &Launch) -> io::Result<Launched> {
    let name = Id::new().to_string();
    // The keeper's own directory is `/`.
    let directory = std::path::absolute(launch.spool.join(&name))?;
    // Nothing in it is synced: it has to survive the keeper, not the machine.
    let make = || DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(&directory);
    // Another process may take an empty spool away in between.
    make().or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => make(),
        _ => Err(error),
    })?;
    let token = new_token();
    create_new(&directory.join(TOKEN), PRIVATE_FILE)?.write_all(token.as_bytes())?;
    // Bound here, so that it can be connected to before the keeper has got up.
    let handle = File::open(&directory)?;
    let listener = UnixListener::bind(address(&handle))?;
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
    let stream = greeted(UnixStream::connect(address(&handle))?, &token)?;
    Ok(Launched { name, stream, guard })
}

/// Connects to a keeper.
pub(super) fn connect(directory: &Path) -> io::Result<UnixStream> {
    let token = std::fs::read_to_string(directory.join(TOKEN))?;
    greeted(UnixStream::connect(address(&File::open(directory)?))?, &token)
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
