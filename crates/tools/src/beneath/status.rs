//! What is known of a file without opening it.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, FileType, Stat};

/// What is known of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The file, whatever its names: device and inode.
    pub identity: (u64, u64),
    /// The kind and the permissions.
    mode: u32,
    /// How many names it has.
    pub links: u64,
    /// Its bytes.
    pub size: u64,
    /// When its content was changed last, in seconds and nanoseconds.
    pub modified: (i64, i64),
    /// When anything of it was changed last.
    pub changed: (i64, i64),
}

impl Status {
    /// What has a name in a directory; a link is not followed.
    pub fn at(directory: impl AsFd, name: &OsStr) -> io::Result<Self> {
        Ok(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }

    #[allow(clippy::useless_conversion, reason = "the type is narrower on macOS")]
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode.try_into().unwrap_or_default())
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    /// Its permissions.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

impl From<&Metadata> for Status {
    fn from(found: &Metadata) -> Self {
        Self {
            identity: (found.dev(), found.ino()),
            mode: found.mode(),
            links: found.nlink(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    reason = "the types differ between systems"
)]
impl From<Stat> for Status {
    fn from(found: Stat) -> Self {
        Self {
            identity: (found.st_dev as u64, found.st_ino.into()),
            mode: found.st_mode.into(),
            links: found.st_nlink as u64,
            size: found.st_size as u64,
            modified: (found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
        }
    }
}
