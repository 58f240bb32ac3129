//! One cluster for all processes of a run, whoever of them dies at whatever moment.
//!
//! The directory holds four files. `start` is locked exclusively by whoever looks at, starts or
//! stops the cluster. `users` is locked shared by each process that uses it, for its lifetime, and
//! taken only under `start`: so nobody can become a user while the supervisor stops the cluster.
//! `cluster` names the running cluster's directory; it is written last. `supervisor` is locked by
//! the supervisor while it lives.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::cluster::Cluster;
use super::{binaries, supervisor};

/// The longest temporary directory that leaves room for a socket's name, which may have 107 bytes.
const LONGEST_TEMPORARY_DIRECTORY: usize = 40;

struct Use {
    cluster: Cluster,
    // The lock goes with the file, at the latest when the process ends.
    _users: File,
}

/// The cluster, alive when this process first asked for it.
pub(super) fn cluster() -> &'static Cluster {
    static USE: OnceLock<Use> = OnceLock::new();
    &USE.get_or_init(join).cluster
}

/// Where the shared files lie: one directory for a workspace and a user.
pub(super) fn directory() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_MANIFEST_DIR").hash(&mut hasher);
    let user = rustix::process::getuid().as_raw();
    let name = format!("mainstay-pg-{:08x}-{user}", hasher.finish() as u32);
    let temporary = std::env::temp_dir();
    let short = temporary.as_os_str().len() <= LONGEST_TEMPORARY_DIRECTORY;
    if short && is_open_to_the_server(&temporary) {
        temporary.join(name)
    } else {
        Path::new("/tmp").join(name)
    }
}

/// Says whether another user may pass through, as the server is when the tests run as root.
fn is_open_to_the_server(directory: &Path) -> bool {
    let passable = |path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 0o001 != 0);
    !binaries::runs_as_root() || directory.ancestors().all(passable)
}

fn join() -> Use {
    let directory = directory();
    let start = lock_start(&directory);
    let users = open(&directory.join("users"));
    users.lock_shared().expect("a lock on our own file");
    supervisor::ensure(&directory);
    let cluster = alive(&directory).unwrap_or_else(|| create(&directory));
    drop(start);
    Use { cluster, _users: users }
}

/// Takes the start lock, on a directory that the supervisor has not removed meanwhile.
pub(super) fn lock_start(directory: &Path) -> File {
    loop {
        fs::create_dir_all(directory).expect("a directory among the temporary files");
        let path = directory.join("start");
        let Ok(file) = OpenOptions::new().create(true).append(true).open(&path) else { continue };
        file.lock().expect("a lock on our own file");
        let ours = file.metadata().expect("an open file").ino();
        if fs::metadata(&path).is_ok_and(|found| found.ino() == ours) {
            return file;
        }
    }
}

/// Opens a file of ours for locking.
pub(super) fn open(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a file of our own")
}

fn alive(directory: &Path) -> Option<Cluster> {
    let named = fs::read_to_string(directory.join("cluster")).ok()?;
    Some(Cluster::at(PathBuf::from(named))).filter(Cluster::is_alive)
}

/// Starts a cluster in place of whatever was left half-made or dead.
fn create(directory: &Path) -> Cluster {
    let leftovers = fs::read_dir(directory).expect("our own directory");
    for leftover in leftovers.flatten() {
        if leftover.file_name().as_encoded_bytes().starts_with(b"shared-") {
            Cluster::at(leftover.path()).remove();
        }
    }
    let name = format!("shared-{:08x}", fastrand::u32(..));
    let cluster = Cluster::create(directory.join(name));
    let named = cluster.directory().to_str().expect("temporary directories have plain names");
    let unfinished = directory.join("cluster.new");
    fs::write(&unfinished, named).expect("a file of our own");
    fs::rename(&unfinished, directory.join("cluster")).expect("a file of our own");
    cluster
}
