//! `mainstay sessions rename`

use clap::Args;
use mainstay_journal::session;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::redaction;

/// Rename a session
#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    /// Session to rename (a prefix of its ID is enough)
    id: String,

    /// New title
    name: String,
}

/// The longest title.
const LONGEST: usize = 200;

pub(crate) fn run(args: &RenameArgs, context: &Context) -> Result<Exit, Error> {
    let title = args.name.trim();
    if title.is_empty() || title.chars().count() > LONGEST || title.contains(char::is_control) {
        return Err(Error::usage("the title must be one line of 1 to 200 letters")
            .hint("Pass a few words on what the session is about."));
    }
    let title = redaction::typed(title, context)?;
    let title = title.as_str();
    let store = super::open(context)?;
    let found = engine::named(&store, &args.id)?;
    store.write(|tx| session::rename(tx, found.id, title))?;
    let data = json!({ "id": found.id, "title": title });
    context.output.answer(&data, &format!("Renamed session {} to \"{title}\".\n", found.id))?;
    Ok(Exit::Done)
}
