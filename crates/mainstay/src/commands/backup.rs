//! `mainstay backup`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::object;
use crate::progress::Progress;
use crate::wording;

/// Back up the store to a new file, even while it is in use
///
/// The backup is one plain file, whatever engine the store is on. It is opened, checked page by
/// page and counted before it gets its name: a FILE that exists is complete. An existing file is
/// never overwritten.
#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    /// File to write; it must not exist
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn run(args: &BackupArgs, context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let progress = Progress::begin("backing up", Some(&args.file));

    let store = open_existing(&paths)?;
    let copied = store.backup_to(&args.file, &mut |at| progress.report(&at))?;
    drop(progress);

    let bytes = std::fs::metadata(&args.file).map_or(0, |found| found.len());
    let data = json!({
        "file": args.file,
        "bytes": bytes,
        "rows": copied.rows(),
        "tables": object(&copied.tables),
        "verified": true,
    });
    let text = format!(
        "Backed up {} ({}) to {}.\nThe backup was opened, checked and counted.\n",
        wording::holdings(&copied),
        wording::size(bytes),
        args.file.display()
    );
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
