//! `mainstay sessions`

mod list;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Look at the sessions
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
}

pub(crate) fn run(command: &SessionsCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        SessionsCommand::List(args) => list::run(args, context),
        SessionsCommand::Show(args) => show::run(args, context),
    }
}
