//! The command line: what may be typed, and which command it runs.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    answer, approvals, approve, audit, backup, budget, chat, completions, config, context, cost,
    demo, deny, doctor, man, memory, models, profiles, restore, resume, run, sessions, skills,
    store, undo,
};
use crate::context::Context;
use crate::env;
use crate::error::{Error, Kind};
use crate::exit::Exit;
use crate::interrupt;
use crate::leftovers;
use crate::outlet;
use crate::output::Output;
use crate::paths::Globals;
use crate::turn_output::TurnOutput;

/// An AI agent that survives crashes: every step is saved before the next one begins
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, propagate_version = false)]
#[command(styles = STYLES, max_term_width = 100, after_long_help = closing())]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Chat(chat::ChatArgs),
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    Approvals(approvals::ApprovalsArgs),
    Approve(approve::ApproveArgs),
    Deny(deny::DenyArgs),
    Answer(answer::AnswerArgs),
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    Undo(undo::UndoArgs),
    Context(context::ContextArgs),
    Audit(audit::AuditArgs),
    Cost(cost::CostArgs),
    Budget(budget::BudgetArgs),
    Models(models::ModelsArgs),
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Profiles(profiles::ProfilesArgs),
    Demo(demo::DemoArgs),
    Doctor(doctor::DoctorArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    #[command(subcommand)]
    Store(store::StoreCommand),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// How long it is waited for the last words to be read after somebody asked for the end.
const PARTING: Duration = Duration::from_secs(1);

impl Command {
    /// Whether it clears up what others left, before all else and when it has ended. What only looks at
    /// the program or its surroundings leaves everything as it is.
    fn is_ordinary(&self) -> bool {
        !matches!(self, Self::Doctor(_) | Self::Completions(_) | Self::Man(_))
    }
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Runs what was typed, and waits until it is read what came of it.
pub(crate) fn run() -> Exit {
    let exit = run_typed();
    if !(outlet::stdout().is_idle() && outlet::stderr().is_idle()) {
        interrupt::end_at_signal();
        outlet::drain((exit == Exit::Interrupted).then_some(PARTING));
    }
    let Some(error) = outlet::stdout().failure() else { return exit };
    let error = Error::failed(format!("could not write to {}: {error}", outlet::stdout().name()))
        .hint("Check where it goes. What was done is recorded; see `mainstay sessions list`.");
    Output::new(false).error(&error);
    if exit == Exit::Done { error.kind.exit() } else { exit }
}

fn run_typed() -> Exit {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&typed) {
        Ok(cli) => cli,
        Err(refusal) => return refused(&refusal, &typed),
    };
    let Some(command) = cli.command.or_else(unnamed) else { return help() };
    let context = Context::new(cli.globals);
    if command.is_ordinary() {
        leftovers::clear_up(&context);
    }
    let ended = match &command {
        Command::Chat(args) => chat::run(args, &context),
        Command::Run(args) => run::run(args, &context),
        Command::Resume(args) => resume::run(args, &context),
        Command::Sessions(command) => sessions::run(command, &context),
        Command::Approvals(args) => approvals::run(args, &context),
        Command::Approve(args) => approve::run(args, &context),
        Command::Deny(args) => deny::run(args, &context),
        Command::Answer(args) => answer::run(args, &context),
        Command::Skills(command) => skills::run(command, &context),
        Command::Undo(args) => undo::run(args, &context),
        Command::Context(args) => context::run(args, &context),
        Command::Audit(args) => audit::run(args, &context),
        Command::Cost(args) => cost::run(args, &context),
        Command::Budget(args) => budget::run(args, &context),
        Command::Models(args) => models::run(args, &context),
        Command::Memory(command) => memory::run(command, &context),
        Command::Config(command) => config::run(command, &context),
        Command::Profiles(args) => profiles::run(args, &context),
        Command::Demo(args) => demo::run(args, &context),
        Command::Doctor(args) => doctor::run(args, &context),
        Command::Backup(args) => backup::run(args, &context),
        Command::Restore(args) => restore::run(args, &context),
        Command::Store(command) => store::run(command, &context),
        Command::Completions(args) => completions::run(args, &context),
        Command::Man(args) => man::run(args, &context),
    };
    if command.is_ordinary() {
        // What it took up is needed no longer.
        leftovers::clear_up(&context);
    }
    ended.unwrap_or_else(|error| {
        let error = context.completed(error);
        context.output.error(&error);
        error.kind.exit()
    })
}

/// What is done where no command is named: talk, if there is somebody to talk to.
fn unnamed() -> Option<Command> {
    let somebody = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    somebody.then(|| Command::Chat(chat::ChatArgs::default()))
}

/// Says what may be typed.
fn help() -> Exit {
    // With standard error gone the exit code still tells.
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        command().render_help().to_string().as_bytes(),
    );
    Exit::Usage
}

/// The whole command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Whether a word is the name of a command.
pub(crate) fn is_subcommand(word: &str) -> bool {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    });
    NAMES.iter().any(|name| name == word)
}

/// Prints help and versions, which clap hands over as errors too, and refusals in clap's words.
fn refused(refusal: &clap::Error, typed: &[OsString]) -> Exit {
    if !refusal.use_stderr() {
        // A reader that has seen enough (`--help | head`) is no error.
        let _ = refusal.print();
        return Exit::Done;
    }
    if let Some(error) = sessions::misread(refusal, typed) {
        Output::new(typed.iter().any(|word| word == "--json")).error(&error);
        return Exit::Usage;
    }
    let only_help = refusal.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let _ = refusal.print();
    if !only_help && typed.iter().any(|word| word == "--json") {
        let text = refusal.to_string();
        // The sentence goes on in the indented lines below it, such as the missing arguments.
        let sentence = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
        let whole = sentence.collect::<Vec<_>>().join(" ");
        let message = whole.strip_prefix("error: ").unwrap_or(&whole).to_owned();
        let hints = vec!["See `mainstay --help`.".to_owned()];
        as_data(&Error { kind: Kind::Usage, message, hints }, typed);
    }
    Exit::Usage
}

/// Tells an error to whoever reads JSON.
fn as_data(error: &Error, typed: &[OsString]) {
    if typed.iter().any(|word| word == "run" || word == "resume") {
        // Whoever reads events waits for the last one.
        TurnOutput::new(true).error_as_event(error);
    } else {
        Output::new(true).error_as_data(error);
    }
}

/// Tells why the program ends before its time.
pub(crate) fn stopped(error: &Error) {
    let typed: Vec<OsString> = std::env::args_os().collect();
    Output::new(false).error(error);
    if typed.iter().any(|word| word == "--json") {
        as_data(error, &typed);
    }
}

/// The end of the help text, from the registries.
fn closing() -> String {
    let mut text = String::new();
    let all = || env::ALL.iter().chain(&env::GIVEN);
    let width = all().map(|variable| variable.name.len()).max().unwrap_or(0);
    let parts =
        [("Environment", &env::ALL[..]), ("\nSet for the commands of an agent", &env::GIVEN[..])];
    for (title, variables) in parts {
        text.push_str(&format!("{title}:\n"));
        for variable in variables {
            text.push_str(&format!("  {:<width$}  {}\n", variable.name, variable.doc));
        }
    }
    text.push_str("\nExit codes:\n");
    for exit in Exit::ALL {
        text.push_str(&format!("  {:<5}{}\n", exit.code(), exit.meaning()));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        super::command().debug_assert();
    }
}
