//! Facts are kept as they were added, once, for their owner, until they are changed or forgotten.

use mainstay_memory::Error;
use mainstay_memory::facts::{self, Added, Change, Changed, FactId, List, NewFact, Query};

use crate::memory::{Memory, contents, on_both};

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
fn no_text_is_refused_for_what_is_found_in_it() {
    on_both(|memory| {
        let quotations: String = (0..60).map(|number| format!("\"q{number}\" ")).collect();
        let alias = format!("{} aka {}", "x".repeat(1900), "y".repeat(1900));
        for text in ["HELLO ".repeat(60), quotations, alias, "a\0b".to_owned()] {
            let id = memory.add(&text);
            assert_eq!(memory.get(id).unwrap().content, text.replace('\0', "").trim());
        }
        let odd = NewFact {
            content: "c".to_owned(),
            category: "d\0".to_owned(),
            tags: vec!["t\0".to_owned(), "\0".to_owned()],
            entities: Some(vec!["e\0".to_owned()]),
            source: "s\0".to_owned(),
            key: Some("\0".to_owned()),
        };
        let add = |fact: &NewFact| memory.write(|tx| facts::add(tx, memory.owner, fact));
        let fact = memory.get(add(&odd).id()).unwrap();
        assert_eq!((fact.category.as_str(), fact.source.as_str()), ("d", "s"));
        assert_eq!(
            (fact.tags, fact.entities, fact.key),
            (vec!["t".into()], vec!["e".into()], None)
        );
        // An empty key does not make one fact of all.
        let other = NewFact { content: "f".to_owned(), ..odd };
        assert!(matches!(add(&other), Added::New(_)));
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
        assert!(refused(text(" \n".to_owned())).contains("a fact needs text"));
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
