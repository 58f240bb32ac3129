//! A fresh, empty place for a store, on either engine.

use mainstay_store::{Component, Location, Migration, Options, Schema, Store};
use tempfile::TempDir;

/// The tables the properties use.
pub(crate) const PROBE: Component = Component {
    name: "probe",
    migrations: &[
        Migration::Both(
            "CREATE TABLE pairs (key TEXT NOT NULL PRIMARY KEY, value INTEGER) STRICT;",
        ),
        Migration::Both(
            "CREATE TABLE things (
                id TEXT NOT NULL PRIMARY KEY, whole INTEGER, part REAL, words TEXT, bytes BLOB
            ) STRICT;",
        ),
    ],
};

pub(crate) struct Place {
    pub(crate) location: Location,
    _directory: Option<TempDir>,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::file(directory.path().join("store.db"));
        Self { location, _directory: Some(directory) }
    }

    pub(crate) fn postgres() -> Self {
        let location = mainstay_testkit::postgres::fresh().parse().unwrap();
        Self { location, _directory: None }
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(Schema::new(&[PROBE]))
    }

    /// A handle of its own, as another process would have.
    pub(crate) fn open(&self) -> Store {
        Store::open(&self.location, self.options()).unwrap()
    }
}
