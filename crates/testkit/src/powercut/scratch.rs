//! Where states are written for their check.

use std::path::Path;

use tempfile::TempDir;

const ENOUGH: u64 = 256 * 1024 * 1024;

/// An empty directory, in memory where there is room: the state is what a disk kept, it does not
/// have to be on one, and the check's own syncs cost nothing there.
pub(super) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |status| status.f_bavail * status.f_frsize);
    let builder = || tempfile::Builder::new().prefix("power-cut-").to_owned();
    let made = match free {
        ENOUGH.. => builder().tempdir_in(memory).or_else(|_| builder().tempdir()),
        _ => builder().tempdir(),
    };
    made.expect("a temporary directory")
}
