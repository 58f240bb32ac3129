//! What a path lies on: the kind of file system, its space, its block size.

use std::path::Path;

use crate::fsatomic::directory_of;
use crate::{Error, Result};

/// A file system, as far as a store cares.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileSystem {
    /// Its kind, for people.
    pub kind: String,
    /// Whether it is on another host, so that shared memory and locks cannot be relied on.
    pub network: bool,
    /// Bytes left for this user.
    pub free_bytes: u64,
    /// The block size. Below 4096 a full disk can kill a process in WAL mode.
    pub block_size: u64,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

impl FileSystem {
    /// Looks at the file system of `path`, or of its directory when it does not exist yet.
    pub fn of(path: &Path) -> Result<Self> {
        let place = if path.exists() { path } else { directory_of(path) };
        let failed = |error: rustix::io::Errno| Error::file(place, &error.into());
        let space = rustix::fs::statvfs(place).map_err(failed)?;
        let (kind, network) = kind_of(place)?;
        Ok(Self {
            kind,
            network,
            free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            block_size: space.f_bsize,
            read_only: space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
        })
    }
}

#[cfg(target_os = "linux")]
fn kind_of(place: &Path) -> Result<(String, bool)> {
    let statfs = rustix::fs::statfs(place).map_err(|error| Error::file(place, &error.into()))?;
    // The type of `f_type` differs between platforms; the numbers fit 32 bits.
    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "see above")]
    let magic = statfs.f_type as u32;
    Ok(match named(magic) {
        Some((kind, network)) => (kind.to_owned(), network),
        None if magic == FUSE => {
            let kind = mounted_type(place).unwrap_or_else(|| "fuse".to_owned());
            let network = !LOCAL_FUSE.contains(&kind.as_str());
            (kind, network)
        }
        None => (mounted_type(place).unwrap_or_else(|| format!("{magic:#x}")), false),
    })
}

#[cfg(not(target_os = "linux"))]
fn kind_of(_place: &Path) -> Result<(String, bool)> {
    Ok(("unknown".to_owned(), false))
}

#[cfg(target_os = "linux")]
const FUSE: u32 = 0x6573_5546;

/// File systems in user space that keep their bytes on this host.
#[cfg(target_os = "linux")]
const LOCAL_FUSE: &[&str] = &["fuseblk", "fuse.bindfs", "fuse.fuse-overlayfs", "fuse.ntfs-3g"];

#[cfg(target_os = "linux")]
fn named(magic: u32) -> Option<(&'static str, bool)> {
    Some(match magic {
        0x6969 => ("nfs", true),
        0xff53_4d42 => ("cifs", true),
        0xfe53_4d42 => ("smb", true),
        0x517b => ("smbfs", true),
        0x0102_1997 => ("9p", true),
        0x00c3_6400 => ("ceph", true),
        0x5346_414f | 0x6b41_4653 => ("afs", true),
        0x7375_7245 => ("coda", true),
        0x0bd0_0bd0 => ("lustre", true),
        0x0116_1970 => ("gfs2", true),
        0x7461_636f => ("ocfs2", true),
        0x564c => ("ncp", true),
        0xef53 => ("ext4", false),
        0x9123_683e => ("btrfs", false),
        0x5846_5342 => ("xfs", false),
        0x0102_1994 => ("tmpfs", false),
        0x794c_7630 => ("overlay", false),
        0x2fc1_2fc1 => ("zfs", false),
        0xf2f5_2010 => ("f2fs", false),
        _ => return None,
    })
}

/// The type in the mount table of the longest mount point above `place`.
#[cfg(target_os = "linux")]
fn mounted_type(place: &Path) -> Option<String> {
    let place = std::fs::canonicalize(place).ok()?;
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    table
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let point = before.split(' ').nth(4)?.replace("\\040", " ");
            place.starts_with(&point).then(|| (point.len(), after.split(' ').next()))
        })
        .max_by_key(|(length, _)| *length)
        .and_then(|(_, kind)| kind.map(str::to_owned))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(named(0x6969), Some(("nfs", true)));
        assert_eq!(named(0x0102_1997), Some(("9p", true)));
        assert_eq!(named(0xef53), Some(("ext4", false)));
    }

    #[test]
    fn the_place_of_a_file_to_come_is_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let here = FileSystem::of(directory.path()).unwrap();
        let to_come = FileSystem::of(&directory.path().join("store.db")).unwrap();
        assert_eq!(here.kind, to_come.kind);
        assert!(!here.network && here.free_bytes > 0);
    }
}
