//! Changes to `config.toml`: comments and order stay, and what would make it unusable is refused.

use std::fs::File as OpenFile;
use std::path::Path;
use std::time::Duration;

use mainstay_store::fsatomic::{self, PRIVATE_FILE};
use toml::Table;
use toml_edit::{DocumentMut, Item};

use super::name::Name;
use super::shape::File;
use super::template::{TEMPLATE, said_by_comment};
use super::{Config, build, hooks, layers, text_of, typed, unusable};
use crate::error::Error;
use crate::{humans_only, wording};

/// Refuses what changes the rules for an agent when it is an agent that wants it.
pub(crate) fn refuse_agents() -> Result<(), Error> {
    humans_only::require("changing settings")
}

/// Keeps other processes from changing the home's files, for as long as it lives.
pub(crate) struct HomeLock {
    _home: OpenFile,
}

impl HomeLock {
    /// Makes the home if need be, and waits for the lock, for a few seconds at most.
    pub(crate) fn take(home: &Path) -> Result<Self, Error> {
        const PATIENCE: Duration = Duration::from_secs(5);
        const STEP: Duration = Duration::from_millis(20);
        let wrong = |error: &std::io::Error| {
            Error::configuration(format!("could not use {}: {error}", home.display()))
                .hint("Pass another directory with --home DIR.")
        };
        fsatomic::private_directory(home).map_err(|error| wrong(&error))?;
        let directory = OpenFile::open(home).map_err(|error| wrong(&error))?;
        let mut waited = Duration::ZERO;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Self { _home: directory }),
                Err(std::fs::TryLockError::Error(error)) => return Err(wrong(&error)),
                Err(std::fs::TryLockError::WouldBlock) if waited >= PATIENCE => {
                    return Err(Error {
                        kind: crate::error::Kind::InUse,
                        message: "another process is changing the settings".to_owned(),
                        hints: vec!["Try again when it is done.".to_owned()],
                    });
                }
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(STEP),
            }
            waited += STEP;
        }
    }
}

/// A value as it was typed: what it would be in the file, or a text.
pub(crate) fn meanings(typed: &str) -> Vec<toml_edit::Value> {
    let mut meanings = Vec::new();
    meanings.extend(typed.parse::<toml_edit::Value>().ok());
    meanings.push(typed.into());
    let words = typed.split(',').map(str::trim).filter(|word| !word.is_empty());
    meanings.push(words.collect::<toml_edit::Array>().into());
    for meaning in &mut meanings {
        meaning.decor_mut().clear();
    }
    meanings
}

/// Sets settings in the home's file, all or none; each to the first of its values that it can have.
/// A file that is not there is begun. `path` is that of the file.
pub(crate) fn set(path: &Path, changes: &[(Name, Vec<toml_edit::Value>)]) -> Result<(), Error> {
    let text = text_of(path)?.unwrap_or_else(|| TEMPLATE.as_str().to_owned());
    let mut whole = text.clone();
    for (name, values) in changes {
        whole = changed(path, &whole, name, values)?;
    }
    if whole != text || !path.exists() {
        write(path, &whole)?;
    }
    Ok(())
}

/// Takes a setting out of the home's file; says whether it was there.
pub(crate) fn unset(path: &Path, name: &Name) -> Result<bool, Error> {
    let Some(text) = text_of(path)? else { return Ok(false) };
    let mut document = parse(path, &text)?;
    let Some((last, above)) = name.0.split_last() else { return Ok(false) };
    let mut table = document.as_table_mut() as &mut dyn toml_edit::TableLike;
    for part in above {
        match table.get_mut(part).and_then(Item::as_table_like_mut) {
            Some(below) => table = below,
            None => return Ok(false),
        }
    }
    if table.remove(last).is_none() {
        return Ok(false);
    }
    write(path, &document.to_string())?;
    Ok(true)
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fsatomic::write(path, text.as_bytes(), PRIVATE_FILE).map_err(|error| {
        Error::failed(format!("could not write {}: {error}", path.display())).hint(format!(
            "Check who may write there: ls -ld {}",
            wording::path(path.parent().unwrap_or(path))
        ))
    })
}

/// The text with one setting changed.
fn changed(
    path: &Path,
    text: &str,
    name: &Name,
    values: &[toml_edit::Value],
) -> Result<String, Error> {
    let document = parse(path, text)?;
    let before = check(path, text).err();
    let mut refusal = None;
    for value in values {
        let new = match in_place_of_comment(text, name, value) {
            Some(new) => new,
            None => {
                let mut document = document.clone();
                put(&mut document, name, value)?;
                document.to_string()
            }
        };
        match check(path, &new) {
            Ok(()) => return Ok(new),
            // What is wrong elsewhere was so before, and must not keep this from being mended.
            Err(error) if before.as_ref().is_some_and(|before| before.message == error.message) => {
                return Ok(new);
            }
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    let refusal = refusal.unwrap_or_else(|| Error::usage("no value given"));
    let prefix = format!("{}: ", path.display());
    let detail = refusal.message.strip_prefix(&prefix).unwrap_or(&refusal.message);
    let detail = wanted(detail).unwrap_or(detail);
    let mut error = Error::usage(format!("could not set {name}: {detail}"));
    error.hints = refusal.hints;
    if error.hints.is_empty() {
        error = error.hint(format!("Show its value: `mainstay config get {}`", group(name)));
    }
    Err(error)
}

/// What kind of value a setting takes, by the parser's words.
fn wanted(said: &str) -> Option<&'static str> {
    let (_, expected) = said.split_once("expected ").unwrap_or(("", said));
    let kinds = [
        ("u32", "it takes a whole number, not below 0"),
        ("u64", "it takes a whole number, not below 0"),
        ("i64", "it takes a whole number"),
        ("f32", "it takes a number"),
        ("f64", "it takes a number"),
        ("a boolean", "it takes true or false"),
        ("a string", "it takes a text"),
        ("a sequence", "it takes a list"),
        ("a map", "it is a group of settings, each set on its own"),
        ("struct", "it is a group of settings, each set on its own"),
        ("data did not match any variant of untagged enum Time", "it takes a time, such as 30s"),
    ];
    kinds.iter().find(|(words, _)| expected.starts_with(words)).map(|(_, kind)| *kind)
}

/// Whether a file says what can be used, every profile included.
fn check(path: &Path, text: &str) -> Result<(), Error> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        // Without the line, which may be somebody's secret.
        unusable(path, error.message())
    })?;
    let home = path.parent().unwrap_or(Path::new("")).to_owned();
    let judge = |table: Table| {
        let file: File = typed(table).map_err(Error::usage)?;
        hooks::check(&file.hooks)?;
        let config =
            Config { file, path: path.to_owned(), home: home.clone(), ..Config::default() };
        build::check(&config)
    };
    let mut base = table;
    let profiles = base.remove("profiles");
    judge(base.clone())?;
    let chosen = base.get("profile").and_then(toml::Value::as_str).map(str::to_owned);
    let profiles = profiles.and_then(|profiles| profiles.as_table().cloned()).unwrap_or_default();
    if let Some(chosen) = chosen
        && !profiles.contains_key(&chosen)
    {
        return Err(Error::usage(format!("unknown profile {chosen:?}"))
            .hint("List the profiles: `mainstay profiles`"));
    }
    for (name, profile) in profiles {
        let Some(profile) = profile.as_table() else {
            return Err(Error::usage(format!("profiles.{name} is not a group of settings")));
        };
        let origin = layers::Origin::Home;
        let both = [&base, profile]
            .map(|table| layers::Layer { origin: origin.clone(), table: table.clone() });
        judge(layers::merged(&both)).map_err(|error| Error {
            message: format!("profiles.{name}: {}", error.message),
            ..error
        })?;
    }
    Ok(())
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, Error> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        unusable(path, error.message())
            .only_hint(format!("Fix or rename it: {}", wording::path(path)))
    })
}

fn group(name: &Name) -> &str {
    name.0.first().map_or("", String::as_str)
}

/// Puts a value at its place; tables on the way are made.
fn put(document: &mut DocumentMut, name: &Name, value: &toml_edit::Value) -> Result<(), Error> {
    let Some((last, above)) = name.0.split_last() else { return Ok(()) };
    // A new group goes to the end, behind the comments there: they are about the group above them.
    let mut comments = String::new();
    if above.first().is_some_and(|first| !document.contains_key(first)) {
        comments = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
    }
    let mut table = document.as_table_mut() as &mut dyn toml_edit::TableLike;
    for (depth, part) in above.iter().enumerate() {
        let below = table.entry(part).or_insert_with(|| {
            let mut new = toml_edit::Table::new();
            // `[models."a/b"]` needs no `[models]` above it.
            new.set_implicit(depth + 1 < above.len());
            if depth + 1 == above.len() && !comments.is_empty() {
                new.decor_mut().set_prefix(format!("{comments}\n"));
            }
            Item::Table(new)
        });
        table = below.as_table_like_mut().ok_or_else(|| {
            Error::usage(format!("{} is a value, not a group", above[..=depth].join(".")))
                .hint("Find the file: `mainstay config path`")
        })?;
    }
    match table.get_mut(last).and_then(Item::as_value_mut) {
        Some(old) => {
            // What stands behind the value, such as a comment, stays.
            let decor = old.decor().clone();
            *old = value.clone();
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(last, Item::Value(value.clone()));
        }
    }
    Ok(())
}

/// The text with the comment that says a setting's default turned into the setting.
fn in_place_of_comment(text: &str, name: &Name, value: &toml_edit::Value) -> Option<String> {
    let (part, key) = match name.0.as_slice() {
        [key] => (None, key),
        [part, key] => (Some(format!("[{part}]")), key),
        _ => return None,
    };
    let table: Table = text.parse().ok()?;
    if layers::at(&table, &name.0).is_some() {
        return None;
    }
    let mut here = part.is_none();
    let mut lines: Vec<String> = Vec::new();
    let mut found = false;
    for line in text.lines() {
        if line.starts_with('[') {
            here = part.as_deref() == Some(line.trim());
        }
        let setting = said_by_comment(line).or_else(|| line.strip_prefix("# for example: "));
        let is_it = setting
            .and_then(|setting| setting.split_once('='))
            .is_some_and(|(said, _)| said.trim() == key);
        if here && is_it && !found {
            found = true;
            lines.push(format!("{key} = {value}"));
        } else {
            lines.push(line.to_owned());
        }
    }
    // A line inside a text of several lines would not have become a setting.
    let new = lines.join("\n") + "\n";
    let holds: Table = new.parse().ok()?;
    let expected: toml::Value =
        toml::from_str::<Table>(&format!("x = {value}")).ok()?.remove("x")?;
    (found && layers::at(&holds, &name.0) == Some(&expected)).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_set(path: &Path, name: &str, value: &str) -> Result<(), Error> {
        set(path, &[(Name::parse(name)?, meanings(value))])
    }

    #[test]
    fn comments_and_order_stay_and_only_the_setting_changes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        let before = "# mine\nmodel = \"a/x\" # the good one\n\n[providers.a]\nbase_url = \
                      \"http://h\"\n\n[budget] # money\n#turn_usd = 10.0\nday_usd = 5.0\n";
        write(&path, before).unwrap();
        try_set(&path, "model", "a/y").unwrap();
        try_set(&path, "budget.turn_usd", "2").unwrap();
        try_set(&path, "fallback", "a/z, a/w").unwrap();
        try_set(&path, "models.a/y.window", "8192").unwrap();
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.contains("# mine\n"), "{after}");
        assert!(after.contains("model = \"a/y\" # the good one\n"), "{after}");
        assert!(after.contains("fallback = [\"a/z\", \"a/w\"]\n"), "{after}");
        assert!(after.contains("[budget] # money\n"), "{after}");
        assert!(after.contains("[models.\"a/y\"]\nwindow = 8192\n"), "{after}");
        assert!(after.find("model =").unwrap() < after.find("[providers.a]").unwrap(), "{after}");
    }

    #[test]
    fn a_new_group_comes_behind_the_comments_at_the_end() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        try_set(&path, "providers.local.base_url", "http://127.0.0.1:1").unwrap();
        try_set(&path, "models.local/x.window", "8192").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let (template, new) = text.split_at(TEMPLATE.len());
        assert_eq!(template, TEMPLATE.as_str());
        assert_eq!(
            new,
            "\n[providers.local]\nbase_url = \"http://127.0.0.1:1\"\n\n[models.\"local/x\"]\nwindow = 8192\n"
        );
    }

    #[test]
    fn a_default_in_a_comment_becomes_the_setting() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        try_set(&path, "budget.turn_usd", "2.5").unwrap();
        try_set(&path, "model", "ollama/qwen3").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("[budget]\nturn_usd = 2.5\n#turn_tokens"), "{text}");
        assert!(text.contains("\nmodel = \"ollama/qwen3\"\n#fallback"), "{text}");
        assert_eq!(text.lines().count(), TEMPLATE.lines().count());
        assert!(unset(&path, &Name::parse("model").unwrap()).unwrap());
        assert!(!unset(&path, &Name::parse("model").unwrap()).unwrap());
    }

    #[test]
    fn what_would_not_work_is_refused_and_nothing_is_written() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        for (name, value) in [
            ("model", "qwen3"),
            ("model", "nobody/qwen3"),
            ("fallback", "5"),
            ("max_output", "much"),
            ("max_output", "-1"),
            ("effort", "enormous"),
            ("policy.execute", "perhaps"),
            ("budget.turn_usd", "-1"),
            ("budget.turn_time", "soon"),
            ("budget", "5"),
            ("budget.turn_time", "true"),
            ("profile", "ghost"),
            ("providers.x.api", "soap"),
            ("providers.openai.base_url", "ftp://h"),
            ("profiles.p.policy.execute", "perhaps"),
        ] {
            let error = try_set(&path, name, value).unwrap_err();
            assert!(error.message.starts_with(&format!("could not set {name}: ")), "{error:?}");
            assert!(!error.message.contains("expected"), "{error:?}");
            assert!(!path.exists(), "{name} {value}");
        }
    }

    #[test]
    fn a_broken_setting_can_be_mended_beside_another() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        write(&path, "model = \"nobody/x\"\neffort = \"enormous\"\n").unwrap();
        try_set(&path, "effort", "low").unwrap();
        try_set(&path, "model", "ollama/x").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "model = \"ollama/x\"\neffort = \"low\"\n"
        );
    }
}
