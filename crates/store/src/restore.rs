//! Brings a backup back, never over data: what was there is moved aside.

use std::path::Path;

use crate::clock::wall_millis;
use crate::copy::{Copied, Progress};
use crate::location::{Journal, Location};
use crate::postgres::Swap;
use crate::scratch::Scratch;
use crate::sqlite;
use crate::store::Options;
use crate::{Error, Result, Store};

/// What a restore did.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Restored {
    /// What was brought back.
    pub copied: Copied,
    /// Where the data from before is, if there was any.
    pub aside: Option<String>,
}

/// Puts the backup in `file` at `target`. Nobody else may have the store there open.
pub fn restore(
    file: &Path,
    target: &Location,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored> {
    // Says what is wrong with the backup before anything is touched.
    sqlite::refuse_unfit(file, &options.schema)?;
    match target {
        Location::Sqlite { path, journal } => {
            if is_same_file(file, path) {
                return Err(Error::NotEmpty { place: path.display().to_string() });
            }
            let mut aside = path.as_os_str().to_owned();
            aside.push(format!(".before-restore-{}", stamp("%Y%m%dT%H%M%SZ")));
            let records = options.records.as_deref();
            let (copied, aside) =
                sqlite::replace(file, path, *journal, Path::new(&aside), records, progress)?;
            Ok(Restored { copied, aside: aside.map(|path| path.display().to_string()) })
        }
        Location::Postgres { url, schema } => {
            let swap = Swap::begin(url, schema, options)?;
            let scratch = Scratch::new("restore")
                .map_err(|error| Error::file(&std::env::temp_dir(), &error))?;
            let copy = scratch.path().join("store.db");
            sqlite::pour(file, &copy, Journal::Rollback, &mut |_| {})?;
            let source = Store::open(&Location::file(&copy), options.clone())?;
            let copied = source.copy_to(&swap.staging(), progress)?;
            let aside = swap.finish(&stamp("%Y%m%d%H%M%S"))?;
            Ok(Restored { copied, aside })
        }
    }
}

/// The time in a form that sorts and suits file names.
fn stamp(format: &str) -> String {
    let now = jiff::Timestamp::from_millisecond(wall_millis()).unwrap_or_default();
    now.strftime(format).to_string()
}

fn is_same_file(one: &Path, two: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(two)) {
        (Ok(one), Ok(two)) => one == two,
        _ => false,
    }
}
