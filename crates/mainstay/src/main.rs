//! The binary: one file a command, and how its answers look.
//!
//! This crate owns the command line, the environment and everything that is printed. It must not
//! know SQL, nor open a database itself.

mod cli;
mod commands;
mod context;
mod env;
mod error;
mod exit;
mod interrupt;
mod output;
mod progress;
mod settings;
mod wording;

fn main() -> std::process::ExitCode {
    cli::run().into()
}
