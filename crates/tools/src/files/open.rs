//! The one place where the file tools open files: regular ones only, and never one that is closed.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::blocking::Stop;
use super::bounds::Bounds;
use crate::Outcome;

/// Why a file was not opened.
pub(crate) enum Closed {
    Missing,
    Directory,
    /// A fifo, a device, a socket.
    Special,
    /// No tool opens it.
    Forbidden,
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
            Self::Failed(error) => {
                let denied = error.kind() == io::ErrorKind::PermissionDenied;
                let hidden = bounds.hidden(path).filter(|_| denied).unwrap_or_default();
                Outcome::failed(format!("Could not open {shown}: {error}.{hidden}"))
            }
        }
    }
}

/// Opens a regular file for reading. `path` is real: a link at its end is not followed.
///
/// It is looked at first, through a handle that opens nothing, and then that very file is opened,
/// so that nobody can put another one in its place between. Without waiting, because some files
/// under `/proc` wait for ever.
#[cfg(target_os = "linux")]
pub(crate) fn open(bounds: &Bounds, path: &Path) -> Result<(File, Metadata), Closed> {
    use std::os::fd::AsRawFd;

    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = File::from(rustix::fs::open(path, look, Mode::empty()).map_err(closed)?);
    let metadata = handle.metadata().map_err(Closed::Failed)?;
    refuse(bounds, &metadata)?;
    let again = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let file = rustix::fs::open(again, FLAGS, Mode::empty())
        .map_err(|error| Closed::Failed(error.into()))?;
    Ok((File::from(file), metadata))
}

/// Opens a regular file for reading. `path` is real: a link at its end is not followed.
///
/// It is looked at first; a file that is put in its place at that very moment is not noticed here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open(bounds: &Bounds, path: &Path) -> Result<(File, Metadata), Closed> {
    let metadata = std::fs::symlink_metadata(path).map_err(|error| {
        rustix::io::Errno::from_io_error(&error).map_or(Closed::Failed(error), closed)
    })?;
    refuse(bounds, &metadata)?;
    let file = rustix::fs::open(path, FLAGS | OFlags::NOFOLLOW, Mode::empty()).map_err(closed)?;
    Ok((File::from(file), metadata))
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
        _ => Err(Closed::Special),
    }
}

fn closed(error: rustix::io::Errno) -> Closed {
    match io::Error::from(error) {
        error if error.kind() == io::ErrorKind::NotFound => Closed::Missing,
        error => Closed::Failed(error),
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
