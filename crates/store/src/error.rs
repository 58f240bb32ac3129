//! What can go wrong, sorted by what the caller can do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the store. Its text is a sentence; [`Error::hint`] is the next step.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no store at this place.
    #[error("there is no store at {place}")]
    Absent {
        /// The path or address.
        place: String,
    },
    /// The file has no bytes at all. A store never looks like that: something emptied it.
    #[error("{} is an empty file, not a store", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// There is something that cannot be read as a file.
    #[error("could not open {}: {detail}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's or SQLite's own words.
        detail: String,
    },
    /// The file is not a database, or one of another program.
    #[error("{} is not a Mainstay store: {detail}", .path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },
    /// The store is damaged.
    #[error("the store at {place} is damaged: {detail}")]
    Damaged {
        /// The path or address.
        place: String,
        /// What was found.
        detail: String,
    },
    /// A restore was interrupted half-way; nothing may be created in its place.
    #[error("a restore of {} was interrupted; the data from before it is at {}", .path.display(), .aside.display())]
    RestoreInterrupted {
        /// The store's file.
        path: PathBuf,
        /// Where the old data was moved.
        aside: PathBuf,
    },
    /// The file was moved, replaced or deleted while this process had it open.
    #[error("the store {} was moved or replaced while in use", .path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The file system cannot carry a WAL database.
    #[error("{} is on a network file system ({kind}), where an SQLite store cannot be kept safely", .path.display())]
    NetworkFileSystem {
        /// The place.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// The store was written by a newer version.
    #[error(
        "the store is of a newer version ({component} {found}; this program writes up to {supported})"
    )]
    Newer {
        /// The part of the schema.
        component: String,
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        supported: i64,
    },
    /// The place where something was to be created is taken.
    #[error("{place} already contains data")]
    NotEmpty {
        /// The path or address.
        place: String,
    },
    /// Another process has it.
    #[error("{what} is in use by {holder}")]
    InUse {
        /// What was wanted.
        what: String,
        /// Who has it.
        holder: String,
    },
    /// SQLite's own locks are taken by a program that does not take turns.
    #[error("the store {} is locked by another program: {detail}", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// SQLite's own words.
        detail: String,
    },
    /// SQLite's own locks are in disorder after a failing system call.
    #[error("the locks of the store {} fail: {detail}", .path.display())]
    LocksFail {
        /// The file.
        path: PathBuf,
        /// SQLite's own words.
        detail: String,
    },
    /// The lease moved on: another holder owns the resource now.
    #[error("the lease on {resource} was taken over; nothing was written")]
    LeaseLost {
        /// The resource.
        resource: String,
    },
    /// A constraint of the schema said no.
    #[error("refused by a constraint: {detail}")]
    Constraint {
        /// The engine's own words.
        detail: String,
    },
    /// A closure of a write began another write: a defect of the program.
    #[error("a transaction cannot begin another one")]
    Nested,
    /// The closure panicked; its changes were rolled back.
    #[error("the transaction panicked and was rolled back: {0}")]
    Panicked(String),
    /// A commit was interrupted and the store could not be asked whether it was made.
    #[error("could not tell whether the last change was saved: {0}")]
    OutcomeUnknown(String),
    /// A limit of this process is reached: descriptors, memory, the size of a file.
    #[error("a limit of this process keeps it from using {place}: {detail}")]
    Exhausted {
        /// The file.
        place: String,
        /// Which limit.
        detail: String,
    },
    /// No space is left.
    #[error("no space is left for the store: {0}")]
    Full(String),
    /// The disk or the operating system failed.
    #[error("the store could not be read or written: {0}")]
    Io(String),
    /// A transaction or a connection took too long.
    #[error("{what} took longer than {} ms", .limit.as_millis())]
    TooSlow {
        /// What was stopped.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The database server cannot be reached.
    #[error("could not reach the database server {server}: {detail}")]
    Unreachable {
        /// Host and port, without secrets.
        server: String,
        /// The driver's own words.
        detail: String,
    },
    /// The database server refuses: wrong user, password, database or rights.
    #[error("the database server {server} refused: {detail}")]
    Refused {
        /// Host and port, without secrets.
        server: String,
        /// The server's own words.
        detail: String,
    },
    /// The database server's certificate is not trusted.
    #[error("the certificate of the database server {server} is not trusted: {detail}")]
    Untrusted {
        /// Host and port, without secrets.
        server: String,
        /// The verifier's own words.
        detail: String,
    },
    /// The address of a store cannot be understood.
    #[error("the store's address is wrong: {0}")]
    BadAddress(String),
    /// A value that not every engine can keep.
    #[error("{0} cannot be stored")]
    Unstorable(&'static str),
    /// A blob over the cap.
    #[error("a blob of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The cap.
        limit: usize,
    },
    /// No record matches the id that was given.
    #[error("no {what} has an id that starts with \"{typed}\"")]
    UnknownId {
        /// The kind of record.
        what: String,
        /// What was typed.
        typed: String,
    },
    /// More than one record matches.
    #[error("\"{typed}\" is not enough to tell which {what}: {} match", candidates(.matches))]
    AmbiguousId {
        /// The kind of record.
        what: String,
        /// What was typed.
        typed: String,
        /// Some of the matches.
        matches: Vec<String>,
    },
    /// A copy does not hold what its source holds.
    #[error("the copy is not the same as the store: {0}")]
    CopyDiffers(String),
    /// A store that holds tables of a part that this program does not have.
    #[error("the store contains the table {0}, which this program does not know")]
    UnknownTable(String),
    /// A statement the engine does not understand: a defect of the program.
    #[error("a statement failed: {0}")]
    Statement(String),
}

fn candidates(matches: &[String]) -> String {
    matches.join(", ")
}

impl Error {
    /// The next step, where there is one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Absent { .. } => {
                "Check --store and --home, or bring back a backup with `mainstay restore FILE`."
                    .to_owned()
            }
            Error::Empty { path } => format!(
                "Something emptied this file. Bring back a backup with `mainstay restore FILE`, \
                 or, if there never was a store, remove it: rm {}",
                quoted(path)
            ),
            Error::Unreadable { path, .. } => {
                format!("Check its type and permissions: ls -ld {}", quoted(path))
            }
            Error::NotAStore { .. } => {
                "Point --store at another file, or at a path that does not exist yet.".to_owned()
            }
            Error::Damaged { .. } => {
                "Bring back a backup with `mainstay restore FILE`; the damaged \
                data is kept beside it."
                    .to_owned()
            }
            Error::RestoreInterrupted { .. } => {
                "Run `mainstay restore FILE` again; it continues from there.".to_owned()
            }
            Error::Replaced { .. } => "Restart this program and run `mainstay doctor`.".to_owned(),
            Error::NetworkFileSystem { .. } => "Put the store on a local disk with --store PATH, \
                or keep it in PostgreSQL with --store postgres://…; to insist on this place, \
                create it with --store 'sqlite:PATH?journal=rollback'."
                .to_owned(),
            Error::Newer { .. } => "Update this program; the store was left as it is.".to_owned(),
            Error::NotEmpty { .. } => "Choose a place that does not exist yet.".to_owned(),
            Error::Locked { path, .. } => {
                format!("See which program has it open: fuser -v {}", quoted(path))
            }
            Error::InUse { .. } => "Wait for it, or stop that process, then try again.".to_owned(),
            Error::LeaseLost { .. } => "Another process has taken over this work.".to_owned(),
            Error::OutcomeUnknown(_) | Error::Io(_) | Error::LocksFail { .. } => {
                "Check the disk with `mainstay doctor`, then try again.".to_owned()
            }
            Error::Exhausted { .. } => {
                "See the limits with `ulimit -a`, raise the one that is too low, then try again; \
                 nothing that was saved is lost."
                    .to_owned()
            }
            Error::Full(_) => {
                "Free some space on that disk, then try again; nothing that was saved is lost."
                    .to_owned()
            }
            Error::TooSlow { .. } => {
                "Try again; if it stays slow, run `mainstay doctor`.".to_owned()
            }
            Error::Unreachable { .. } => {
                "Check that the server runs and that host and port in --store are right.".to_owned()
            }
            Error::Refused { .. } => {
                "Check user, password and database in --store (or MAINSTAY_STORE).".to_owned()
            }
            Error::Untrusted { .. } => {
                "Let this system trust the certificate's authority, or, on a \
                network you trust, add sslmode=disable to the address."
                    .to_owned()
            }
            Error::BadAddress(_) => "A store is a path, or \
                postgres://USER:PASSWORD@HOST/DATABASE."
                .to_owned(),
            Error::AmbiguousId { .. } => "Type more of the id.".to_owned(),
            Error::UnknownTable(_) => {
                "Copy it with the program that made it, or a newer one.".to_owned()
            }
            Error::CopyDiffers(_) => {
                "Nothing was put in place; try again, and check both with `mainstay store check`."
                    .to_owned()
            }
            Error::Constraint { .. }
            | Error::Nested
            | Error::Panicked(_)
            | Error::Unstorable(_)
            | Error::TooLarge { .. }
            | Error::UnknownId { .. }
            | Error::Statement(_) => return None,
        };
        Some(hint)
    }

    /// The same error about `to`, where it names the temporary file `from`: nobody knows that one.
    pub(crate) fn about(self, from: &Path, to: &Path) -> Self {
        let (old, new) = (from.display().to_string(), to.display().to_string());
        let text = |text: String| text.replace(&old, &new);
        let file = |path: PathBuf| if path == from { to.to_owned() } else { path };
        match self {
            Error::Unreadable { path, detail } => {
                Error::Unreadable { path: file(path), detail: text(detail) }
            }
            Error::Locked { path, detail } => Error::Locked { path: file(path), detail },
            Error::LocksFail { path, detail } => Error::LocksFail { path: file(path), detail },
            Error::Exhausted { place, detail } => Error::Exhausted { place: text(place), detail },
            Error::Full(detail) => Error::Full(text(detail)),
            Error::Io(detail) => Error::Io(text(detail)),
            Error::Damaged { place, detail } => Error::Damaged { place: text(place), detail },
            other => other,
        }
    }

    /// An error of the operating system on a file.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Error::Full(format!("{}: {error}", path.display()))
            }
            std::io::ErrorKind::FileTooLarge | std::io::ErrorKind::OutOfMemory => {
                Error::exhausted(path, error.to_string())
            }
            _ if is_out_of_descriptors(error) => Error::exhausted(path, error.to_string()),
            _ => Error::Unreadable { path: path.to_owned(), detail: error.to_string() },
        }
    }

    /// A limit of this process that a file met.
    pub(crate) fn exhausted(path: &Path, detail: String) -> Self {
        Error::Exhausted { place: path.display().to_string(), detail }
    }
}

/// Whether this process, or the system, has no more descriptors.
pub(crate) fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let found = Errno::from_io_error(error);
    matches!(found, Some(Errno::MFILE | Errno::NFILE))
}

/// A path as it can be pasted into a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().all(|character| character.is_ascii_alphanumeric() || "/._-".contains(character))
    {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
