//! Creation and migration.
//!
//! A store is built under a temporary name and renamed into place when it is whole, so that an
//! empty or half-made file at the store's own name is never ours.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::connection::{APPLICATION_ID, Link, Role, open_blank};
use super::failure::described;
use super::files::{Files, Presence};
use super::turnstile::Turnstile;
use crate::clock::wall_millis;
use crate::fsatomic::{PRIVATE_FILE, create_new, directory_of, rename_into_vacancy};
use crate::location::Journal;
use crate::schema::Schema;
use crate::store::Options;
use crate::tx::Dialect;
use crate::unfinished::Unfinished;
use crate::{Error, Id, Result};

/// Creates the store unless it is there. Two processes that come at once make one.
pub(super) fn ensure(
    files: &Files,
    turnstile: &Turnstile,
    journal: Journal,
    options: &Options,
) -> Result<()> {
    if files.look()? == Presence::Present {
        return Ok(());
    }
    let path = &files.database;
    super::refuse_network(path, journal)?;
    let _turn = turnstile.enter(options.limits.write)?;
    if files.look()? == Presence::Present {
        return Ok(());
    }
    // With the turn in hand no other creator is at work.
    remove_leftovers(path, "create");
    let unfinished = Unfinished::beside(path, "create", options.records.as_deref())?;
    let temporary = unfinished.path();
    let made = blank(temporary, &options.schema, journal).and_then(|()| {
        rename_into_vacancy(temporary, path).map_err(|error| Error::file(path, &error))
    });
    made.map_err(|error| error.about(temporary, path))
}

/// Makes a whole, empty store at `path`, which must not exist, and closes it again.
pub(super) fn blank(path: &Path, schema: &Schema, journal: Journal) -> Result<()> {
    create_new(path, PRIVATE_FILE).map_err(|error| Error::file(path, &error))?;
    let failed = |error: &rusqlite::Error| described(path, error, Duration::ZERO);
    let mut connection = open_blank(path).map_err(|error| failed(&error))?;
    let mode = journal.pragma();
    let steps = || -> rusqlite::Result<String> {
        connection.execute_batch(&format!("PRAGMA application_id={APPLICATION_ID}"))?;
        connection.query_row(&format!("PRAGMA journal_mode={mode}"), [], |row| row.get(0))
    };
    let got = steps().map_err(|error| failed(&error))?;
    if got != mode {
        return Err(Error::Io(format!(
            "{}: SQLite answers journal mode \"{got}\" where \"{mode}\" was asked for",
            path.display()
        )));
    }
    migrate_connection(&mut connection, schema).map_err(|error| error.at(path))?;
    let born = connection.execute(
        "INSERT INTO meta (key, value) VALUES ('store', ?1), ('created_at', ?2)",
        [Id::new().to_string(), wall_millis().to_string()],
    );
    born.map_err(|error| failed(&error))?;
    sealed(connection, path, journal)
}

/// Closes a new database so that all of it is in the one file, and on the disk, and looks at it
/// again: a failing disk can leave another journal mode than SQLite answered.
pub(super) fn sealed(connection: Connection, path: &Path, journal: Journal) -> Result<()> {
    connection.close().map_err(|(_, error)| described(path, &error, Duration::ZERO))?;
    // The last close folds the write-ahead log into the file and swallows its errors.
    if Files::new(path).wal().exists() {
        return Err(Error::Io(format!(
            "{}: the write-ahead log could not be folded in",
            path.display()
        )));
    }
    if Link::open(path, Role::Reader)?.journal(path)? != journal {
        return Err(Error::Io(format!("{}: its journal mode was not kept", path.display())));
    }
    Ok(())
}

/// Brings an existing store up to this program's schema.
pub(super) fn migrate(
    files: &Files,
    turnstile: &Turnstile,
    schema: &Schema,
    patience: Duration,
) -> Result<()> {
    let path = &files.database;
    let mut link = Link::open(path, Role::Writer)?;
    let found = versions(&link.connection).map_err(|error| described(path, &error, patience))?;
    if schema.pending(&found)?.is_empty() {
        return Ok(());
    }
    let _turn = turnstile.enter(patience)?;
    migrate_connection(&mut link.connection, schema).map_err(|error| error.at(path))
}

/// What ends a migration.
enum Stopped {
    Refused(Error),
    Failed(rusqlite::Error),
}

impl Stopped {
    fn at(self, path: &Path) -> Error {
        match self {
            Stopped::Refused(error) => error,
            Stopped::Failed(error) => described(path, &error, Duration::ZERO),
        }
    }
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        Stopped::Failed(error)
    }
}

/// Runs every missing step, each in a transaction of its own that also moves the version.
fn migrate_connection(connection: &mut Connection, schema: &Schema) -> Result<(), Stopped> {
    loop {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = versions(&step)?;
        let pending = schema.pending(&found).map_err(Stopped::Refused)?;
        let Some((component, version, migration)) = pending.first() else {
            return Ok(());
        };
        step.execute_batch(&migration.sql(Dialect::Sqlite))?;
        step.execute(
            "INSERT INTO schema_versions (component, version) VALUES (?1, ?2)
             ON CONFLICT (component) DO UPDATE SET version = excluded.version",
            (component, version),
        )?;
        step.commit()?;
    }
}

/// The versions of all components; none in a blank file.
pub(super) fn versions(connection: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let there: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_versions'",
        [],
        |row| row.get(0),
    )?;
    if there == 0 {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare("SELECT component, version FROM schema_versions")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Removes what was left beside `path` by those who made something there for `purpose` and were
/// killed; the caller knows that none of them can be at work any more.
pub(super) fn remove_leftovers(path: &Path, purpose: &str) {
    let Some(name) = path.file_name() else { return };
    let prefix = format!(".{}.{purpose}-", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let ours = found.strip_prefix(&prefix).and_then(|rest| rest.split_once('.')).is_some_and(
            |(id, ending)| {
                let endings = ["tmp", "tmp-wal", "tmp-shm", "tmp-journal"];
                id.parse::<Id>().is_ok() && endings.contains(&ending)
            },
        );
        if ours {
            // A leftover that stays is harmless; the next one tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes a half-made store under its temporary name.
pub(crate) fn discard(temporary: &Path) {
    let files = Files::new(temporary);
    for path in [&files.database, &files.wal(), &files.shm(), &files.beside("-journal")] {
        // The error that led here is the one to report.
        let _ = fs::remove_file(path);
    }
}
