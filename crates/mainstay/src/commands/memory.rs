//! `mainstay memory`

mod providers;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// What is remembered from session to session
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    Providers(providers::ProvidersArgs),
}

pub(crate) fn run(command: &MemoryCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        MemoryCommand::Providers(args) => providers::run(args, context),
    }
}
