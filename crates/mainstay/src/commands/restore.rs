//! `mainstay restore`

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_store::{Location, fsatomic};
use serde_json::json;

use crate::context::{Context, options};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::object;
use crate::paths::{Paths, server_address};
use crate::progress::Progress;
use crate::wording;

/// Restore a backup; the current store is moved aside, never overwritten
///
/// The backup is checked before anything is touched, and FILE itself stays as it is. No other
/// process may have the store open. If the restore is interrupted, run it again.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// Backup to restore, as `mainstay backup` wrote it
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn run(args: &RestoreArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    refuse_absent(&args.file)?;
    if paths.store_is_default {
        make_home(&paths.home)?;
    }
    let progress = Progress::begin("restoring", paths.file());

    let restored = mainstay_store::restore(&args.file, &paths.store, &options(&paths), &mut |at| {
        progress.report(&at);
    })
    .map_err(|error| explained(error, args, &paths))?;
    drop(progress);

    let way_back = restored.aside.as_deref().map(|aside| way_back(aside, &paths));
    let data = json!({
        "place": paths.store.to_string(),
        "rows": restored.copied.rows(),
        "tables": object(&restored.copied.tables),
        "aside": restored.aside,
        "way_back": way_back,
    });
    let mut text =
        format!("Restored {} to {}.\n", wording::holdings(&restored.copied), paths.store);
    if let (Some(aside), Some(way_back)) = (&restored.aside, &way_back) {
        text.push_str(&format!(
            "The previous data is kept in {aside}.\nTo go back to it: {way_back}\n"
        ));
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

/// The store's own words for an absent file are about stores, not about backups.
fn refuse_absent(file: &Path) -> Result<(), Error> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::failed(format!("no backup at {}", file.display()))
                .hint("Pass a file that `mainstay backup FILE` wrote."))
        }
        _ => Ok(()),
    }
}

fn make_home(home: &Path) -> Result<(), Error> {
    fsatomic::private_directory(home).map_err(|error| {
        Error::failed(format!("could not create the home {}: {error}", home.display()))
            .hint("Pass a writable directory with --home DIR.")
    })
}

/// Hints that fit an error about the backup, where the store's are about the store.
fn explained(error: mainstay_store::Error, args: &RestoreArgs, paths: &Paths) -> Error {
    use mainstay_store::Error as StoreError;
    let about_backup = match &error {
        StoreError::Empty { path } | StoreError::NotAStore { path, .. } => *path == args.file,
        StoreError::Damaged { place, .. } => *place == args.file.display().to_string(),
        StoreError::NotEmpty { .. } => {
            return Error::failed(format!("{} is the store itself", args.file.display()))
                .hint("Pass a backup to restore; `mainstay backup FILE` writes one.");
        }
        _ => false,
    };
    let error = Error::from(error);
    if about_backup {
        error.only_hint(format!("Try an older backup. The store {} was not touched.", paths.store))
    } else {
        error
    }
}

/// The command that leads back to the data from before.
fn way_back(aside: &str, paths: &Paths) -> String {
    match &paths.store {
        Location::Sqlite { .. } => paths.command(&format!("restore {}", wording::word(aside))),
        Location::Postgres { .. } => {
            let schema = aside.strip_prefix("schema ").unwrap_or(aside);
            let address = server_address(&paths.store).unwrap_or_default();
            let joint = if address.contains('?') { '&' } else { '?' };
            let store = wording::word(&format!("{address}{joint}schema={schema}"));
            format!("mainstay --store {store} backup FILE")
        }
    }
}
