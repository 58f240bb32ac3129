//! The configuration: `config.toml` in the home, `.mainstay.toml` in the workspace, variables, flags.
//!
//! What a workspace brings may not say where keys come from, where requests go, or what may be done
//! without asking: it is written by whoever wrote the project.

mod build;
mod hooks;
mod keys;
mod shape;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use build::{Overrides, agent_settings};
use mainstay_agent::Hooks;
use shape::{File, WorkspaceFile};

use crate::env;
use crate::error::Error;
use crate::output::Output;

/// What the files say.
#[derive(Debug, Default)]
pub(crate) struct Config {
    file: File,
    /// Where it was read from, for messages.
    path: PathBuf,
    /// Commands of the user that are run at fixed points of a turn.
    hooks: Arc<Hooks>,
}

/// The longest configuration that is read.
const LONGEST: u64 = 1 << 20;

impl Config {
    /// Reads the home's file, then the workspace's over it. Keys that nobody knows are warnings.
    pub(crate) fn load(
        home: &Path,
        workspace: Option<&Path>,
        output: Output,
    ) -> Result<Self, Error> {
        let path = home.join("config.toml");
        let mut file: File = read(&path, output)?.unwrap_or_default();
        if let Some(workspace) = workspace
            && let Some(over) = read::<WorkspaceFile>(&workspace.join(".mainstay.toml"), output)?
        {
            over.apply(&mut file);
        }
        let hooks = Arc::new(hooks::read(home, &file.hooks, output)?);
        Ok(Self { file, path, hooks })
    }

    /// How long a keeper waits for a new agent after its own died.
    pub(crate) fn keeper_grace(&self) -> Result<Duration, Error> {
        if let Some(text) = env::MAINSTAY_KEEPER_GRACE.get() {
            let text = text.to_string_lossy().into_owned();
            return duration(&text).ok_or_else(|| {
                Error::configuration(format!(
                    "{} is {text:?}, which is no time",
                    env::MAINSTAY_KEEPER_GRACE.name
                ))
                .hint("Write seconds, such as 30, or a time with its unit, such as 500ms or 2m.")
            });
        }
        match &self.file.keeper.grace {
            None => Ok(Duration::from_secs(30)),
            Some(grace) => grace.duration().ok_or_else(|| {
                self.wrong("keeper.grace is no time")
                    .hint("Write seconds, such as 30, or a time with its unit, such as \"500ms\".")
            }),
        }
    }

    /// An error of the file.
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::configuration(format!("{}: {what}", self.path.display()))
    }
}

/// Reads one file; a missing one says nothing.
fn read<T: serde::de::DeserializeOwned + shape::Known>(
    path: &Path,
    output: Output,
) -> Result<Option<T>, Error> {
    let wrong = |detail: &str| {
        Error::configuration(format!("{} cannot be used: {detail}", path.display()))
            .hint(format!("Mend it, or move it away: {}", crate::wording::path(path)))
    };
    let Some(text) = text(path, &wrong)? else { return Ok(None) };
    let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(&told(&error)))?;
    for key in T::strangers(&table) {
        output.warning(format!("{}: {key}", path.display()));
    }
    let value = toml::from_str(&text).map_err(|error| wrong(&told(&error)))?;
    Ok(Some(value))
}

/// The text of a file; nothing where there is none.
fn text(path: &Path, wrong: &dyn Fn(&str) -> Error) -> Result<Option<String>, Error> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&error.to_string())),
        Ok(found) if !found.is_file() => return Err(wrong("it is not a file")),
        Ok(found) if found.len() > LONGEST => return Err(wrong("it is larger than 1 MiB")),
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| wrong(&error.to_string()))
}

/// What the parser says, on one line.
fn told(error: &toml::de::Error) -> String {
    crate::wording::line(&error.to_string())
}

/// A time as people write it: `30`, `1.5`, `500ms`, `30s`, `2m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|character: char| !(character.is_ascii_digit() || character == '.'));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let cases = [
            ("30", Some(30_000)),
            ("0", Some(0)),
            ("1.5", Some(1_500)),
            ("500ms", Some(500)),
            ("2 m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("", None),
            ("soon", None),
            ("5 parsecs", None),
            ("-1", None),
        ];
        for (text, millis) in cases {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
