//! The keeper's directory: its socket, its log, and the long outputs.
//!
//! The log has a line, written with one call, before a job starts and one after it ended. It is not
//! synced: it has to survive the keeper, not the machine. After a reboot nothing it lacks proves
//! anything, and its boot id tells.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use mainstay_store::ProcessIdentity;
use serde::{Deserialize, Serialize};

use super::ending::Ended;

/// The log's name.
pub(crate) const LOG: &str = "log";
/// The socket's name.
pub(crate) const SOCKET: &str = "socket";
/// How the names of long outputs begin.
pub(crate) const OUTPUT: &str = "output-";
/// What a connection must begin with, in the keeper's directory. A command in a sandbox can connect to
/// the socket, but it cannot read this, and so not ask for what its sandbox forbids.
pub(crate) const TOKEN: &str = "token";

/// A line of the log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
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

/// All that a log says.
pub(crate) struct Record {
    pub(crate) keeper: ProcessIdentity,
    /// The jobs that were to start, with number and uptime once they had.
    pub(crate) starting: HashMap<String, Option<(i32, u64)>>,
    pub(crate) ended: HashMap<String, Ended>,
    /// Jobs of which nothing is left.
    pub(crate) over: Vec<String>,
}

impl Record {
    /// Reads a log; the error is in words.
    pub(crate) fn read(directory: &Path) -> Result<Self, String> {
        let bytes = fs::read(directory.join(LOG)).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                "Its keeper's log is gone.".to_owned()
            } else {
                format!("Could not read its keeper's log: {error}.")
            }
        })?;
        // A line that was cut by the keeper's death is no line.
        let mut lines = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok());
        let Some(Line::Keeper { identity }) = lines.next() else {
            return Err("Its keeper's log is damaged.".to_owned());
        };
        let keeper = ProcessIdentity::from_str(&identity)
            .map_err(|()| "Its keeper's log is damaged.".to_owned())?;
        let starting = HashMap::new();
        let ended = HashMap::new();
        let over = Vec::new();
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
