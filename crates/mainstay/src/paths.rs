//! What was typed, turned into what it means: the home and the store.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainstay_store::Location;

use crate::cli;
use crate::env;
use crate::error::Error;
use crate::wording;

/// Options that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Directory for settings and data [env: MAINSTAY_HOME] [default: ~/.mainstay]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) home: Option<PathBuf>,

    /// Store to use: a path, or postgres://USER:PASSWORD@HOST/DATABASE [env: MAINSTAY_STORE]
    /// [default: store.db in the home]
    #[arg(long, global = true, value_name = "PATH|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<OsString>,

    /// Use the settings of [profiles.NAME] in config.toml [env: MAINSTAY_PROFILE]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print JSON
    ///
    /// The answer goes to standard output. So does an error, as {"error": {"kind", "message",
    /// "hints"}}; its text is still written to standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Where things are.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The home directory; it may not exist yet.
    pub(crate) home: PathBuf,
    /// The store; it may not exist yet.
    pub(crate) store: Location,
    /// Whether the store lies in the home because nobody named another place.
    pub(crate) store_is_default: bool,
    /// The profile that was asked for here and now, and by what.
    pub(crate) profile: Option<(String, &'static str)>,
    /// The options that were typed, for the commands that messages name.
    typed: String,
}

impl Paths {
    /// Resolves options, then variables, then defaults.
    pub(crate) fn resolve(globals: &Globals) -> Result<Self, Error> {
        let home = match (&globals.home, env::MAINSTAY_HOME.get(), env::HOME.get()) {
            (Some(home), _, _) if home.as_os_str().is_empty() => {
                return Err(Error::configuration("--home is empty")
                    .hint("Pass a directory, or leave --home out."));
            }
            (Some(home), _, _) => home.clone(),
            (None, Some(home), _) => home.into(),
            (None, None, Some(user)) => PathBuf::from(user).join(".mainstay"),
            (None, None, None) => {
                return Err(Error::configuration(format!(
                    "no home directory: neither {} nor {} is set",
                    env::MAINSTAY_HOME.name,
                    env::HOME.name
                ))
                .hint("Pass a directory with --home DIR."));
            }
        };
        let named = globals.store.clone().or_else(|| env::MAINSTAY_STORE.get());
        let (store, store_is_default) = match named {
            Some(named) => (location(&named)?, false),
            None => (Location::file(home.join("store.db")), true),
        };
        let by_option = globals.profile.clone().map(|name| (name, "--profile"));
        let by_variable = || Some((env::MAINSTAY_PROFILE.text()?, env::MAINSTAY_PROFILE.name));
        let profile = by_option.or_else(by_variable);
        Ok(Self { home, store, store_is_default, profile, typed: typed(globals) })
    }

    /// A command of this program on the same home and store.
    pub(crate) fn command(&self, rest: &str) -> String {
        format!("mainstay{} {rest}", self.typed)
    }

    /// A text whose commands name the same home, store and profile: pasted as it is, a command must
    /// not act on another one. A command is whatever clap knows, after `` `mainstay ``.
    pub(crate) fn completed(&self, text: &str) -> String {
        const PROGRAM: &str = "`mainstay ";
        let mut completed = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(PROGRAM) {
            let (before, after) = rest.split_at(at + PROGRAM.len());
            completed.push_str(before);
            let is_end = |letter: char| !(letter.is_ascii_lowercase() || letter == '-');
            let word = &after[..after.find(is_end).unwrap_or(after.len())];
            if !self.typed.is_empty() && cli::is_subcommand(word) {
                completed.push_str(self.typed.trim_start());
                completed.push(' ');
            }
            rest = after;
        }
        completed + rest
    }

    /// The store's file, where it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.store {
            Location::Sqlite { path, .. } => Some(path),
            Location::Postgres { .. } => None,
        }
    }
}

/// Reads the place of a store as it was typed.
pub(crate) fn location(typed: &OsStr) -> Result<Location, Error> {
    match typed.to_str() {
        Some(text) => Ok(text.parse()?),
        // No address has such bytes, a path may.
        None => Ok(Location::file(typed)),
    }
}

/// The address of a server without its password, for programs such as `psql`.
pub(crate) fn server_address(location: &Location) -> Option<String> {
    let Location::Postgres { url, .. } = location else { return None };
    let mut url = url.clone();
    // It fails only for addresses that cannot carry one.
    let _ = url.set_password(None);
    let (keys, values): (Vec<_>, Vec<_>) = url
        .query_pairs()
        .filter(|(key, _)| key != "password")
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .unzip();
    url.set_query(None);
    if !keys.is_empty() {
        url.query_pairs_mut().extend_pairs(keys.iter().zip(&values));
    }
    Some(url.into())
}

fn typed(globals: &Globals) -> String {
    let mut words = String::new();
    if let Some(home) = &globals.home {
        words.push_str(&format!(" --home {}", wording::path(home)));
    }
    if let Some(store) = &globals.store {
        let place = location(store).ok();
        let shown = place
            .as_ref()
            .and_then(full_address)
            .unwrap_or_else(|| store.to_string_lossy().into_owned());
        words.push_str(&format!(" --store {}", wording::word(&shown)));
    }
    if let Some(profile) = &globals.profile {
        words.push_str(&format!(" --profile {}", wording::word(profile)));
    }
    words
}

/// The address as `--store` takes it, without its password.
fn full_address(location: &Location) -> Option<String> {
    let Location::Postgres { schema, .. } = location else { return None };
    let address = server_address(location)?;
    let joint = if address.contains('?') { '&' } else { '?' };
    Some(format!("{address}{joint}schema={schema}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(home: &str, store: Option<&str>) -> Paths {
        let store = store.map(Into::into);
        let globals = Globals { home: Some(home.into()), store, ..Globals::default() };
        Paths::resolve(&globals).unwrap()
    }

    #[test]
    fn the_store_is_in_the_home_unless_another_is_named() {
        let paths = resolved("/h", Some("/elsewhere/x.db"));
        assert_eq!(paths.file(), Some(Path::new("/elsewhere/x.db")));
        assert!(!paths.store_is_default);
    }

    #[test]
    fn named_commands_keep_the_options_but_no_password() {
        let paths = resolved("/my home", Some("postgres://me:secret@host/db?password=too"));
        assert_eq!(
            paths.command("doctor"),
            "mainstay --home '/my home' --store 'postgres://me@host/db?schema=mainstay' doctor"
        );
    }

    #[test]
    fn a_hint_that_names_any_command_gets_the_options_that_were_typed() {
        fn below(command: &clap::Command, name: &str, hints: &mut Vec<String>) {
            for command in command.get_subcommands() {
                let name = format!("{name} {}", command.get_name());
                below(command, &name, hints);
                hints.push(name);
            }
        }
        let mut names = Vec::new();
        below(&cli::command(), "", &mut names);
        assert!(names.contains(&" memory edit".to_owned()), "{names:?}");
        let paths = resolved("/h", None);
        for name in names {
            let hint = format!("Try `mainstay{name} X`, or `mainstay{name}`.");
            let whole = format!("Try `mainstay --home /h{name} X`, or `mainstay --home /h{name}`.");
            assert_eq!(paths.completed(&hint), whole);
            assert_eq!(paths.completed(&whole), whole, "nothing is added twice");
        }
    }

    #[test]
    fn what_is_no_command_stays_as_it_is() {
        let paths = resolved("/h", None);
        for hint in [
            "Type `mainstay`.",
            "See `mainstay --help`.",
            "mainstay run",
            "`mainstay doctors`",
            "`mainstay ",
            "",
        ] {
            assert_eq!(paths.completed(hint), hint);
        }
        let plain = Paths { typed: String::new(), ..resolved("/h", None) };
        assert_eq!(plain.completed("See `mainstay doctor`."), "See `mainstay doctor`.");
    }

    #[test]
    fn an_empty_home_is_refused() {
        let globals = Globals { home: Some("".into()), ..Globals::default() };
        assert!(Paths::resolve(&globals).is_err());
    }
}
