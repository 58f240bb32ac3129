//! `mainstay completions`

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Print shell completions
///
/// For bash: mainstay completions bash > ~/.local/share/bash-completion/completions/mainstay
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to print them for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, context: &Context) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "mainstay", &mut script);
    context.output.document(&script)?;
    Ok(Exit::Done)
}
