//! `mainstay chat`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::run::directory;
use crate::chat;
use crate::choices::Choices;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::humans_only;

/// Talk to the agent in the terminal (the default command)
///
/// Finished output stays in the terminal's scrollback. Everything is recorded as it happens: after
/// a crash, `--session ID` finishes the interrupted turn and continues. Without a terminal, each
/// line of standard input is a message, and answers go to standard output.
#[derive(Args, Debug, Default)]
pub(crate) struct ChatArgs {
    /// Continue this session (a prefix of its ID is enough) instead of starting a new one
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    #[command(flatten)]
    choices: Choices,

    /// Directory to work in [default: the current one, or the session's]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    workspace: Option<PathBuf>,
}

pub(crate) fn run(args: &ChatArgs, context: &Context) -> Result<Exit, Error> {
    args.choices.check()?;
    let workspace = args.workspace.as_deref().map(directory).transpose()?;
    let place = chat::Place::new(context, &args.choices, args.session.as_deref(), workspace)?;
    if context.json() || !chat::can_be_drawn() {
        return chat::plain(place);
    }
    // Whoever sits here decides what the policy asks.
    humans_only::require("the chat")?;
    chat::run(place)
}
