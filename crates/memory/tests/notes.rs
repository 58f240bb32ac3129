//! Notes in a store, on either engine.
#![allow(clippy::unwrap_used, reason = "a panic is a test's error")]

use mainstay_memory::notes::{self, Change, Note, Refused, Scope};
use mainstay_memory::{MEMORY, done};
use mainstay_store::{Location, Options, OwnerId, Schema, Store};

fn open(location: &Location) -> Store {
    Store::open(location, Options::new(Schema::new(&[MEMORY]))).unwrap()
}

/// Runs a property on SQLite and on PostgreSQL.
fn on_both(property: impl Fn(&Store)) {
    let directory = tempfile::tempdir().unwrap();
    property(&open(&Location::file(directory.path().join("store.db"))));
    property(&open(&mainstay_testkit::postgres::fresh().parse().unwrap()));
}

fn owner(store: &Store, name: &str) -> OwnerId {
    store.write(|tx| tx.owner(name)).unwrap()
}

fn change(
    store: &Store,
    owner: OwnerId,
    scope: Scope<'_>,
    changes: &[Change],
) -> Result<Vec<String>, Refused> {
    let done = store.write(|tx| notes::change(tx, owner, scope, changes, "user", 100)).unwrap();
    done.map(texts)
}

fn texts(notes: Vec<Note>) -> Vec<String> {
    notes.into_iter().map(|note| note.text).collect()
}

fn read(store: &Store, owner: OwnerId, scope: Scope<'_>) -> Vec<String> {
    texts(store.read(|tx| notes::read(tx, owner, scope)).unwrap())
}

#[test]
fn each_owner_has_notes_on_themselves_and_on_each_workspace() {
    on_both(|store| {
        let (anna, ben) = (owner(store, "anna"), owner(store, "ben"));
        let (here, there) = (Scope::Workspace("/here"), Scope::Workspace("/there"));
        let add = |text: &str| [Change::Add(text.to_owned())];
        change(store, anna, Scope::User, &add("likes tabs")).unwrap();
        change(store, anna, here, &add("builds with make")).unwrap();
        change(store, ben, here, &add("builds with make")).unwrap();
        assert_eq!(read(store, anna, Scope::User), ["likes tabs"]);
        assert_eq!(read(store, anna, here), ["builds with make"]);
        assert_eq!(read(store, anna, there), [""; 0]);
        assert_eq!(read(store, ben, Scope::User), [""; 0]);
        let places = store.read(|tx| notes::workspaces(tx, anna)).unwrap();
        assert_eq!(places, ["/here"]);
    });
}

#[test]
fn a_batch_is_made_as_a_whole_or_not_at_all() {
    on_both(|store| {
        let anna = owner(store, "anna");
        let swap = |old: &str, new: &str| Change::Replace { old: old.into(), new: new.into() };
        let add = |text: &str| Change::Add(text.to_owned());
        let first = [add("one"), add("two"), add("three"), add("one")];
        assert_eq!(change(store, anna, Scope::User, &first).unwrap(), ["one", "two", "three"]);
        let wrong = [add("four"), Change::Remove("one".into()), Change::Remove("none".into())];
        assert!(matches!(
            change(store, anna, Scope::User, &wrong),
            Err(Refused::Unknown { notes, .. }) if notes.len() == 3
        ));
        assert_eq!(read(store, anna, Scope::User), ["one", "two", "three"]);
        let long = [add(&"x".repeat(90))];
        assert!(matches!(change(store, anna, Scope::User, &long), Err(Refused::TooLong { .. })));
        // Two that change places, and one that takes the text of one that goes.
        let odd =
            [swap("one", "zwei"), swap("two", "one"), Change::Remove("three".into()), add("three")];
        assert_eq!(change(store, anna, Scope::User, &odd).unwrap(), ["zwei", "one", "three"]);
        let notes = store.read(|tx| notes::read(tx, anna, Scope::User)).unwrap();
        assert_eq!(notes.iter().map(|note| note.number).collect::<Vec<_>>(), [1, 2, 4]);
        let moved = [swap("one", "eins"), swap("zwei", "one")];
        assert_eq!(change(store, anna, Scope::User, &moved).unwrap(), ["one", "eins", "three"]);
        assert_eq!(change(store, anna, Scope::User, &[]).unwrap().len(), 3);
    });
}

#[test]
fn a_call_that_was_done_is_known_by_its_name() {
    on_both(|store| {
        let (anna, ben) = (owner(store, "anna"), owner(store, "ben"));
        assert_eq!(store.read(|tx| done::find(tx, anna, "call-1")).unwrap(), None);
        store.write(|tx| done::note(tx, anna, "call-1", "kept")).unwrap();
        assert_eq!(store.read(|tx| done::find(tx, anna, "call-1")).unwrap().unwrap(), "kept");
        assert_eq!(store.read(|tx| done::find(tx, ben, "call-1")).unwrap(), None);
    });
}
