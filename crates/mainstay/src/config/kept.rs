//! Keys of providers that a person gave to keep: `keys.toml` in the home, for the owner's eyes only.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mainstay_llm::Secret;
use mainstay_store::fsatomic::{self, PRIVATE_FILE};
use toml::{Table, Value};

use super::text_of;
use crate::error::Error;
use crate::wording;

/// What a file of keys begins with.
const HEAD: &str =
    "# API keys, stored by `mainstay config key set`. Only you may read this file.\n";

/// Where the keys are.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join("keys.toml")
}

/// All keys, by the names of their providers. A file that others can read is refused: whoever put a
/// key there must know.
pub(crate) fn read(home: &Path) -> Result<BTreeMap<String, Secret>, Error> {
    let path = path(home);
    let wrong = |what: &str| {
        // The parser's own words would show the line, and with it a key.
        Error::configuration(format!("{} {what}", path.display()))
    };
    let found = match std::fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => {
            let hint = format!("Check it: ls -l {}", wording::path(&path));
            return Err(wrong(&format!("could not be read: {error}")).hint(hint));
        }
    };
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        let hint = format!("Make it private: chmod 600 {}", wording::path(&path));
        return Err(wrong(&format!("is readable by others (mode {mode:03o})")).hint(hint));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        let hint = format!("Check it: ls -l {}", wording::path(&path));
        return Err(wrong("belongs to another user").hint(hint));
    }
    let text = text_of(&path)?.unwrap_or_default();
    let mend = format!("Fix or rename it: {}", wording::path(&path));
    let table: Table = text.parse().map_err(|_| wrong("is not valid TOML").hint(&mend))?;
    let read = |(name, value): (String, Value)| match value {
        Value::String(key) => Ok((name, Secret::new(&key))),
        _ => Err(wrong(&format!("has a value at {name} that is not text")).hint(&mend)),
    };
    table.into_iter().map(read).collect()
}

/// Keeps a key, in place of an earlier one.
pub(crate) fn keep(home: &Path, provider: &str, key: &Secret) -> Result<(), Error> {
    let mut keys = read(home)?;
    keys.insert(provider.to_owned(), key.clone());
    write(home, keys)
}

/// Forgets a key; says whether there was one.
pub(crate) fn forget(home: &Path, provider: &str) -> Result<bool, Error> {
    let mut keys = read(home)?;
    if keys.remove(provider).is_none() {
        return Ok(false);
    }
    write(home, keys).map(|()| true)
}

fn write(home: &Path, keys: BTreeMap<String, Secret>) -> Result<(), Error> {
    let table: Table = keys
        .into_iter()
        .map(|(name, key)| (name, Value::String(key.expose().to_owned())))
        .collect();
    let path = path(home);
    fsatomic::write(&path, format!("{HEAD}{table}").as_bytes(), PRIVATE_FILE).map_err(|error| {
        Error::failed(format!("could not write {}: {error}", path.display()))
            .hint("Check the home: `mainstay doctor`")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_kept_key_comes_back_and_only_its_owner_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        assert!(read(home.path()).unwrap().is_empty());
        keep(home.path(), "anthropic", &Secret::new("sk-\"odd\\key")).unwrap();
        keep(home.path(), "my server", &Secret::new("two")).unwrap();
        assert_eq!(read(home.path()).unwrap()["anthropic"].expose(), "sk-\"odd\\key");
        assert!(forget(home.path(), "anthropic").unwrap());
        assert!(!forget(home.path(), "anthropic").unwrap());
        assert_eq!(read(home.path()).unwrap().keys().collect::<Vec<_>>(), ["my server"]);

        let path = path(home.path());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        for refused in [read(home.path()).err(), keep(home.path(), "x", &Secret::new("y")).err()] {
            let refused = refused.unwrap();
            assert!(refused.message.contains("is readable by others (mode 640)"), "{refused:?}");
            assert!(refused.hints[0].contains("chmod 600"), "{refused:?}");
        }
    }

    #[test]
    fn a_broken_file_is_told_without_its_content() {
        let home = tempfile::tempdir().unwrap();
        for text in ["anthropic = \"sk-secret", "openai = 5\nx = 'sk-secret'"] {
            fsatomic::write(&path(home.path()), text.as_bytes(), PRIVATE_FILE).unwrap();
            let error = format!("{:?}", read(home.path()).unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
