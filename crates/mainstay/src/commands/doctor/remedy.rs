//! The one next command for an error of the store.

use mainstay_store::Error;

use super::finding::Finding;
use super::place::nearest;
use crate::paths::{Paths, server_address};
use crate::wording;

/// An error as a finding.
pub(super) fn problem(check: &'static str, error: &Error, paths: &Paths) -> Finding {
    Finding::problem(check, wording::line(&error.to_string()), next(error, paths))
}

/// Looks or brings data back; never removes any.
fn next(error: &Error, paths: &Paths) -> String {
    let server = || wording::word(&server_address(&paths.store).unwrap_or_default());
    match error {
        Error::Empty { .. } | Error::Damaged { .. } | Error::RestoreInterrupted { .. } => {
            paths.command("restore FILE")
        }
        Error::Unreadable { path, .. } | Error::NotAStore { path, .. } => {
            format!("ls -ld {}", wording::path(path))
        }
        Error::NetworkFileSystem { .. } => paths.command("store copy --to PATH-ON-A-LOCAL-DISK"),
        Error::Newer { .. } => "mainstay --version".to_owned(),
        Error::InUse { .. } | Error::Replaced { .. } => paths.command("store info"),
        Error::Unreachable { .. } => format!("pg_isready -d {}", server()),
        Error::Refused { .. } => format!("psql {} -c 'SELECT 1'", server()),
        _ => match paths.file() {
            Some(file) => format!("df -h {}", wording::path(nearest(file))),
            None => format!("pg_isready -d {}", server()),
        },
    }
}
