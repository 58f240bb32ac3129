//! The binary: one file a command, and how its answers look.
//!
//! This crate owns the command line, the environment and everything that is printed. It must not
//! know SQL, nor open a database itself.

mod chat;
mod choices;
mod cli;
mod commands;
mod config;
mod confinement;
mod context;
mod engine;
mod env;
mod error;
mod exit;
mod first_run;
mod humans_only;
mod interrupt;
mod last_words;
mod leftovers;
mod outlet;
mod output;
mod paths;
mod plain_text;
mod printing;
mod progress;
mod proof;
mod providers;
mod redaction;
mod turn_output;
mod wording;

fn main() -> std::process::ExitCode {
    last_words::install();
    // The keeper and the reader are this program too; they need nothing of the command line.
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == engine::KEEPER => mainstay_tools::keeper::serve(words),
        Some(word) if word == engine::READER => mainstay_tools::reader::serve(words),
        _ => last_words::guarded(cli::run, cli::stopped).into(),
    }
}
