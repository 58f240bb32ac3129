//! `mainstay store`

use clap::Subcommand;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod info;

/// Inspect, check, copy and compact the store
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    Info(info::InfoArgs),
    Check(check::CheckArgs),
    Copy(copy::CopyArgs),
    Compact(compact::CompactArgs),
}

pub(crate) fn run(command: &StoreCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        StoreCommand::Info(args) => info::run(args, context),
        StoreCommand::Check(args) => check::run(args, context),
        StoreCommand::Copy(args) => copy::run(args, context),
        StoreCommand::Compact(args) => compact::run(args, context),
    }
}
