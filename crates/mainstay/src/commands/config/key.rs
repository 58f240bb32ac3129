//! `mainstay config key`

use std::io::{self, IsTerminal, Read as _};

use clap::{Args, Subcommand};
use mainstay_llm::{Secret, known};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;

use crate::config::edit::{self, HomeLock};
use crate::config::{Config, kept};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::interrupt;
use crate::printing;

/// Store API keys in a file that only you can read
///
/// A key is used for the provider of that name, unless its settings name a variable (api_key_env)
/// or a command (api_key_command). To use the keyring of your system, set a command that asks it:
/// `config set providers.openai.api_key_command "secret-tool lookup service openai"`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    Set(KeySetArgs),
    Remove(KeyRemoveArgs),
    List(KeyListArgs),
}

/// Store a key: typed unseen on a terminal, or read from standard input
#[derive(Args, Debug)]
pub(crate) struct KeySetArgs {
    /// Provider: openai, anthropic, or the name of one of your [providers]
    #[arg(value_name = "PROVIDER")]
    provider: String,
}

/// Remove a stored key
#[derive(Args, Debug)]
pub(crate) struct KeyRemoveArgs {
    /// Provider whose key to remove
    #[arg(value_name = "PROVIDER")]
    provider: String,
}

/// List the providers with a stored key; never the keys
#[derive(Args, Debug)]
pub(crate) struct KeyListArgs {}

/// The longest key.
const LONGEST: u64 = 64 * 1024;

pub(crate) fn run(command: &KeyCommand, context: &Context) -> Result<Exit, Error> {
    match command {
        KeyCommand::Set(args) => set(&args.provider, context),
        KeyCommand::Remove(args) => remove(&args.provider, context),
        KeyCommand::List(_) => list(context),
    }
}

fn set(provider: &str, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let provider = name(provider)?;
    // A file that cannot be used is told before a key is typed.
    kept::read(&paths.home)?;

    let secret = if io::stdin().is_terminal() { typed(provider)? } else { piped()? };
    let lock = HomeLock::take(&paths.home)?;
    kept::keep(&paths.home, provider, &secret)?;
    drop(lock);

    let path = kept::path(&paths.home);
    let data = json!({ "kept": provider, "path": path });
    context.output.answer(&data, &format!("Stored the key of {provider} in {}", path.display()))?;
    let config = Config::load(&paths, None, context.output)?;
    if known(provider).is_none() && config.provider(provider).is_err() {
        let next = paths.command(&format!("config set providers.{provider}.base_url URL"));
        context.output.note(format!("if {provider} serves models, set its address: `{next}`"));
    } else if config.models().is_empty() {
        let next = paths.command("models");
        context.output.note(format!("list its models with `{next}`"));
    }
    Ok(Exit::Done)
}

fn remove(provider: &str, context: &Context) -> Result<Exit, Error> {
    edit::refuse_agents()?;
    let paths = context.paths()?;
    let lock = HomeLock::take(&paths.home)?;
    let was_kept = kept::forget(&paths.home, provider)?;
    drop(lock);
    if !was_kept {
        return Err(Error::usage(format!("no key is stored for {provider}"))
            .hint("List the stored keys: `mainstay config key list`"));
    }
    let data = json!({ "removed": provider });
    context.output.answer(&data, &format!("Removed the key of {provider}"))?;
    Ok(Exit::Done)
}

fn list(context: &Context) -> Result<Exit, Error> {
    let paths = context.paths()?;
    let names: Vec<String> = kept::read(&paths.home)?.into_keys().collect();
    let text = match names.as_slice() {
        [] => "No keys are stored.".to_owned(),
        names => names.join("\n"),
    };
    context.output.answer(&json!({ "providers": names }), &text)?;
    Ok(Exit::Done)
}

fn name(provider: &str) -> Result<&str, Error> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if !provider.is_empty() && provider.len() <= 64 && provider.chars().all(plain) {
        return Ok(provider);
    }
    // It may be the key itself, which is not said again.
    Err(Error::usage("that is not a valid provider name")
        .hint("Pass the name of the provider: `mainstay config key set anthropic`"))
}

fn piped() -> Result<Secret, Error> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Error::usage(format!("could not read the key: {error}"))
            .hint("Check where standard input comes from.")
    })?;
    sound(&text)
}

fn typed(provider: &str) -> Result<Secret, Error> {
    let unseen = HiddenInput::begin()?;
    let before = unseen.before.clone();
    // A terminal that does not show what is typed must not be left behind.
    interrupt::watch(None, move || restore(&before));
    // With standard error gone the answer decides.
    let _ = printing::ask(&format!("Key of {provider} (not shown): "));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    drop(unseen);
    printing::say("");
    read.map_err(|error| {
        Error::usage(format!("could not read the key: {error}"))
            .hint("Pipe it to standard input instead.")
    })?;
    sound(&line)
}

/// A key that can be sent.
fn sound(text: &str) -> Result<Secret, Error> {
    let key = text.trim();
    let wrong = |what: &str| {
        Err(Error::usage(what.to_owned()).hint("Copy the key again, and nothing else."))
    };
    if key.is_empty() {
        return wrong("the key is empty");
    }
    if key.len() as u64 > LONGEST || !key.chars().all(|letter| letter.is_ascii_graphic()) {
        return wrong("that is not a valid key: it has spaces, line ends or unusual letters");
    }
    Ok(Secret::new(key))
}

/// A terminal that does not show what is typed, until this is dropped.
struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    fn begin() -> Result<Self, Error> {
        let wrong = |error| {
            Error::failed(format!("could not hide the key on the terminal: {error}"))
                .hint("Pipe the key to standard input instead.")
        };
        let before = tcgetattr(io::stdin()).map_err(wrong)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).map_err(wrong)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

fn restore(before: &Termios) {
    // If the terminal is gone there is nothing to restore.
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_refused_without_being_said() {
        for text in ["", " \n", "two words", "a\nb", "schlüssel"] {
            let error = sound(text).unwrap_err();
            assert!(text.trim().is_empty() || !error.message.contains(text.trim()), "{error:?}");
        }
        assert_eq!(sound(" sk-1\n").unwrap().expose(), "sk-1");
        assert!(name("sk/with space").is_err());
    }
}
