//! `mainstay sessions export`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_journal::archive;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Export a session to a file, to continue it elsewhere
///
/// The file is JSON Lines with everything that was said and done, including pictures and long
/// outputs. Costs, snapshots of files and running processes are not exported.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Session to export (a prefix of its ID is enough)
    id: String,

    /// File to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: Option<PathBuf>,
}

pub(crate) fn run(args: &ExportArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let session = engine::named(&store, &args.id)?;
    let text = store.read(|tx| archive::export(tx, session.id))?;
    let Some(path) = context.output.document_to(args.to.as_deref(), text.as_bytes())? else {
        return Ok(Exit::Done);
    };
    let size = text.len() as u64;
    let data = json!({ "id": session.id, "to": path, "bytes": size });
    let text =
        format!("Wrote session {} to {} ({}).\n", session.id, path.display(), wording::size(size));
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
