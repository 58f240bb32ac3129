//! The binary: one file a command, and how its answers look.
//!
//! This crate owns the command line, the environment and everything that is printed. It must not
//! know SQL, nor open a database itself.

mod cli;
mod commands;
mod config;
mod context;
mod engine;
mod env;
mod error;
mod exit;
mod interrupt;
mod output;
mod person;
mod progress;
mod redaction;
mod settings;
mod telling;
mod wording;

fn main() -> std::process::ExitCode {
    // The keeper is this program too; it needs nothing of the command line.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == engine::KEEPER) {
        return mainstay_tools::keeper::serve(words);
    }
    cli::run().into()
}
