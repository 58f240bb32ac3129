//! Questions about entities: probe, related, reason, contradictions, categories.

use mainstay_memory::facts::{self, Answer, NewFact, Within};

use crate::memory::{Memory, new, on_both};

fn contents(answers: Vec<Answer>) -> Vec<String> {
    answers.into_iter().map(|answer| answer.fact.content).collect()
}

fn probe(memory: &Memory, entity: &str, within: &Within) -> Vec<Answer> {
    memory.read(|tx| facts::probe(tx, memory.owner, entity, within))
}

fn add(memory: &Memory, content: &str, entities: &[&str]) {
    let entities = entities.iter().map(|name| (*name).to_owned()).collect();
    let fact = NewFact { entities: Some(entities), ..new(content) };
    memory.write(|tx| facts::add(tx, memory.owner, &fact));
}

#[test]
fn a_probe_finds_what_is_about_an_entity_the_most_about_it_first() {
    on_both(|memory| {
        add(memory, "she shares the office with two others", &["Ada", "Grace", "Edsger"]);
        add(memory, "she likes tea", &["Ada"]);
        add(memory, "ada is a word here and no entity", &[]);
        add(memory, "she sails", &["Grace"]);
        let found = probe(memory, "ADA", &Within::default());
        assert!(found[0].similarity > 0.55 && found[1].similarity < 0.5, "{found:?}");
        for answer in &found {
            let score = f64::midpoint(answer.similarity, 1.0) * answer.fact.trust;
            assert!((answer.score - score).abs() < 1e-12);
        }
        assert_eq!(contents(found), ["she likes tea", "she shares the office with two others"]);
        assert_eq!(contents(probe(memory, "nobody", &Within::default())), [""; 0]);
        let one = Within { limit: 1, ..Within::default() };
        assert_eq!(probe(memory, "ada", &one).len(), 1);
    });
}

#[test]
fn a_probe_knows_the_other_names_of_an_entity() {
    on_both(|memory| {
        memory.add("Robert Smith aka Bobby runs the servers");
        memory.add("Ask Robert Smith for access");
        let found = contents(probe(memory, "Bobby", &Within::default()));
        assert!(found.contains(&"Ask Robert Smith for access".to_owned()), "{found:?}");
    });
}

#[test]
fn related_facts_hold_the_entity_in_either_role() {
    on_both(|memory| {
        add(memory, "she likes tea", &["Ada"]);
        add(memory, "ada", &[]);
        add(memory, "she sails", &["Grace"]);
        let found = memory.read(|tx| facts::related(tx, memory.owner, "Ada", &Within::default()));
        assert!(found[0].similarity > 0.9, "{found:?}");
        assert!(found[1].similarity > 0.5, "{found:?}");
        assert_eq!(contents(found), ["ada", "she likes tea"]);
    });
}

#[test]
fn reasoning_finds_what_connects_all_entities() {
    on_both(|memory| {
        add(memory, "they share an office", &["Ada", "Grace"]);
        add(memory, "she lent a book to grace", &["Ada"]);
        add(memory, "she likes tea", &["Ada"]);
        add(memory, "she sails", &["Grace"]);
        let reason = |names: &[&str]| {
            memory.read(|tx| facts::reason(tx, memory.owner, names, &Within::default()))
        };
        let found = reason(&["Ada", "Grace"]);
        assert!(found[0].similarity > 0.4 && found[1].similarity > 0.1, "{found:?}");
        assert_eq!(contents(found), ["they share an office", "she lent a book to grace"]);
        assert_eq!(contents(reason(&["Ada", "Grace", "Edsger"])), [""; 0]);
        assert_eq!(contents(reason(&[])), [""; 0]);
    });
}

#[test]
fn facts_that_say_different_things_about_the_same_are_shown() {
    on_both(|memory| {
        add(memory, "the server runs in berlin", &["Server One"]);
        add(memory, "the server runs in berlin now", &["Server One"]);
        add(memory, "it was moved to oslo last year", &["Server One"]);
        add(memory, "it was moved to oslo last week", &["Server Two"]);
        let found = memory.read(|tx| facts::contradictions(tx, memory.owner, &Within::default()));
        let pairs: Vec<_> = found
            .iter()
            .map(|pair| (pair.newer.content.as_str(), pair.older.content.as_str()))
            .collect();
        assert_eq!(pairs.len(), 2, "{pairs:?}");
        assert!(pairs.iter().all(|(newer, _)| newer.contains("last year")), "{pairs:?}");
        for pair in &found {
            assert_eq!(pair.overlap, 1.0);
            assert!(pair.score >= 0.3);
            assert!((pair.score - (1.0 - f64::midpoint(pair.similarity, 1.0))).abs() < 1e-12);
        }
    });
}

#[test]
fn questions_stay_within_a_category_and_a_trust() {
    on_both(|memory| {
        let home = memory.add_to("home", "Ada Lovelace likes tea");
        memory.add_to("work", "Ada Lovelace likes code");
        let within = Within { category: Some("home".to_owned()), ..Within::default() };
        assert_eq!(contents(probe(memory, "ada lovelace", &within)), ["Ada Lovelace likes tea"]);
        for _ in 0..3 {
            memory.write(|tx| facts::feedback(tx, memory.owner, home, false));
        }
        assert_eq!(contents(probe(memory, "ada lovelace", &within)), [""; 0]);
    });
}

#[test]
fn a_category_s_bank_knows_whom_it_is_about() {
    on_both(|memory| {
        for number in 0..8 {
            memory.add_to("people", &format!("Ada Lovelace met person {number}"));
            memory.add_to("places", &format!("New York has bridge {number}"));
        }
        let about = memory.read(|tx| facts::about(tx, memory.owner, "Ada Lovelace"));
        let names: Vec<_> = about.iter().map(|(category, _)| category.name.as_str()).collect();
        assert_eq!(names, ["people", "places"]);
        assert!(about[0].1 > 0.4 && about[1].1.abs() < 0.1, "{about:?}");
        let categories = memory.read(|tx| facts::categories(tx, memory.owner));
        assert_eq!(categories.len(), 2);
        assert_eq!((categories[0].facts, categories[0].is_crowded()), (8, false));
        assert!((categories[0].signal - 128.0_f64.sqrt()).abs() < 1e-12);
    });
}
