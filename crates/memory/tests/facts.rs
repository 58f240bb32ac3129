//! Facts on both engines: what is added is found, what is forgotten is gone, nothing is doubled.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test's error is a panic"
)]

use std::time::Duration;

use mainstay_memory::facts::{
    self, Added, Change, Changed, Fact, FactId, Found, List, NewFact, Query,
};
use mainstay_memory::{Error, MEMORY, Result};
use mainstay_store::{Location, Options, OwnerId, Schema, Store, WriteTx};

/// Runs a property on both engines.
fn on_both(property: impl Fn(&Memory)) {
    let directory = tempfile::tempdir().unwrap();
    property(&Memory::open(&Location::file(directory.path().join("store.db"))));
    property(&Memory::open(&mainstay_testkit::postgres::fresh().parse().unwrap()));
}

/// A store with an owner.
struct Memory {
    store: Store,
    owner: OwnerId,
}

impl Memory {
    fn open(place: &Location) -> Self {
        let store = Store::open(place, Options::new(Schema::new(&[MEMORY]))).unwrap();
        let owner = store.write(|tx| tx.owner("ada")).unwrap();
        Self { store, owner }
    }

    fn write<T: Send>(&self, closure: impl Fn(&mut WriteTx<'_>) -> Result<T> + Send) -> T {
        self.store.write(closure).unwrap()
    }

    fn add(&self, content: &str) -> FactId {
        self.add_to("", content)
    }

    fn add_to(&self, category: &str, content: &str) -> FactId {
        let new = NewFact {
            content: content.to_owned(),
            category: category.to_owned(),
            source: "user".to_owned(),
            ..NewFact::default()
        };
        self.write(|tx| facts::add(tx, self.owner, &new)).id()
    }

    fn get(&self, id: FactId) -> Option<Fact> {
        self.store.read(|tx| facts::get(tx, self.owner, id)).unwrap()
    }

    fn list(&self, list: &List) -> Vec<String> {
        let facts = self.store.read(|tx| facts::list(tx, self.owner, list)).unwrap();
        facts.into_iter().map(|fact| fact.content).collect()
    }

    fn search(&self, query: &Query) -> Vec<Found> {
        self.store.read(|tx| facts::search(tx, self.owner, query)).unwrap()
    }

    fn found(&self, text: &str) -> Vec<String> {
        contents(self.search(&Query::new(text, 0)))
    }
}

fn contents(found: Vec<Found>) -> Vec<String> {
    found.into_iter().map(|found| found.fact.content).collect()
}

#[test]
fn a_fact_reads_back_as_it_was_added() {
    on_both(|memory| {
        let new = NewFact {
            content: "  Ada Lovelace prefers Rust over \"C++\" ".to_owned(),
            category: " Taste ".to_owned(),
            tags: vec!["Language".to_owned(), "language".to_owned()],
            entities: None,
            source: "session 01".to_owned(),
            key: Some("k".to_owned()),
        };
        let id = memory.write(|tx| facts::add(tx, memory.owner, &new)).id();
        let fact = memory.get(id).unwrap();
        assert_eq!(fact.content, "Ada Lovelace prefers Rust over \"C++\"");
        assert_eq!(fact.category, "taste");
        assert_eq!(fact.tags, ["language"]);
        assert_eq!(fact.entities, ["C++", "Ada Lovelace"]);
        assert_eq!((fact.source.as_str(), fact.key.as_deref()), ("session 01", Some("k")));
        assert_eq!((fact.trust, fact.helpful, fact.unhelpful), (0.5, 0, 0));
        assert_eq!(fact.created_at, fact.changed_at);
        assert_eq!(id.to_string().parse::<FactId>().unwrap(), id);
    });
}

#[test]
fn the_same_text_and_the_same_key_are_one_fact() {
    on_both(|memory| {
        let new = |content: &str, key: Option<&str>| NewFact {
            content: content.to_owned(),
            key: key.map(str::to_owned),
            ..NewFact::default()
        };
        let add = |fact: &NewFact| memory.write(|tx| facts::add(tx, memory.owner, fact));
        let first = add(&new("tea is green", Some("a")));
        assert_eq!(first, Added::New(first.id()));
        assert_eq!(add(&new(" tea is green", None)), Added::Known(first.id()));
        assert_eq!(add(&new("tea is black", Some("a"))), Added::Known(first.id()));
        assert!(matches!(add(&new("tea is black", Some("b"))), Added::New(_)));
        assert_eq!(memory.list(&List::default()), ["tea is black", "tea is green"]);
    });
}

#[test]
fn what_cannot_be_remembered_is_refused_with_a_sentence() {
    on_both(|memory| {
        let refused = |fact: NewFact| {
            let outcome = memory.store.write(|tx| facts::add(tx, memory.owner, &fact));
            match outcome {
                Err(Error::Refused(sentence)) => sentence,
                other => panic!("{other:?}"),
            }
        };
        let text = |content: String| NewFact { content, ..NewFact::default() };
        assert!(refused(text(" \n".to_owned())).contains("without words"));
        assert!(refused(text("x".repeat(4001))).contains("4001 characters"));
        let tags = (0..33).map(|number| number.to_string()).collect();
        assert!(refused(NewFact { tags, ..text("x".to_owned()) }).contains("33 tags"));
        assert_eq!(memory.list(&List::default()), [""; 0]);
    });
}

#[test]
fn a_list_is_newest_first_by_page_category_and_tag() {
    on_both(|memory| {
        for number in 1..=5 {
            memory
                .add_to(if number % 2 == 0 { "even" } else { "odd" }, &format!("number {number}"));
        }
        let page = |list: List| memory.list(&list);
        assert_eq!(page(List { limit: 2, ..List::default() }), ["number 5", "number 4"]);
        let odd = || List { category: Some("Odd".to_owned()), ..List::default() };
        assert_eq!(page(odd()), ["number 5", "number 3", "number 1"]);
        let newest = memory.store.read(|tx| facts::list(tx, memory.owner, &odd())).unwrap()[0].id;
        assert_eq!(page(List { before: Some(newest), limit: 1, ..odd() }), ["number 3"]);
        assert_eq!(page(List { tag: Some("none".to_owned()), ..odd() }), [""; 0]);
    });
}

#[test]
fn the_fact_that_fits_best_is_found_first() {
    on_both(|memory| {
        memory.add("The build runs on two machines");
        memory.add("Ada prefers tabs in every editor");
        memory.add("Grace prefers spaces");
        memory.add("Deployments happen on Tuesday");
        assert_eq!(
            memory.found("which editor does Ada prefer?")[0],
            "Ada prefers tabs in every editor"
        );
        assert_eq!(memory.found("When is the deployment?"), ["Deployments happen on Tuesday"]);
        assert_eq!(memory.found("nothing of this kind"), [""; 0]);
        assert_eq!(memory.found("what is the"), [""; 0]);
    });
}

#[test]
fn the_parts_of_a_score_add_up() {
    on_both(|memory| {
        memory.add("Ada prefers tabs in every editor");
        memory.add("Ada lives in London");
        let found = memory.search(&Query::new("Ada prefers tabs", 0));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].parts.words, 1.0);
        // ada, prefer, tab of ada, prefer, tab, every, editor.
        assert_eq!(found[0].parts.overlap, 3.0 / 5.0);
        assert!(found[0].parts.similarity > found[1].parts.similarity + 0.2);
        for Found { fact, score, parts } in found {
            let mixed = 0.4 * parts.words + 0.3 * parts.overlap + 0.15 * (parts.similarity + 1.0);
            assert!((score - mixed * parts.freshness * fact.trust).abs() < 1e-12);
        }
    });
}

#[test]
fn a_fact_is_found_by_another_name_of_its_entity() {
    on_both(|memory| {
        memory.add("Robert Smith aka Bobby runs the servers");
        let fact = memory.add("Ask Robert Smith for access");
        assert!(memory.found("who is bobby").contains(&"Ask Robert Smith for access".to_owned()));
        memory.write(|tx| facts::forget(tx, memory.owner, fact));
        assert_eq!(memory.found("access"), [""; 0]);
    });
}

#[test]
fn what_is_forgotten_is_gone_with_the_names_it_introduced() {
    on_both(|memory| {
        let pair = memory.add("Robert Smith aka Bobby runs the servers");
        memory.add("Ask Robert Smith for access");
        assert!(memory.write(|tx| facts::forget(tx, memory.owner, pair)));
        assert!(!memory.write(|tx| facts::forget(tx, memory.owner, pair)));
        assert_eq!(memory.get(pair), None);
        assert_eq!(memory.found("who is bobby"), [""; 0]);
        assert_eq!(memory.found("servers"), [""; 0]);
        // Its number is not used again.
        assert!(memory.add("another") > pair);
    });
}

#[test]
fn feedback_moves_trust_and_trust_moves_facts() {
    on_both(|memory| {
        let (liked, disliked) = (memory.add("tea is green"), memory.add("tea is black"));
        let feedback = |id, helpful| {
            memory.write(|tx| facts::feedback(tx, memory.owner, id, helpful)).unwrap()
        };
        assert_eq!(feedback(liked, true), 0.55);
        assert_eq!(feedback(disliked, false), 0.4);
        assert_eq!(memory.found("tea"), ["tea is green", "tea is black"]);
        assert_eq!(feedback(disliked, false), 0.3);
        assert_eq!(memory.found("tea").len(), 2);
        assert_eq!(feedback(disliked, false), 0.2);
        assert_eq!(memory.found("tea"), ["tea is green"]);
        for _ in 0..3 {
            feedback(disliked, false);
        }
        assert_eq!(feedback(disliked, false), 0.0);
        for _ in 0..9 {
            feedback(liked, true);
        }
        assert_eq!(feedback(liked, true), 1.0);
        let fact = memory.get(liked).unwrap();
        assert_eq!((fact.helpful, fact.unhelpful), (11, 0));
        let nobody = "99".parse().unwrap();
        assert_eq!(memory.write(|tx| facts::feedback(tx, memory.owner, nobody, true)), None);
    });
}

#[test]
fn age_counts_only_where_there_is_a_half_life() {
    on_both(|memory| {
        let id = memory.add("tea is green");
        let at = memory.get(id).unwrap().created_at;
        let day = Duration::from_secs(86_400);
        let score = |half_life, days: i64| {
            let query = Query { half_life, ..Query::new("tea", at + days * 86_400_000) };
            memory.search(&query)[0].score
        };
        let fresh = score(None, 0);
        assert_eq!(score(None, 30), fresh);
        assert_eq!(score(Some(day * 30), 30), fresh / 2.0);
        assert_eq!(score(Some(day * 30), -30), fresh);
    });
}

#[test]
fn a_changed_fact_is_found_by_what_it_is_now() {
    on_both(|memory| {
        let id = memory.add_to("home", "the door is red");
        let other = memory.add("the gate is open");
        let change =
            |change: Change| memory.write(|tx| facts::update(tx, memory.owner, id, &change));
        let text =
            |content: &str| Change { content: Some(content.to_owned()), ..Change::default() };
        assert_eq!(change(text("the window is blue")), Changed::Made);
        assert_eq!(change(text("the window is blue")), Changed::Same);
        assert_eq!(change(text("the gate is open")), Changed::Taken(other));
        assert_eq!(memory.found("door"), [""; 0]);
        assert_eq!(memory.found("window"), ["the window is blue"]);
        let category = Change { category: Some("work".to_owned()), ..Change::default() };
        assert_eq!(change(category), Changed::Made);
        let within = |category: &str| {
            let query = Query { category: Some(category.to_owned()), ..Query::new("window", 0) };
            contents(memory.search(&query))
        };
        assert_eq!((within("home").len(), within("work").len()), (0, 1));
        let nobody = "99".parse().unwrap();
        let absent = memory.write(|tx| facts::update(tx, memory.owner, nobody, &text("x")));
        assert_eq!(absent, Changed::Absent);
    });
}

#[test]
fn owners_see_only_their_own_facts() {
    on_both(|memory| {
        let other = memory.store.write(|tx| tx.owner("grace")).unwrap();
        let id = memory.add("Ada Lovelace likes tea");
        let grace = Memory { store: memory.store.clone(), owner: other };
        assert_eq!(grace.found("tea"), [""; 0]);
        assert_eq!(grace.get(id), None);
        assert!(!grace.write(|tx| facts::forget(tx, other, id)));
        assert_eq!(grace.write(|tx| facts::feedback(tx, other, id, false)), None);
        assert_eq!(grace.list(&List::default()), [""; 0]);
        // The same text is a fact of its own.
        grace.add("Ada Lovelace likes tea");
        grace.write(|tx| facts::forget(tx, other, "1".parse().unwrap()));
        assert_eq!(memory.found("tea"), ["Ada Lovelace likes tea"]);
    });
}

#[test]
fn signs_in_names_are_no_wildcards() {
    on_both(|memory| {
        memory.add("\"100%\" is a brand of juice");
        memory.add("\"100_\" is a brand of bread");
        memory.add("\"1000\" is a brand of soap");
        assert_eq!(memory.found("100%")[0], "\"100%\" is a brand of juice");
        let named = memory.search(&Query::new("about 100_", 0));
        assert!(named.iter().all(|found| !found.fact.content.contains("soap")), "{named:?}");
    });
}
