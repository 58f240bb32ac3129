//! Sockets with a name in the file system, behind which somebody outside listens.
//!
//! A network of their own keeps commands from every other kind of socket. To one with a name they could
//! connect all the same, and Docker, a session bus or a terminal multiplexer would act for them, outside.
//! So where there is no network, each of these is covered. Those that commands make themselves are not
//! among them: they belong to the commands' network.

use std::fs;
use std::path::{Path, PathBuf};

/// Where somebody listens in the network of this process, as real paths.
pub(super) fn sockets() -> Vec<PathBuf> {
    let listed = fs::read("/proc/net/unix").unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let mut found: Vec<PathBuf> =
        names(&listed).filter_map(|name| name.canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// The names in the kernel's list: the last column, where it is a path.
fn names(listed: &str) -> impl Iterator<Item = &Path> {
    listed.lines().skip(1).filter_map(|line| Some(Path::new(&line[line.find(" /")? + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_other_names() {
        let listed = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17 /run/a socket\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 18 @abstract/x\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 19\n";
        assert_eq!(names(listed).collect::<Vec<_>>(), [Path::new("/run/a socket")]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whoever_listens_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(sockets().contains(&path));
    }
}
