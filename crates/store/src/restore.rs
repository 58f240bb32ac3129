//! Brings a backup back, never over data: what was there is moved aside.

use std::path::{Path, PathBuf};

use crate::clock::wall_millis;
use crate::copy::{Copied, Progress};
use crate::location::{Journal, Location};
use crate::postgres::Swap;
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
            let (copied, aside) =
                sqlite::replace(file, path, *journal, Path::new(&aside), progress)?;
            Ok(Restored { copied, aside: aside.map(|path| path.display().to_string()) })
        }
        Location::Postgres { url, schema } => {
            let swap = Swap::begin(url, schema, options)?;
            let scratch = Scratch::new()?;
            let copy = scratch.0.join("store.db");
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

/// How the names of such directories begin.
const SCRATCH: &str = "mainstay-restore-";

/// A private directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let place = std::env::temp_dir();
        Self::remove_leftovers(&place);
        let path = place.join(format!("{SCRATCH}{}", crate::Id::new()));
        crate::fsatomic::private_directory(&path).map_err(|error| Error::file(&path, &error))?;
        Ok(Self(path))
    }
}

impl Scratch {
    /// Removes what restores that were killed left behind, once they cannot be at work any more.
    fn remove_leftovers(place: &Path) {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(SCRATCH);
            if ours && crate::fsatomic::is_abandoned(&entry.path()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
