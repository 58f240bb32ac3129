//! The keeper's directory: its socket, its log, and the long outputs.
//!
//! The log has a line, written with one call, before a job starts and one after it ended. It is not
//! synced: it has to survive the keeper, not the machine. After a reboot nothing it lacks proves
//! anything, and its boot id tells.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mainstay_store::{Liveness, ProcessIdentity};
use serde::{Deserialize, Serialize};

use super::ending::Ended;

const LOG: &str = "log";
const NEW_LOG: &str = "log.new";
/// The socket's name.
pub(super) const SOCKET: &str = "socket";
/// What a connection must begin with, in the keeper's directory. A command in a sandbox can connect to
/// the socket, but it cannot read this, and so not ask for what its sandbox forbids.
pub(super) const TOKEN: &str = "token";

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first line: whose log it is.
    Keeper { identity: String },
    /// A job is about to start.
    Starting { key: String },
    /// It never began: it was let go while its process waited for the word to.
    LetGo { key: String },
    /// Its process is there, since `uptime` in milliseconds.
    Started { key: String, pid: i32, uptime: u64 },
    /// It ended.
    Ended { key: String, ended: Ended },
    /// What it left behind has ended too.
    Over { key: String },
}

/// The worker's hand on its directory.
pub(super) struct Spool {
    directory: PathBuf,
    log: Log,
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
        Ok(Self { directory: directory.to_owned(), log: Log::open(&directory.join(LOG))? })
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
        self.directory.join(format!("output-{name}"))
    }

    /// Takes the name away, so that nobody connects any more.
    pub(super) fn close(&self) {
        let _ = fs::remove_file(self.directory.join(SOCKET));
    }

    /// Takes everything away.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[expect(clippy::disallowed_methods, reason = "the log is appended to, line by line")]
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true).mode(mainstay_store::fsatomic::PRIVATE_FILE);
    options.open(path)
}

/// What the spool of a keeper says about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collected {
    /// It was never started.
    NeverStarted,
    /// The keeper lives, and the job has not ended.
    Running,
    /// It ended.
    Ended(Ended),
    /// Nobody can tell; the words say why.
    InDoubt(String),
}

/// Asks the spool of a keeper that does not answer about a job.
pub fn collect(spool: &Path, name: &str, key: &str) -> Collected {
    let record = match Record::read(&spool.join(name)) {
        Ok(record) => record,
        Err(words) => return Collected::InDoubt(words),
    };
    if let Some(ended) = record.ended.get(key) {
        return Collected::Ended(ended.clone());
    }
    match record.keeper.liveness() {
        Liveness::Alive | Liveness::Stopped => Collected::Running,
        Liveness::OutOfSight => Collected::InDoubt(
            "The machine was restarted, or this is another one; what ran then is not known."
                .to_owned(),
        ),
        Liveness::Dead if record.starting.contains_key(key) => Collected::InDoubt(
            "It was started, and its keeper was killed before it ended; its processes were killed \
             too."
                .to_owned(),
        ),
        Liveness::Dead => Collected::NeverStarted,
    }
}

/// All that a log says.
pub(super) struct Record {
    pub(super) keeper: ProcessIdentity,
    /// The jobs that were to start, with number and uptime once they had.
    pub(super) starting: HashMap<String, Option<(i32, u64)>>,
    pub(super) ended: HashMap<String, Ended>,
    /// Jobs of which nothing is left.
    pub(super) over: Vec<String>,
}

impl Record {
    /// Reads a log; the error is in words.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let bytes = fs::read(directory.join(LOG)).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                "What its keeper knew is gone.".to_owned()
            } else {
                format!("What its keeper knew cannot be read: {error}.")
            }
        })?;
        // A line that was cut by the keeper's death is no line.
        let mut lines = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok());
        let Some(Line::Keeper { identity }) = lines.next() else {
            return Err("What its keeper knew cannot be read.".to_owned());
        };
        let keeper = ProcessIdentity::from_str(&identity)
            .map_err(|()| "What its keeper knew cannot be read.".to_owned())?;
        let (starting, ended, over) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut record = Self { keeper, starting, ended, over };
        for line in lines {
            match line {
                Line::Keeper { .. } => {}
                Line::Starting { key } => drop(record.starting.insert(key, None)),
                Line::LetGo { key } => drop(record.starting.remove(&key)),
                Line::Started { key, pid, uptime } => {
                    record.starting.insert(key, Some((pid, uptime)));
                }
                Line::Ended { key, ended } => {
                    if ended.left.is_empty() {
                        record.over.push(key.clone());
                    }
                    record.ended.insert(key, ended);
                }
                Line::Over { key } => record.over.push(key),
            }
        }
        Ok(record)
    }
}
