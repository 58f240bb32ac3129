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

/// Write a session to a file, to go on with it elsewhere
///
/// The file is JSON Lines with everything that was said and done, pictures and long outputs
/// included. Costs, snapshots of files and running processes stay here.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The session (the start of its id is enough)
    id: String,

    /// Write to this file, which must not exist [default: standard output]
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
