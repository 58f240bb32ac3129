//! `mainstay sessions uncompact`

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::config::Overrides;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::{engine, wording};

/// Revert the last compaction of a session
///
/// The model sees again what was there before, and what came since.
#[derive(Args, Debug)]
pub(crate) struct UncompactArgs {
    /// Session to change (a prefix of its ID is enough)
    id: String,
}

pub(crate) fn run(args: &UncompactArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let session = engine::named(&store, &args.id)?;
    let workspace = Path::new(&session.workspace);
    let agent = engine::agent(context, store, session.owner, workspace, Overrides::default())?;
    let restored = engine::open(&agent, session.id)?.uncompact()?;
    let (data, text) = match restored {
        Some(restored) => {
            let data = json!({
                "id": session.id,
                "number": restored.number,
                "tokens": restored.tokens,
            });
            (data, format!("Session {}: {}.\n", session.id, wording::restored(&restored)))
        }
        None => {
            let data = json!({ "id": session.id, "number": null });
            (data, format!("Session {} has no compaction to revert.\n", session.id))
        }
    };
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
