//! `mainstay sessions rename`

use clap::Args;
use mainstay_journal::session;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;
use crate::redaction;

/// Give a session another title
#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    /// The session (the start of its id is enough)
    id: String,

    /// The new title
    name: String,
}

/// The longest title.
const LONGEST: usize = 200;

pub(crate) fn run(args: &RenameArgs, context: &Context) -> Result<Exit, Error> {
    let title = args.name.trim();
    if title.is_empty() || title.chars().count() > LONGEST || title.contains(char::is_control) {
        return Err(Error::usage("a title is one line of 1 to 200 letters")
            .hint("Write a few words on what the session is about."));
    }
    let title = redaction::typed(title, context)?;
    let title = title.as_str();
    let store = super::open(context)?;
    let found = engine::named(&store, &args.id)?;
    store.write(|tx| session::rename(tx, found.id, title))?;
    let data = json!({ "id": found.id, "title": title });
    context.output.answer(&data, &format!("Session {} is called \"{title}\" now.\n", found.id))?;
    Ok(Exit::Done)
}
