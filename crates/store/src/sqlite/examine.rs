//! What an SQLite store can tell of itself.

use std::path::Path;
use std::time::Duration;

use super::Sqlite;
use super::connection::{Link, Role};
use super::create::versions;
use super::failure::described;
use super::files::{Files, Presence};
use super::objects::foreign;
use super::reread::{reread, reread_problems};
use super::users::others;
use crate::check::Depth;
use crate::filesystem::FileSystem;
use crate::info::Info;
use crate::location::Journal;
use crate::migrations::CACHE;
use crate::schema::Schema;
use crate::{Error, Result};

impl Sqlite {
    /// SQLite's own checks.
    pub(crate) fn check(&self, schema: &Schema, depth: Depth) -> Result<Vec<String>> {
        reread_problems(|| self.look(schema, depth))
    }

    fn look(&self, schema: &Schema, depth: Depth) -> Result<Vec<String>> {
        let path = &self.files.database;
        let failed = |error: &rusqlite::Error| described(path, error, Duration::ZERO);
        let link = Link::open(path, Role::Reader)?;
        let mut problems = integrity(&link.connection, depth).map_err(|error| failed(&error))?;
        problems.extend(foreign(&link.connection, schema).map_err(|error| failed(&error))?);
        let orphans = link
            .integer("SELECT count(*) FROM pragma_foreign_key_check")
            .map_err(|error| failed(&error))?;
        if orphans > 0 {
            problems.push(format!("{orphans} rows refer to rows that are not there"));
        }
        Ok(problems)
    }

    pub(crate) fn describe(&self, info: &mut Info) -> Result<()> {
        let path = &self.files.database;
        let link = Link::open(path, Role::Reader)?;
        info.engine = "sqlite";
        rusqlite::version().clone_into(&mut info.engine_version);
        info.journal = Some(match link.journal(path)? {
            Journal::Wal => "wal",
            Journal::Rollback => "rollback",
        });
        info.bytes = std::fs::metadata(path).map_or(0, |found| found.len());
        let free = link
            .integer("PRAGMA freelist_count")
            .and_then(|pages| Ok(pages.saturating_mul(link.integer("PRAGMA page_size")?)));
        info.free_bytes = free.ok().and_then(|free| u64::try_from(free).ok());
        info.wal_bytes = Some(self.files.wal_bytes());
        info.file_system = Some(FileSystem::of(path)?);
        info.file = Some(self.path.clone());
        info.other_users = others(&self.files).iter().map(|pid| format!("process {pid}")).collect();
        Ok(())
    }
}

/// The complaints of SQLite's integrity check.
pub(super) fn integrity(
    connection: &rusqlite::Connection,
    depth: Depth,
) -> rusqlite::Result<Vec<String>> {
    let check = match depth {
        Depth::Quick => "PRAGMA quick_check(20)",
        Depth::Full => "PRAGMA integrity_check(20)",
    };
    let mut statement = connection.prepare(check)?;
    let lines: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    // A full-text index that is out of order is made anew by whoever keeps it.
    let of_cache = format!("FTS5 table main.{CACHE}");
    Ok(lines.into_iter().filter(|line| line != "ok" && !line.contains(&of_cache)).collect())
}

/// Refuses a file that cannot be restored: not a store, damaged, or of a newer version.
pub(crate) fn refuse_unfit(file: &Path, schema: &Schema) -> Result<()> {
    if Files::new(file).look()? == Presence::Absent {
        return Err(Error::Absent { place: file.display().to_string() });
    }
    reread(|| refuse_unsound(file, schema))
}

fn refuse_unsound(file: &Path, schema: &Schema) -> Result<()> {
    let failed = |error: &rusqlite::Error| described(file, error, Duration::ZERO);
    let link = Link::open(file, Role::Examiner)?;
    schema.pending(&versions(&link.connection).map_err(|error| failed(&error))?)?;
    let mut problems = integrity(&link.connection, Depth::Full).map_err(|error| failed(&error))?;
    problems.extend(foreign(&link.connection, schema).map_err(|error| failed(&error))?);
    match problems.into_iter().next() {
        None => Ok(()),
        Some(detail) => Err(Error::Damaged { place: file.display().to_string(), detail }),
    }
}
