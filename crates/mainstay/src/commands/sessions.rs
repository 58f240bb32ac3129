//! `mainstay sessions`

mod compact;
mod delete;
mod export;
mod fork;
mod import;
mod list;
mod prune;
mod rename;
mod search;
mod show;
mod uncompact;
mod view;

use clap::Subcommand;
use mainstay_store::Store;
pub(crate) use search::misread;

use crate::context::{Context, open_existing};
use crate::error::Error;
use crate::exit::Exit;

/// List and manage sessions
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Search(search::SearchArgs),
    Fork(fork::ForkArgs),
    Compact(compact::CompactArgs),
    Uncompact(uncompact::UncompactArgs),
    Rename(rename::RenameArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Delete(delete::DeleteArgs),
    Prune(prune::PruneArgs),
}

pub(crate) fn run(command: &SessionsCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        SessionsCommand::List(args) => list::run(args, context),
        SessionsCommand::Show(args) => show::run(args, context),
        SessionsCommand::Search(args) => search::run(args, context),
        SessionsCommand::Fork(args) => fork::run(args, context),
        SessionsCommand::Compact(args) => compact::run(args, context),
        SessionsCommand::Uncompact(args) => uncompact::run(args, context),
        SessionsCommand::Rename(args) => rename::run(args, context),
        SessionsCommand::Export(args) => export::run(args, context),
        SessionsCommand::Import(args) => import::run(args, context),
        SessionsCommand::Delete(args) => delete::run(args, context),
        SessionsCommand::Prune(args) => prune::run(args, context),
    }
}

/// A store that must be there.
fn open(context: &Context) -> Result<Store, Error> {
    Ok(open_existing(&context.paths()?)?)
}
