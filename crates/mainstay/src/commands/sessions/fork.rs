//! `mainstay sessions fork`

use clap::Args;
use mainstay_agent::session::manage;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;

/// Begin a new session as another one is, or was after some turn
///
/// The new session has the same workspace and goes its own way. What the other one did to files can
/// be undone only there.
#[derive(Args, Debug)]
pub(crate) struct ForkArgs {
    /// The session (the start of its id is enough)
    id: String,

    /// As it was after this turn [default: the last one]
    #[arg(long, value_name = "TURN")]
    at: Option<i64>,
}

pub(crate) fn run(args: &ForkArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let parent = engine::named(&store, &args.id)?;
    if let Some(turn) = args.at
        && !(1..=parent.turns).contains(&turn)
    {
        return Err(Error::usage(format!("session {} has no turn {turn}", parent.id))
            .hint(format!("It has {}: `mainstay sessions show {}`", parent.turns, parent.id)));
    }
    let id = manage::fork(&store, parent.id, args.at)?;
    let turns = args.at.unwrap_or(parent.turns);
    let data = json!({ "id": id, "parent": parent.id, "turns": turns });
    let next = context.paths()?.command(&format!("run --session {id} …"));
    let text =
        format!("Session {id} begins as {} was after turn {turns}.\nGo on: {next}\n", parent.id);
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
