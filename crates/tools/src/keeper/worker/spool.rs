//! The worker's hand on its spool: the log that it appends to, and the files of long outputs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mainstay_store::ProcessIdentity;
use mainstay_store::occupancy::occupy;

use crate::keeper::shared::Ended;
use crate::keeper::shared::spool::{LOG, Line, OUTPUT, SOCKET};

/// The name of a log that is about to replace the log.
const NEW_LOG: &str = "log.new";

/// The worker's hand on its directory.
pub(super) struct Spool {
    directory: PathBuf,
    log: Log,
    /// Nobody clears the directory up as long as this process lives.
    _occupied: File,
}

/// A log that is written to.
pub(super) struct Log {
    file: File,
    length: u64,
}

/// Where a line is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    offset: u64,
    length: usize,
}

impl Log {
    /// Opens an empty one and says whose it is.
    fn open(path: &Path) -> io::Result<Self> {
        let mut log = Self { file: append(path)?, length: 0 };
        log.write(&Line::Keeper { identity: ProcessIdentity::current().to_string() })?;
        Ok(log)
    }

    pub(super) fn write(&mut self, line: &Line) -> io::Result<Place> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let written = self.file.write(&bytes)?;
        let place = Place { offset: self.length, length: written };
        self.length += written as u64;
        if written < bytes.len() {
            // Ends the torn line, so that the next one can be read.
            self.length += self.file.write(b"\n")? as u64;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(place)
    }
}

impl Spool {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let occupied = occupy(directory)?;
        let log = Log::open(&directory.join(LOG))?;
        Ok(Self { directory: directory.to_owned(), log, _occupied: occupied })
    }

    pub(super) fn write(&mut self, line: &Line) -> io::Result<Place> {
        self.log.write(line)
    }

    /// The length of the log in bytes.
    pub(super) fn length(&self) -> u64 {
        self.log.length
    }

    /// Begins a new log beside the old one.
    pub(super) fn rewrite(&self) -> io::Result<Log> {
        let path = self.directory.join(NEW_LOG);
        // What a failure left.
        let _ = fs::remove_file(&path);
        Log::open(&path)
    }

    /// Puts a new log in the place of the old one.
    pub(super) fn replace(&mut self, log: Log) -> io::Result<()> {
        let (from, to) = (self.directory.join(NEW_LOG), self.directory.join(LOG));
        mainstay_store::fsatomic::rename(&from, &to)?;
        self.log = log;
        Ok(())
    }

    /// How a job ended, from the line that says so.
    pub(super) fn ended(&self, place: Place) -> Option<Ended> {
        let mut bytes = vec![0; place.length];
        self.log.file.read_exact_at(&mut bytes, place.offset).ok()?;
        match serde_json::from_slice(&bytes).ok()? {
            Line::Ended { ended, .. } => Some(ended),
            _ => None,
        }
    }

    /// Where the output of a job goes if it is long. A key is nobody's path.
    pub(super) fn output_path(&self, key: &str) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = key.chars().take(80).map(safe).collect();
        self.directory.join(format!("{OUTPUT}{name}"))
    }

    /// Takes the name away, so that nobody connects any more.
    pub(super) fn close(&self) {
        let _ = fs::remove_file(self.directory.join(SOCKET));
    }

    /// Takes everything away, and the spool where nobody else has anything in it.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
        if let Some(spool) = self.directory.parent() {
            let _ = fs::remove_dir(spool);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the log is appended to, line by line")]
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true).mode(mainstay_store::fsatomic::PRIVATE_FILE);
    options.open(path)
}
