//! `mainstay sessions import`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_journal::SessionId;
use mainstay_journal::archive::Archive;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Make a new session of a file that `sessions export` wrote
///
/// The file is checked first: one that was cut or changed is refused.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Work in this directory [default: the one that the file names]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
}

pub(crate) fn run(args: &ImportArgs, context: &Context) -> Result<Exit, Error> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| {
        Error::usage(format!("{name} cannot be read: {error}"))
            .hint("Name a file that `mainstay sessions export` wrote.")
    })?;
    let archive = Archive::read(&text).map_err(|wrong| {
        Error::failed(format!("{name} cannot be imported: {wrong}"))
            .hint("Write it anew: `mainstay sessions export ID --to FILE`")
    })?;
    let workspace = match &args.workspace {
        Some(directory) => directory.canonicalize().map_err(|error| {
            Error::usage(format!("{} cannot be used: {error}", directory.display()))
                .hint("Name a directory with --workspace DIR.")
        })?,
        None => PathBuf::from(archive.workspace()),
    };
    let (store, owner) = engine::open_store(&context.paths()?)?;
    let id = SessionId::new();
    let place = workspace.display().to_string();
    store.write(|tx| archive.import(tx, id, owner, &place))?;
    let turns = archive.turns() as u64;
    let data = json!({ "id": id, "turns": turns, "workspace": place });
    let mut text =
        format!("Session {id} has {} and works in {place}.\n", wording::count(turns, "turn"));
    if !workspace.is_dir() {
        text.push_str("That directory is not there; import it with --workspace DIR to go on.\n");
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
