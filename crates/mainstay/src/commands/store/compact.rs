//! `mainstay store compact`

use clap::Args;
use mainstay_store::compact;
use serde_json::json;

use crate::context::{Context, options};
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{humans_only, wording};

/// Give back the disk space that the store does not need
///
/// Packs outputs that older versions kept unpacked, and gives back what deleted sessions left. A
/// file is written anew beside the old one and takes its place when it is whole; nobody else may use
/// the store meanwhile. A PostgreSQL server is asked to VACUUM, and others go on.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {}

pub(crate) fn run(_args: &CompactArgs, context: &Context) -> Result<Exit, Error> {
    humans_only::require("mainstay store compact")?;
    let paths = context.paths()?;
    let progress = Progress::begin("compacting", paths.file());
    let compacted = compact(&paths.store, &options(&paths))?;
    drop(progress);
    let given_back = compacted.before.saturating_sub(compacted.after);
    let data = json!({
        "before_bytes": compacted.before,
        "after_bytes": compacted.after,
        "given_back_bytes": given_back,
        "packed": compacted.packed,
    });
    let text = format!(
        "Gave back {}: the store had {} and has {}. Packed {}.\n",
        wording::size(given_back),
        wording::size(compacted.before),
        wording::size(compacted.after),
        wording::count(compacted.packed, "blob"),
    );
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
