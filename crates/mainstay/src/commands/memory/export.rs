//! `mainstay memory export`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainstay_memory::facts;
use mainstay_memory::notes::{self, Scope};
use mainstay_store::{OwnerId, Store};
use serde_json::json;

use super::lines::NoteLine;
use crate::context::{Context, open_existing};
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::wording;

/// Export all notes and facts as JSON Lines
///
/// `mainstay memory import FILE` reads them, here or elsewhere.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// File to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: Option<PathBuf>,
}

/// How many facts are read at once.
const PAGE: usize = 1_000;

pub(crate) fn run(args: &ExportArgs, context: &Context) -> Result<Exit, Error> {
    let store = open_existing(&context.paths()?)?;
    let lines = match engine::find_owner(&store)? {
        Some(owner) => lines(&store, owner)?,
        None => Vec::new(),
    };
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let Some(path) = context.output.document_to(args.to.as_deref(), text.as_bytes())? else {
        return Ok(Exit::Done);
    };
    let (count, size) = (lines.len() as u64, text.len() as u64);
    let data = json!({ "to": path, "lines": count, "bytes": size });
    let words = match count {
        1 => "1 memory".to_owned(),
        count => format!("{count} memories"),
    };
    let text = format!("Wrote {words} to {} ({}).\n", path.display(), wording::size(size));
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}

/// All that is remembered, the notes first. Facts are read in pages: what is added meanwhile comes
/// last, or with the next export.
fn lines(store: &Store, owner: OwnerId) -> Result<Vec<String>, Error> {
    let mut lines = store.read(|tx| -> mainstay_memory::Result<Vec<String>> {
        let mut lines = Vec::new();
        let user = notes::read(tx, owner, Scope::User)?;
        lines.extend(user.into_iter().map(|note| NoteLine::of(note, None).text()));
        for place in notes::workspaces(tx, owner)? {
            let notes = notes::read(tx, owner, Scope::Workspace(&place))?;
            let notes = notes.into_iter().map(|note| NoteLine::of(note, Some(place.clone())));
            lines.extend(notes.map(|line| line.text()));
        }
        Ok(lines)
    })?;
    let mut last = None;
    loop {
        let page = store.read(|tx| facts::export(tx, owner, last, PAGE))?;
        let Some((id, _)) = page.last() else { return Ok(lines) };
        last = Some(*id);
        lines.extend(page.into_iter().map(|(_, line)| line));
    }
}
