//! Copies a database file through SQLite, and verifies the copy by opening and counting it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::Sqlite;
use super::connection::{Link, Role, open_blank, read_on};
use super::create::{discard, sealed};
use super::examine::integrity;
use super::failure::described;
use super::reread::reread;
use crate::check::Depth;
use crate::copy::{Copied, Progress};
use crate::fsatomic::{PRIVATE_FILE, create_new, refuse_missing_directory, rename_into_vacancy};
use crate::location::Journal;
use crate::unfinished::Unfinished;
use crate::{Error, Result};

/// Pages copied between two reports.
const PAGES: i32 = 1024;

impl Sqlite {
    /// Writes a backup: one plain file in rollback mode, which can be read anywhere.
    pub(crate) fn backup_to(
        &self,
        file: &Path,
        records: Option<&Path>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Copied> {
        refuse_missing_directory(file)?;
        if file.is_dir() {
            let detail = "it is a directory".to_owned();
            return Err(Error::Unreadable { path: file.to_owned(), detail });
        }
        if std::fs::symlink_metadata(file).is_ok() {
            return Err(Error::NotEmpty { place: file.display().to_string() });
        }
        let unfinished = Unfinished::beside(file, "backup", records)?;
        let temporary = unfinished.path();
        let made = pour(&self.files.database, temporary, Journal::Rollback, progress);
        let placed = made.and_then(|copied| {
            rename_into_vacancy(temporary, file).map_err(|error| Error::file(file, &error))?;
            Ok(copied)
        });
        placed.map_err(|error| error.about(temporary, file))
    }
}

/// Copies the database at `source` into the new file `target`, at one moment, and verifies it.
pub(crate) fn pour(
    source: &Path,
    target: &Path,
    journal: Journal,
    progress: &mut dyn FnMut(Progress),
) -> Result<Copied> {
    reread(|| {
        let link = Link::open(source, Role::Examiner)?;
        create_new(target, PRIVATE_FILE).map_err(|error| Error::file(target, &error))?;
        // What is half-made goes before it is made again.
        pour_into(target, &link, source, journal, progress).inspect_err(|_| discard(target))
    })
}

fn pour_into(
    target: &Path,
    link: &Link,
    source: &Path,
    journal: Journal,
    progress: &mut dyn FnMut(Progress),
) -> Result<Copied> {
    let mut copy = open_blank(target).map_err(|error| wrong(target, &error))?;
    let mut outcome = Err(Error::Statement("nothing was copied".to_owned()));
    // The counts and the pages come from the same moment, because they share a transaction.
    link.read(source, 0, &mut |tx| {
        outcome = tx.counts().and_then(|tables| {
            pages(&link.connection, &mut copy, progress).map_err(|error| wrong(target, &error))?;
            Ok(tables)
        });
    })?;
    let tables = outcome?;
    verified(&copy, target, journal, &tables).map_err(|error| match error {
        // What is wrong with a faithful copy is wrong with its source.
        Error::Damaged { detail, .. } => {
            Error::Damaged { place: source.display().to_string(), detail }
        }
        error => error,
    })?;
    sealed(copy, target, journal)?;
    Ok(Copied { tables })
}

fn pages(
    source: &Connection,
    copy: &mut Connection,
    progress: &mut dyn FnMut(Progress),
) -> rusqlite::Result<()> {
    let backup = Backup::new(source, copy)?;
    loop {
        let step = backup.step(PAGES)?;
        let at = backup.progress();
        let (of, left) = (at.pagecount.unsigned_abs(), at.remaining.unsigned_abs());
        progress(Progress { done: u64::from(of.saturating_sub(left)), of: u64::from(of) });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // Somebody opens the new file: nobody of ours, and not for long.
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Gives a new file its journal mode, and refuses one that is damaged or holds other rows.
pub(super) fn verified(
    copy: &Connection,
    path: &Path,
    journal: Journal,
    tables: &[(String, u64)],
) -> Result<()> {
    let mode = journal.pragma();
    let got: String = copy
        .query_row(&format!("PRAGMA journal_mode={mode}"), [], |row| row.get(0))
        .map_err(|error| wrong(path, &error))?;
    if got != mode {
        return Err(Error::CopyDiffers(format!("its journal mode is {got}, not {mode}")));
    }
    let mut problems = integrity(copy, Depth::Full).map_err(|error| wrong(path, &error))?;
    let mut counts = Ok(Vec::new());
    if problems.is_empty() {
        let mut ledgers = Ok(Vec::new());
        read_on(copy, path, 0, &mut |tx| {
            ledgers = tx.check(Depth::Full);
            counts = tx.counts();
        })?;
        problems = ledgers?;
    }
    if let Some(detail) = problems.into_iter().next() {
        return Err(Error::Damaged { place: path.display().to_string(), detail });
    }
    if counts? != tables {
        return Err(Error::CopyDiffers("it does not hold as many rows".to_owned()));
    }
    Ok(())
}

fn wrong(path: &Path, error: &rusqlite::Error) -> Error {
    described(path, error, Duration::ZERO)
}
