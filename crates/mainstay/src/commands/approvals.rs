//! `mainstay approvals`

mod forget;
mod list;
mod rules;

use clap::{Args, Subcommand};
pub(super) use list::data;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// List what is waiting for your decision or answer
///
/// A turn that has to ask is parked. Decide with `mainstay approve` or `mainstay deny`, answer
/// questions with `mainstay answer`, then continue with `mainstay resume`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalsArgs {
    /// Also show what was decided, was answered or is over
    #[arg(long)]
    all: bool,

    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    Rules(rules::RulesArgs),
    Forget(forget::ForgetArgs),
}

pub(crate) fn run(args: &ApprovalsArgs, context: &Context) -> Result<Exit, Error> {
    match &args.command {
        None => list::run(args.all, context),
        Some(ApprovalsCommand::Rules(args)) => rules::run(args, context),
        Some(ApprovalsCommand::Forget(args)) => forget::run(args, context),
    }
}
