//! A store with an owner, on either engine.

use mainstay_memory::facts::{self, Fact, FactId, FoundFact, List, NewFact, Query};
use mainstay_memory::{MEMORY, Result};
use mainstay_store::{Depth, Location, Options, OwnerId, ReadTx, Schema, Store, WriteTx};

/// Runs a property on both engines, and looks at what it left.
pub(crate) fn on_both(property: impl Fn(&Memory)) {
    let directory = tempfile::tempdir().unwrap();
    let file = Location::file(directory.path().join("store.db"));
    for place in [file, mainstay_testkit::postgres::fresh().parse().unwrap()] {
        let memory = Memory::open(&place);
        property(&memory);
        assert_eq!(memory.problems(), [""; 0]);
    }
}

pub(crate) struct Memory {
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
}

impl Memory {
    pub(crate) fn open(place: &Location) -> Self {
        let store = Store::open(place, Options::new(Schema::new(&[MEMORY]))).unwrap();
        let owner = store.write(|tx| tx.owner("ada")).unwrap();
        Self { store, owner }
    }

    pub(crate) fn write<T: Send>(
        &self,
        closure: impl Fn(&mut WriteTx<'_>) -> Result<T> + Send,
    ) -> T {
        self.store.write(closure).unwrap()
    }

    pub(crate) fn read<T>(&self, closure: impl Fn(&mut ReadTx<'_>) -> Result<T>) -> T {
        self.store.read(closure).unwrap()
    }

    pub(crate) fn add(&self, content: &str) -> FactId {
        self.add_to("", content)
    }

    pub(crate) fn add_to(&self, category: &str, content: &str) -> FactId {
        let new = NewFact { category: category.to_owned(), ..new(content) };
        self.write(|tx| facts::add(tx, self.owner, &new)).id()
    }

    pub(crate) fn get(&self, id: FactId) -> Option<Fact> {
        self.read(|tx| facts::get(tx, self.owner, id))
    }

    pub(crate) fn list(&self, list: &List) -> Vec<String> {
        let facts = self.read(|tx| facts::list(tx, self.owner, list));
        facts.into_iter().map(|fact| fact.content).collect()
    }

    pub(crate) fn search(&self, query: &Query) -> Vec<FoundFact> {
        self.read(|tx| facts::search(tx, self.owner, query))
    }

    pub(crate) fn found(&self, text: &str) -> Vec<String> {
        contents(self.search(&Query::new(text, 0)))
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.store.read_unlimited(|tx| facts::check(tx, Depth::Full)).unwrap()
    }
}

pub(crate) fn new(content: &str) -> NewFact {
    NewFact { content: content.to_owned(), source: "user".to_owned(), ..NewFact::default() }
}

pub(crate) fn contents(found: Vec<FoundFact>) -> Vec<String> {
    found.into_iter().map(|found| found.fact.content).collect()
}
