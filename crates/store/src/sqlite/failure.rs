//! SQLite's error codes, sorted by what follows from them.

use std::path::Path;
use std::time::Duration;

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::Error;
use crate::error::is_out_of_descriptors;
use crate::means::refuse_without_descriptors;

/// Whether the connection must be thrown away: after these SQLite may hold locks it no longer
/// knows of, or state that disagrees with the file.
pub(super) fn spoils(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// Whether a call that takes or frees a lock failed.
fn is_of_locking(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_IOERR_LOCK
            | ffi::SQLITE_IOERR_UNLOCK
            | ffi::SQLITE_IOERR_RDLOCK
            | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
            | ffi::SQLITE_IOERR_SHMLOCK
    )
}

/// Whether trying again may help without anybody doing anything.
pub(super) fn is_transient(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// Whether this may be a page that the disk failed to give, and not one that is broken: SQLite says
/// the same of both.
pub(super) fn may_be_misread(error: &rusqlite::Error) -> bool {
    let read = [ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_CORRUPTFS];
    match error.sqlite_error() {
        Some(found) => {
            matches!(found.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                || read.contains(&found.extended_code)
        }
        None => false,
    }
}

/// Whether a failed COMMIT was certainly not made: space ran out while its frames were being
/// written, so the last one, which seals the commit, was not.
pub(super) fn certainly_not_committed(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy))
}

/// The limit of this process that SQLite met, which it does not say.
fn limit_behind(code: ffi::Error) -> Option<String> {
    match (code.code, code.extended_code) {
        (ErrorCode::OutOfMemory, _) | (_, ffi::SQLITE_IOERR_NOMEM | ffi::SQLITE_IOERR_SHMMAP) => {
            Some("there is not enough memory".to_owned())
        }
        (ErrorCode::CannotOpen, _) => {
            let refused = refuse_without_descriptors().err()?;
            is_out_of_descriptors(&refused).then(|| refused.to_string())
        }
        (_, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMOPEN)
        | (ErrorCode::DiskFull, _) => {
            let bytes = rustix::process::getrlimit(rustix::process::Resource::Fsize).current?;
            Some(format!("files may have {bytes} bytes at most (`ulimit -f`)"))
        }
        _ => None,
    }
}

/// Says what happened in the store's own terms.
pub(super) fn described(path: &Path, error: &rusqlite::Error, limit: Duration) -> Error {
    let rusqlite::Error::SqliteFailure(code, message) = error else {
        return Error::Statement(error.to_string());
    };
    let detail = match message {
        Some(message) => format!("{message} (SQLite {})", code.extended_code),
        None => format!("{code}"),
    };
    if let Some(limit) = limit_behind(*code) {
        return Error::exhausted(path, limit);
    }
    let path = path.to_owned();
    let place = path.display().to_string();
    match code.code {
        ErrorCode::NotADatabase => Error::NotAStore { path, detail },
        ErrorCode::DatabaseCorrupt => Error::Damaged { place, detail },
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Error::Unreadable { path, detail },
        ErrorCode::ReadOnly => Error::Unreadable {
            path,
            detail: format!("it or its directory is read-only: {detail}"),
        },
        // SQLite's shared memory could not be made longer.
        _ if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            Error::Full(format!("{place}: {detail}"))
        }
        ErrorCode::DiskFull => Error::Full(format!("{place}: {detail}")),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked { path, detail },
        _ if is_of_locking(code.extended_code) => Error::LocksFail { path, detail },
        ErrorCode::SystemIoFailure => Error::Io(format!("{place}: {detail}")),
        ErrorCode::ConstraintViolation => Error::Constraint { detail },
        ErrorCode::OperationInterrupted => {
            Error::TooSlow { what: "a transaction".to_owned(), limit }
        }
        _ => Error::Statement(detail),
    }
}

/// The linked SQLite must be free of the bug that loses commits when a checkpoint meets a wrap of
/// the write-ahead log.
pub(super) fn refuse_old_library() -> Result<(), Error> {
    const FIRST_SAFE: i32 = 3_051_003;
    let version = rusqlite::version_number();
    if version >= FIRST_SAFE {
        return Ok(());
    }
    Err(Error::Statement(format!(
        "this program was built with SQLite {}, which can lose data; 3.51.3 or newer is needed",
        rusqlite::version()
    )))
}

/// A failure that does not come from SQLite, in its shape.
pub(super) fn misuse(message: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_MISUSE), Some(message.to_owned()))
}
