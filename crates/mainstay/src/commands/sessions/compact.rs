//! `mainstay sessions compact`

use std::path::Path;

use clap::Args;
use mainstay_agent::{Compacted, Event};
use serde_json::json;

use crate::config::Overrides;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{engine, wording};

/// Replace the old part of a session with a summary, to make room
///
/// Nothing is deleted: `mainstay sessions uncompact` reverts it. The current instruction, recent
/// steps, the to-do list and a ledger of files and commands stay as they are. A session whose
/// window fills up is compacted automatically.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// Session to compact (a prefix of its ID is enough)
    id: String,

    /// What the summary should focus on
    #[arg(long, value_name = "WORDS")]
    focus: Option<String>,

    /// Model that writes the summary, PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) fn run(args: &CompactArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let session = engine::named(&store, &args.id)?;
    let over = Overrides { summaries: args.model.clone(), ..Overrides::default() };
    let workspace = Path::new(&session.workspace);
    let agent = engine::agent(context, store, session.owner, workspace, over)?;
    let focus = args.focus.clone().filter(|focus| !focus.trim().is_empty());
    let mut notices = Vec::new();
    let compacted = engine::block_on(async |cancel| {
        let mut open_session = engine::open(&agent, session.id)?;
        let progress = Progress::alone("writing a summary");
        let mut observer = |event| {
            if let Event::Notice { message, .. } = event {
                notices.push(message);
            }
        };
        let compacted = open_session.compact(focus, &mut observer, &cancel).await;
        drop(progress);
        open_session.leave().await?;
        agent.leave().await;
        Ok::<_, Error>(compacted?)
    })??;
    for notice in notices {
        context.output.note(wording::line(&notice));
    }
    match compacted {
        Compacted::Made { number, before, after } => {
            let id = session.id;
            let data = json!({ "id": id, "number": number, "before": before, "after": after });
            let back = context.paths()?.command(&format!("sessions uncompact {id}"));
            let text = format!(
                "Compacted session {id} from about {before} to {after} tokens.\nRevert it: {back}\n"
            );
            context.output.answer(&data, &text)?;
            Ok(Exit::Done)
        }
        Compacted::Not(why) => {
            let id = session.id;
            Err(Error::failed(format!("could not compact session {id}: {why}"))
                .hint(format!("Nothing has changed. Show what fills it: `mainstay context {id}`.")))
        }
        Compacted::Stopped => {
            context.output.note("stopped; nothing has changed");
            Ok(Exit::Interrupted)
        }
    }
}
