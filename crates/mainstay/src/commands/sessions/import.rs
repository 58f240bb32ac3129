//! `mainstay sessions import`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_agent::session::manage;
use mainstay_journal::archive::Archive;
use serde_json::json;

use crate::commands::run::current_directory;
use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Import a session from a file that `sessions export` wrote
///
/// The file is checked first; one that was cut or changed is refused. It brings what was said and done:
/// the session works in this directory, with the system prompt that a new one would get here. Because
/// anybody may have written the file, the session counts as one with text from outside.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// File to import
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Directory to work in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
}

pub(crate) fn run(args: &ImportArgs, context: &Context) -> Result<Exit, Error> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|error| {
        Error::usage(format!("could not read {name}: {error}"))
            .hint("Pass a file that `mainstay sessions export` wrote.")
    })?;
    let archive = Archive::read(&text).map_err(|wrong| {
        Error::failed(format!("could not import {name}: {wrong}"))
            .hint("Export it again: `mainstay sessions export ID --to FILE`")
    })?;
    let workspace = match &args.workspace {
        Some(directory) => directory.canonicalize().map_err(|error| {
            Error::usage(format!("could not use {}: {error}", directory.display()))
                .hint("Pass a directory with --workspace DIR.")
        })?,
        None => current_directory()?,
    };
    let (store, owner) = engine::open_store(&context.paths()?)?;
    let id = manage::import(&store, owner, &archive, &workspace)?;
    let place = workspace.display().to_string();
    let turns = archive.turns() as u64;
    let data = json!({ "id": id, "turns": turns, "workspace": place });
    let mut text =
        format!("Imported session {id} with {} in {place}.\n", wording::count(turns, "turn"));
    if archive.workspace() != place {
        text.push_str(&format!("It was in {} before.\n", wording::line(archive.workspace())));
    }
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
