//! The one place where the file tools open files: regular ones only, and never one that is closed.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::blocking::Stop;
use super::bounds::{Bounds, elsewhere};
use crate::Outcome;
use crate::beneath::{self, LinkMet};

/// Why a file was not opened.
pub(crate) enum Closed {
    Missing,
    Directory,
    /// A fifo, a device, a socket.
    Special,
    /// No tool opens it.
    Forbidden,
    /// A link leads somewhere else than when the path was made real.
    Elsewhere,
    Failed(io::Error),
}

impl Closed {
    /// What the model reads.
    pub(super) fn outcome(self, bounds: &Bounds, path: &Path) -> Outcome {
        let shown = bounds.shown(path);
        match self {
            Self::Missing => Outcome::failed(format!(
                "{shown} does not exist. Use `list` or `glob` to find the right path."
            )),
            Self::Directory => {
                Outcome::failed(format!("{shown} is a directory. Use `list` to see what is in it."))
            }
            Self::Special => Outcome::failed(format!(
                "{shown} is not a regular file but a pipe, a socket or a device; it was not opened."
            )),
            Self::Forbidden => bounds.refusal(path),
            Self::Elsewhere => elsewhere(&shown),
            Self::Failed(error) => {
                let denied = error.kind() == io::ErrorKind::PermissionDenied;
                let hidden = bounds.hidden(path).filter(|_| denied).unwrap_or_default();
                Outcome::failed(format!("Could not open {shown}: {error}.{hidden}"))
            }
        }
    }
}

/// Opens a regular file for reading. `path` is real: a link in it is not followed.
///
/// It is looked at first, through a handle that opens nothing, and then that very file is opened,
/// so that nobody can put another one in its place between. Without waiting, because some files
/// under `/proc` wait for ever.
#[cfg(target_os = "linux")]
pub(crate) fn open(bounds: &Bounds, path: &Path) -> Result<(File, Metadata), Closed> {
    opened(bounds, &beneath::look(path).map_err(closed)?)
}

/// The same for a name in a directory that is open.
#[cfg(target_os = "linux")]
pub(crate) fn open_in(
    bounds: &Bounds,
    directory: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<(File, Metadata), Closed> {
    opened(bounds, &beneath::look_in(directory, name).map_err(closed)?)
}

#[cfg(target_os = "linux")]
fn opened(bounds: &Bounds, handle: &File) -> Result<(File, Metadata), Closed> {
    use std::os::fd::AsRawFd;

    let metadata = handle.metadata().map_err(Closed::Failed)?;
    refuse(bounds, &metadata)?;
    let itself = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let file = rustix::fs::open(itself, FLAGS, Mode::empty())
        .map_err(|error| Closed::Failed(error.into()))?;
    Ok((File::from(file), metadata))
}

/// Opens a regular file for reading. `path` is real: a link in it is not followed.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open(bounds: &Bounds, path: &Path) -> Result<(File, Metadata), Closed> {
    use std::os::fd::AsFd;
    let entry = beneath::Entry::of(path).map_err(closed)?;
    open_in(bounds, entry.directory.as_fd(), &entry.name)
}

/// The same for a name in a directory that is open.
///
/// It is looked at first; a file that is put in its place at that very moment is looked at again.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_in(
    bounds: &Bounds,
    directory: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<(File, Metadata), Closed> {
    let found = beneath::Status::at(directory, name).map_err(closed)?;
    if found.is_link() {
        return Err(Closed::Elsewhere);
    }
    if !found.is_file() && !found.is_directory() {
        return Err(Closed::Special);
    }
    if bounds.closes(found) {
        return Err(Closed::Forbidden);
    }
    let file = rustix::fs::openat(directory, name, FLAGS | OFlags::NOFOLLOW, Mode::empty());
    let file = File::from(file.map_err(|error| closed(error.into()))?);
    let metadata = file.metadata().map_err(Closed::Failed)?;
    refuse(bounds, &metadata)?;
    Ok((file, metadata))
}

const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn refuse(bounds: &Bounds, metadata: &Metadata) -> Result<(), Closed> {
    if bounds.closes(metadata) {
        return Err(Closed::Forbidden);
    }
    match metadata.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(Closed::Directory),
        kind if kind.is_symlink() => Err(Closed::Elsewhere),
        _ => Err(Closed::Special),
    }
}

fn closed(error: io::Error) -> Closed {
    match error.kind() {
        io::ErrorKind::NotFound => Closed::Missing,
        _ if LinkMet::is(&error) => Closed::Elsewhere,
        _ => Closed::Failed(error),
    }
}

/// Reads until the call is cancelled. A file that would make its reader wait has ended.
pub(super) struct Patient<'a, R> {
    inner: R,
    stop: &'a Stop,
}

impl<'a, R: Read> Patient<'a, R> {
    pub(super) fn new(inner: R, stop: &'a Stop) -> Self {
        Self { inner, stop }
    }
}

impl<R: Read> Read for Patient<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("the call was cancelled"));
        }
        match self.inner.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }
}

/// Reads a whole file, or says that it has more than `limit` bytes.
pub(crate) fn whole(file: File, limit: u64, stop: &Stop) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    Patient::new(file.take(limit + 1), stop).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a byte, then would make its reader wait.
    struct Slow(bool);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            buffer[0] = 7;
            Ok(1)
        }
    }

    #[test]
    fn what_would_make_its_reader_wait_has_ended() {
        let mut read = Vec::new();
        Patient::new(Slow(false), &Stop::default()).read_to_end(&mut read).unwrap();
        assert_eq!(read, [7]);
    }

    #[test]
    fn an_endless_read_ends_with_the_call() {
        let stop = Stop::default();
        let mut reader = Patient::new(io::repeat(1), &stop);
        reader.read_exact(&mut [0; 16]).unwrap();
        stop.set();
        assert!(reader.read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn more_than_the_limit_is_never_read() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"12345").unwrap();
        for (limit, expected) in [(4, None), (5, Some(b"12345".to_vec()))] {
            io::Seek::rewind(&mut file).unwrap();
            let content = whole(file.try_clone().unwrap(), limit, &Stop::default()).unwrap();
            assert_eq!(content, expected);
        }
    }
}
