//! `mainstay restore`

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_store::{Location, fsatomic};
use serde_json::json;

use crate::context::{Context, options};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::object;
use crate::progress::Progress;
use crate::settings::{Settings, server_address};
use crate::wording;

/// Bring a backup back; what is there is moved aside, never overwritten
///
/// The backup is checked before anything is touched, and FILE itself stays as it is. Nobody else
/// may have the store open. If the restore is interrupted, run it again.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The backup to bring back, as `mainstay backup` wrote it
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn run(args: &RestoreArgs, context: &Context) -> Result<Exit, Error> {
    let settings = context.settings()?;
    refuse_absent(&args.file)?;
    if settings.store_is_default {
        make_home(&settings.home)?;
    }
    let progress = Progress::begin("restoring", settings.file());

    let restored = mainstay_store::restore(&args.file, &settings.store, &options(), &mut |at| {
        progress.report(&at);
    })
    .map_err(|error| explained(error, args, &settings))?;
    drop(progress);

    let way_back = restored.aside.as_deref().map(|aside| way_back(aside, &settings));
    let data = json!({
        "place": settings.store.to_string(),
        "rows": restored.copied.rows(),
        "tables": object(&restored.copied.tables),
        "aside": restored.aside,
        "way_back": way_back,
    });
    let mut text =
        format!("Restored {} to {}.\n", wording::holdings(&restored.copied), settings.store);
    if let (Some(aside), Some(way_back)) = (&restored.aside, &way_back) {
        text.push_str(&format!(
            "The data from before is kept in {aside}.\nTo go back to it: {way_back}\n"
        ));
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

/// The store's own words for an absent file are about stores, not about backups.
fn refuse_absent(file: &Path) -> Result<(), Error> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::failed(format!("there is no backup at {}", file.display()))
                .hint("Name a file that `mainstay backup FILE` wrote."))
        }
        _ => Ok(()),
    }
}

fn make_home(home: &Path) -> Result<(), Error> {
    fsatomic::private_directory(home).map_err(|error| {
        Error::failed(format!("the home {} cannot be made: {error}", home.display()))
            .hint("Name a directory that can be written with --home DIR.")
    })
}

/// Hints that fit an error about the backup, where the store's are about the store.
fn explained(error: mainstay_store::Error, args: &RestoreArgs, settings: &Settings) -> Error {
    use mainstay_store::Error as Store;
    let about_backup = match &error {
        Store::Empty { path } | Store::NotAStore { path, .. } => *path == args.file,
        Store::Damaged { place, .. } => *place == args.file.display().to_string(),
        Store::NotEmpty { .. } => {
            return Error::failed(format!("{} is the store itself", args.file.display()))
                .hint("Name a backup to bring back; `mainstay backup FILE` writes one.");
        }
        _ => false,
    };
    let error = Error::from(error);
    if about_backup {
        error.only_hint(format!(
            "It cannot be restored; try an older backup. The store {} was not touched.",
            settings.store
        ))
    } else {
        error
    }
}

/// The command that leads back to the data from before.
fn way_back(aside: &str, settings: &Settings) -> String {
    match &settings.store {
        Location::Sqlite { .. } => settings.command(&format!("restore {}", wording::word(aside))),
        Location::Postgres { .. } => {
            let schema = aside.strip_prefix("schema ").unwrap_or(aside);
            let address = server_address(&settings.store).unwrap_or_default();
            let joint = if address.contains('?') { '&' } else { '?' };
            let store = wording::word(&format!("{address}{joint}schema={schema}"));
            format!("mainstay --store {store} backup FILE")
        }
    }
}
