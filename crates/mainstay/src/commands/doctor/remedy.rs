//! The one next command for an error of the store.

use mainstay_store::Error;

use super::finding::Finding;
use super::place::nearest;
use crate::settings::{Settings, server_address};
use crate::wording;

/// An error as a finding.
pub(super) fn problem(check: &'static str, error: &Error, settings: &Settings) -> Finding {
    Finding::problem(check, wording::line(&error.to_string()), next(error, settings))
}

/// Looks or brings data back; never removes any.
fn next(error: &Error, settings: &Settings) -> String {
    let server = || wording::word(&server_address(&settings.store).unwrap_or_default());
    match error {
        Error::Empty { .. } | Error::Damaged { .. } | Error::RestoreInterrupted { .. } => {
            settings.command("restore FILE")
        }
        Error::Unreadable { path, .. } | Error::NotAStore { path, .. } => {
            format!("ls -ld {}", wording::path(path))
        }
        Error::NetworkFileSystem { .. } => settings.command("store copy --to PATH-ON-A-LOCAL-DISK"),
        Error::Newer { .. } => "mainstay --version".to_owned(),
        Error::InUse { .. } | Error::Replaced { .. } => settings.command("store info"),
        Error::Unreachable { .. } => format!("pg_isready -d {}", server()),
        Error::Refused { .. } => format!("psql {} -c 'SELECT 1'", server()),
        _ => match settings.file() {
            Some(file) => format!("df -h {}", wording::path(nearest(file))),
            None => format!("pg_isready -d {}", server()),
        },
    }
}
