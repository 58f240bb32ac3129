//! `mainstay budget`

mod clear;
mod show;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Show what is reserved for model calls, and clear what was never billed
///
/// A call is reserved before it is sent, at the most it can cost, and settled when it is answered.
/// If its process is killed in between, nobody learns what it cost: what was reserved stays in the
/// budgets until you clear it.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    command: Option<BudgetCommand>,
}

#[derive(Debug, Subcommand)]
enum BudgetCommand {
    Clear(clear::ClearArgs),
}

pub(crate) fn run(args: &BudgetArgs, context: &Context) -> Result<Exit, Error> {
    match &args.command {
        None => show::run(context),
        Some(BudgetCommand::Clear(args)) => clear::run(args, context),
    }
}
