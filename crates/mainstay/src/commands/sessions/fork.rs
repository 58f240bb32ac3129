//! `mainstay sessions fork`

use clap::Args;
use mainstay_agent::session::manage;
use serde_json::json;

use crate::context::Context;
use crate::engine;
use crate::error::Error;
use crate::exit::Exit;

/// Start a new session as a copy of another one, as it is or as it was after a turn
///
/// The new session has the same workspace. File changes of the original can be undone only there.
#[derive(Args, Debug)]
pub(crate) struct ForkArgs {
    /// Session to copy (a prefix of its ID is enough)
    id: String,

    /// Copy it as it was after this turn [default: the last one]
    #[arg(long, value_name = "TURN")]
    at: Option<i64>,
}

pub(crate) fn run(args: &ForkArgs, context: &Context) -> Result<Exit, Error> {
    let store = super::open(context)?;
    let parent = engine::named(&store, &args.id)?;
    if let Some(turn) = args.at
        && !(1..=parent.turns).contains(&turn)
    {
        return Err(Error::usage(format!("session {} has no turn {turn}", parent.id)).hint(
            format!("It has {} turns: `mainstay sessions show {}`", parent.turns, parent.id),
        ));
    }
    let id = manage::fork(&store, parent.id, args.at)?;
    let turns = args.at.unwrap_or(parent.turns);
    let data = json!({ "id": id, "parent": parent.id, "turns": turns });
    let next = context.paths()?.command(&format!("run --session {id} …"));
    let text = format!(
        "Started session {id} as {} was after turn {turns}.\nContinue with: {next}\n",
        parent.id
    );
    context.output.answer(&data, &text)?;
    Ok(Exit::Done)
}
