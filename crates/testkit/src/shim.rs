//! Runs a command under the fault shim: which directory, which fault, at which point.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::oplog::{self, Op};

mod library;

/// What the shim does at a point; its crate says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Counts the points and harms nothing.
    Count,
    /// SIGKILL before the call.
    Kill,
    /// The first half of a write, then SIGKILL; other calls as [`Mode::Kill`].
    Torn,
    /// The call fails with EIO and is not done.
    Eio,
    /// The call fails with ENOSPC and is not done; only calls that a full disk fails are points.
    Enospc,
    /// Every call is done and logged.
    Record,
    /// Two names are exchanged before the call.
    Exchange,
    /// Two names are exchanged for the one call.
    Blink,
}

impl Mode {
    /// The name in the environment.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Kill => "kill",
            Self::Torn => "torn",
            Self::Eio => "eio",
            Self::Enospc => "enospc",
            Self::Record => "record",
            Self::Exchange => "exchange",
            Self::Blink => "blink",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The kinds of call that can be points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes written.
    Write,
    /// `fsync`, `fdatasync`, of files and directories.
    Sync,
    /// A name changed.
    Rename,
    /// A lock taken or released.
    Lock,
    /// A file, directory or link made.
    Create,
    /// A size set, or a file emptied by opening it.
    Truncate,
    /// A name removed.
    Unlink,
    /// Bytes read; a point only where it is asked for.
    Read,
    /// A name looked up; a point only where it is asked for.
    Look,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Write,
        Self::Sync,
        Self::Rename,
        Self::Lock,
        Self::Create,
        Self::Truncate,
        Self::Unlink,
        Self::Read,
        Self::Look,
    ];
    /// The kinds that a full disk fails.
    pub const ON_A_FULL_DISK: [Self; 4] = [Self::Write, Self::Create, Self::Truncate, Self::Rename];

    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Lock => "lock",
            Self::Create => "create",
            Self::Truncate => "truncate",
            Self::Unlink => "unlink",
            Self::Read => "read",
            Self::Look => "look",
        }
    }
}

/// Settings of the shim for commands, and the place where it leaves its count or log.
///
/// Several commands with one `Shim` count together and log into one file.
pub struct Shim {
    under: PathBuf,
    mode: Mode,
    at: Option<u64>,
    forever: bool,
    kinds: Vec<Kind>,
    until: Option<PathBuf>,
    pair: Option<(PathBuf, PathBuf)>,
    scratch: TempDir,
}

impl Shim {
    /// Watches the files under a directory, which must exist, and counts points.
    pub fn under(directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref();
        let under = directory
            .canonicalize()
            .unwrap_or_else(|error| panic!("Could not watch {}: {error}.", directory.display()));
        let scratch = TempDir::with_prefix("faultshim-").expect("a temporary directory");
        Self {
            under,
            mode: Mode::Count,
            at: None,
            forever: false,
            kinds: Vec::new(),
            until: None,
            pair: None,
            scratch,
        }
    }

    /// Sets what happens at the point.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets which point is struck, from 1.
    pub fn at(mut self, point: u64) -> Self {
        self.at = Some(point);
        self
    }

    /// Strikes every point after that one too.
    pub fn forever(mut self) -> Self {
        self.forever = true;
        self
    }

    /// Ends the faults once a file exists, so that work can be seen to go on.
    pub fn until(mut self, file: impl Into<PathBuf>) -> Self {
        self.until = Some(file.into());
        self
    }

    /// The names that are exchanged, below the directory.
    pub fn pair(mut self, one: &str, other: &str) -> Self {
        self.pair = Some((self.under.join(one), self.under.join(other)));
        self
    }

    /// Makes only these kinds of call points.
    pub fn only(mut self, kinds: &[Kind]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    /// The file whose writes are recorded as acknowledgements; the program must be told to use it.
    pub fn acks(&self) -> PathBuf {
        self.scratch.path().join("acks")
    }

    /// Makes a command run under the shim.
    pub fn apply<'command>(&self, command: &'command mut Command) -> &'command mut Command {
        let preloaded = preloaded(command);
        command
            .env("LD_PRELOAD", preloaded)
            .env("FAULTSHIM_UNDER", &self.under)
            .env("FAULTSHIM_MODE", self.mode.name())
            .env("FAULTSHIM_OUT", self.out());
        if self.mode == Mode::Record {
            let scratch = self.scratch.path().canonicalize().expect("it was just made");
            command.env("FAULTSHIM_ACKS", scratch.join("acks"));
        }
        if let Some(point) = self.at {
            command.env("FAULTSHIM_AT", point.to_string());
        }
        if self.forever {
            command.env("FAULTSHIM_FOREVER", "1");
        }
        if let Some(file) = &self.until {
            command.env("FAULTSHIM_UNTIL_FILE", file);
        }
        if let Some((one, other)) = &self.pair {
            command.env("FAULTSHIM_ONE", one).env("FAULTSHIM_OTHER", other);
        }
        if !self.kinds.is_empty() {
            let names: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
            command.env("FAULTSHIM_KINDS", names.join(","));
        }
        command
    }

    /// How many points were passed so far; right even after SIGKILL.
    pub fn points(&self) -> u64 {
        assert!(self.mode != Mode::Record, "A recording shim leaves a log, not a count.");
        std::fs::read(self.out()).map_or(0, |bytes| {
            u64::from_le_bytes(bytes.try_into().expect("the counter has eight bytes"))
        })
    }

    /// What was recorded so far.
    pub fn operations(&self) -> Vec<Op> {
        assert!(self.mode == Mode::Record, "Only a recording shim leaves a log.");
        oplog::read(&self.out())
    }

    fn out(&self) -> PathBuf {
        self.scratch.path().join("out")
    }
}

/// The shim, before whatever else the command would preload (a faked clock, for one).
fn preloaded(command: &Command) -> OsString {
    let set = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
    let others = match set {
        Some((_, value)) => value.map(OsString::from),
        None => std::env::var_os("LD_PRELOAD"),
    };
    let mut list = library::path().as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
