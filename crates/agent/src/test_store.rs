//! The store of one unit test.

use mainstay_store::{Options, OwnerId, Store};
use tempfile::TempDir;

/// A store with everything that an agent keeps, and an owner in it. It goes when this is dropped.
pub(crate) struct TestStore {
    pub(crate) directory: TempDir,
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
}

impl TestStore {
    pub(crate) fn on_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("store.db").display().to_string();
        Self::at(&place, directory)
    }

    pub(crate) fn on_postgres() -> Self {
        Self::at(&mainstay_testkit::postgres::fresh(), tempfile::tempdir().unwrap())
    }

    fn at(place: &str, directory: TempDir) -> Self {
        let store = Store::open(&place.parse().unwrap(), Options::new(crate::schema())).unwrap();
        let owner = store.write(|tx| tx.owner("local")).unwrap();
        Self { directory, store, owner }
    }
}
