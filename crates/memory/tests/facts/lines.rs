//! Facts as lines of JSON.

use mainstay_memory::Error;
use mainstay_memory::facts::{self, Added, FactId, Line, NewFact, Query};
use mainstay_store::Location;

use crate::memory::{Memory, on_both};

/// All lines, a page of two at a time.
fn exported(memory: &Memory) -> Vec<String> {
    let mut lines = Vec::new();
    let mut after: Option<FactId> = None;
    loop {
        let page = memory.read(|tx| facts::export(tx, memory.owner, after, 2));
        let Some((last, _)) = page.last() else { return lines };
        after = Some(*last);
        lines.extend(page.into_iter().map(|(_, line)| line));
    }
}

fn import(memory: &Memory, lines: &[String]) -> Vec<Added> {
    let lines: Vec<Line> = lines.iter().map(|line| line.parse().unwrap()).collect();
    let add = |line| memory.write(|tx| facts::import(tx, memory.owner, line));
    lines.iter().map(add).collect()
}

#[test]
fn lines_are_the_same_facts_elsewhere_and_once() {
    on_both(|memory| {
        let rich = NewFact {
            content: "Ada \"the first\" Lovelace\nlikes täa 茶".to_owned(),
            category: "taste".to_owned(),
            tags: vec!["drink".to_owned()],
            entities: Some(vec!["Ada".to_owned()]),
            source: "session 01".to_owned(),
            key: Some("k".to_owned()),
        };
        let id = memory.write(|tx| facts::add(tx, memory.owner, &rich)).id();
        memory.write(|tx| facts::feedback(tx, memory.owner, id, false));
        for number in 0..4 {
            memory.add(&format!("fact {number}"));
        }
        let lines = exported(memory);
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| !line.contains('\n')));

        let directory = tempfile::tempdir().unwrap();
        let elsewhere = Memory::open(&Location::file(directory.path().join("store.db")));
        assert!(import(&elsewhere, &lines).iter().all(|added| matches!(added, Added::New(_))));
        assert_eq!(exported(&elsewhere), lines);
        assert!(import(&elsewhere, &lines).iter().all(|added| matches!(added, Added::Known(_))));
        assert_eq!(exported(&elsewhere), lines);
        assert_eq!(elsewhere.problems(), [""; 0]);
        assert_eq!(elsewhere.get(id).unwrap(), memory.get(id).unwrap());
    });
}

#[test]
fn a_line_needs_no_more_than_its_content() {
    on_both(|memory| {
        import(memory, &[r#"{"content": "Grace Hopper sails"}"#.to_owned()]);
        let fact = memory.get("1".parse().unwrap()).unwrap();
        assert_eq!((fact.category.as_str(), fact.trust), ("general", 0.5));
        assert_eq!(fact.entities, ["Grace Hopper"]);
        assert!(fact.created_at > 0 && fact.changed_at == fact.created_at);
    });
}

#[test]
fn a_line_that_is_no_fact_is_refused_with_a_sentence() {
    for (line, part) in [
        ("{}", "missing field `content`"),
        ("nonsense", "the line is not a fact"),
        (r#"{"content": ""}"#, "a fact needs text"),
        (r#"{"content": "x", "trust": 7}"#, "a trust of 7 is not from 0 to 1"),
    ] {
        match line.parse::<Line>() {
            Err(Error::Refused(sentence)) => assert!(sentence.contains(part), "{sentence}"),
            other => panic!("{other:?}"),
        }
    }
}

/// What leads to facts are rows like any other, so a copy on the other engine answers the same.
#[test]
fn a_copy_of_the_store_on_the_other_engine_answers_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let memory = Memory::open(&Location::file(directory.path().join("store.db")));
    for text in ["Ada Lovelace likes tea", "Robert Smith aka Bob likes tea", "tea is green"] {
        memory.add(text);
    }
    let server: Location = mainstay_testkit::postgres::fresh().parse().unwrap();
    memory.store.copy_to(&server, &mut |_| {}).unwrap();
    let copy = Memory::open(&server);
    let query = Query::new("does bob like tea?", 0);
    assert_eq!(copy.search(&query), memory.search(&query));
    assert_eq!(copy.search(&query).len(), 3);
    assert_eq!(copy.problems(), [""; 0]);
}
