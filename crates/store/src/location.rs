//! Where a store is: a path, or the address of a PostgreSQL server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use url::Url;

use crate::{Error, Result};

/// The place of a store, as given with `--store`.
#[derive(Clone)]
pub enum Location {
    /// An SQLite file.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The journal mode to create it with, where the user insists.
        journal: Journal,
    },
    /// A schema of a PostgreSQL database.
    Postgres {
        /// The server's address without our own parameters.
        url: Url,
        /// The schema that holds the tables.
        schema: String,
    },
}

/// Leaves room for what is added to the name: the server takes 63 characters.
const SCHEMA_LENGTH: usize = 40;

/// The journal mode a new SQLite file gets. It never changes afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log; refused where it cannot work.
    #[default]
    Wal,
    /// A rollback journal: slower, and readers wait for writers, but no shared memory is needed.
    Rollback,
}

impl Journal {
    /// What SQLite calls it.
    pub(crate) fn pragma(self) -> &'static str {
        match self {
            Journal::Wal => "wal",
            Journal::Rollback => "delete",
        }
    }
}

impl Location {
    /// A store in an SQLite file.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Location::Sqlite { path: path.as_ref().to_owned(), journal: Journal::Wal }
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return postgres(text);
        }
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return sqlite(rest);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(Error::BadAddress(format!("\"{scheme}\" is not a kind of store")));
        }
        if text.is_empty() {
            return Err(Error::BadAddress("it is empty".to_owned()));
        }
        Ok(Location::file(text))
    }
}

fn sqlite(rest: &str) -> Result<Location> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err(Error::BadAddress("no path after \"sqlite:\"".to_owned()));
    }
    let journal = match query {
        "" | "journal=wal" => Journal::Wal,
        "journal=rollback" => Journal::Rollback,
        other => {
            return Err(Error::BadAddress(format!(
                "\"{other}\" is not a valid option; use journal=wal or journal=rollback"
            )));
        }
    };
    Ok(Location::Sqlite { path: path.into(), journal })
}

fn postgres(text: &str) -> Result<Location> {
    let wrong = |error: &dyn fmt::Display| Error::BadAddress(error.to_string());
    let mut url = Url::parse(text).map_err(|error| wrong(&error))?;
    let mut schema = "mainstay".to_owned();
    let mut others = Vec::new();
    for (key, value) in url.query_pairs() {
        match key.as_ref() {
            "schema" => schema = value.into_owned(),
            _ => others.push((key.into_owned(), value.into_owned())),
        }
    }
    let plain = |character: char| character.is_ascii_lowercase() || character == '_';
    let name_is_plain = schema.starts_with(plain)
        && schema.len() <= SCHEMA_LENGTH
        && schema.chars().all(|character| plain(character) || character.is_ascii_digit());
    if !name_is_plain {
        return Err(Error::BadAddress(format!(
            "the schema's name \"{schema}\" must be at most {SCHEMA_LENGTH} of a-z, 0-9 and _"
        )));
    }
    url.set_query(None);
    if !others.is_empty() {
        url.query_pairs_mut().extend_pairs(others);
    }
    // Let the driver refuse now what it would refuse when connecting.
    let config = url.as_str().parse::<tokio_postgres::Config>().map_err(|error| {
        wrong(&std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string))
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(Error::BadAddress("it has no host".to_owned()));
    }
    Ok(Location::Postgres { url, schema })
}

/// Without secrets, as everywhere.
impl fmt::Debug for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The place without secrets.
impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Sqlite { path, .. } => write!(formatter, "{}", path.display()),
            Location::Postgres { url, schema } => {
                let mut url = url.clone();
                // Both fail only for addresses that carry neither.
                let _ = url.set_password(None);
                let sockets = url.query_pairs().find(|(key, _)| key == "host");
                let host = sockets.map(|(_, host)| format!(" at {host}")).unwrap_or_default();
                url.set_query(None);
                write!(formatter, "{url}{host} (schema {schema})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let place = |text: &str| text.parse::<Location>().unwrap().to_string();
        assert_eq!(place("/var/lib/store.db"), "/var/lib/store.db");
        assert_eq!(place("sqlite:/var/x.db?journal=rollback"), "/var/x.db");
        assert_eq!(place("sqlite:///var/x.db"), "/var/x.db");
        assert_eq!(
            place("postgres://me:secret@host/db?schema=other"),
            "postgres://me@host/db (schema other)"
        );
    }

    #[test]
    fn wrong_addresses_are_refused_in_words() {
        let wrong = |text: &str| text.parse::<Location>().unwrap_err().to_string();
        assert!(wrong("mysql://host/db").contains("\"mysql\" is not a kind of store"));
        assert!(wrong("postgres://host:badport/db").contains("port"));
        assert!(wrong("postgres://host/db?schema=a;drop").contains("of a-z, 0-9"));
        assert!(wrong("postgres://host/db?colour=red").contains("colour"));
        assert!(wrong("sqlite:x?journal=off").contains("journal=wal"));
        assert!(wrong("postgres://").contains("no host"));
        assert!(wrong("").contains("empty"));
    }
}
