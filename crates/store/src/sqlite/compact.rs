//! Writes a database anew without the room that deleted rows left in it.
//!
//! The new file is made beside the store, verified, and put in its place by one rename. Whoever is
//! killed leaves the old store or the new one, and at most a temporary file, which the next one removes.

use std::path::Path;
use std::time::Duration;

use super::backup::verified;
use super::connection::{Link, Role, open_blank};
use super::create::{remove_leftovers, sealed};
use super::failure::described;
use super::files::Files;
use super::users::Users;
use crate::fsatomic::{PRIVATE_FILE, create_new, rename};
use crate::unfinished::Unfinished;
use crate::{Error, Result};

/// What the names of the temporary files say.
const PURPOSE: &str = "compact";

/// Compacts the store at `path`, which nobody else may have open.
pub(crate) fn compact(path: &Path, records: Option<&Path>) -> Result<()> {
    let files = Files::new(path);
    let path = files.database.as_path();
    files.look()?;
    let _alone = Users::alone(&files)?;
    files.look()?;
    remove_leftovers(path, PURPOSE);
    let unfinished = Unfinished::beside(path, PURPOSE, records)?;
    let temporary = unfinished.path();
    let replaced = written_anew(path, temporary).and_then(|()| {
        // A log that is left would be laid over the new file.
        if files.wal_bytes() > 0 {
            let detail = "the write-ahead log could not be folded in";
            return Err(Error::Io(format!("{}: {detail}", path.display())));
        }
        rename(temporary, path).map_err(|error| Error::file(path, &error))
    });
    replaced.map_err(|error| error.about(temporary, path))
}

/// Writes the database at `path` into a new file, and verifies that it holds the same.
fn written_anew(path: &Path, temporary: &Path) -> Result<()> {
    let failed = |error: rusqlite::Error| described(path, &error, Duration::ZERO);
    let link = Link::open(path, Role::Writer)?;
    link.checkpoint("TRUNCATE", Duration::ZERO).map_err(failed)?;
    let journal = link.journal(path)?;
    let mut tables = Ok(Vec::new());
    link.read(path, 0, &mut |tx| tables = tx.counts())?;
    // Made here, so that nobody else may read it; SQLite takes an empty file.
    create_new(temporary, PRIVATE_FILE).map_err(|error| Error::file(temporary, &error))?;
    let name = temporary.to_string_lossy();
    link.connection.execute("VACUUM INTO ?1", [name.as_ref()]).map_err(failed)?;
    let copy = open_blank(temporary).map_err(failed)?;
    verified(&copy, temporary, journal, &tables?)?;
    sealed(copy, temporary, journal)
}
