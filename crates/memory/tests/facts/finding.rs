//! A search finds what shares words, names or tags with the question, the best first.

use std::time::Duration;

use mainstay_memory::facts::{self, FoundFact, Line, NewFact, Query};

use crate::memory::{new, on_both};

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
        for FoundFact { fact, score, parts } in found {
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
fn a_name_is_understood_in_the_genitive_and_whatever_names_were_given() {
    on_both(|memory| {
        let given = NewFact {
            entities: Some(vec!["Robert Smith".to_owned()]),
            ..new("Robert Smith aka Bobby runs the servers")
        };
        memory.write(|tx| facts::add(tx, memory.owner, &given));
        memory.add("Ask Robert Smith for access");
        for question in ["what is bobby's room?", "Where is Bobby’s?", "bobby"] {
            let found = memory.found(question);
            assert!(found.contains(&"Ask Robert Smith for access".to_owned()), "{question}");
        }
    });
}

#[test]
fn words_are_found_in_any_case_and_number() {
    on_both(|memory| {
        memory.add("The red BOX is in the cellar of every city");
        for question in ["boxes", "Box", "cities", "RED"] {
            assert_eq!(memory.found(question).len(), 1, "{question}");
        }
    });
}

#[test]
fn a_fact_of_any_time_has_an_age() {
    on_both(|memory| {
        for at in [i64::MIN, i64::MAX] {
            let line = format!(r#"{{"content": "tea {at}", "created_at": {at}}}"#);
            let line: Line = line.parse().unwrap();
            memory.write(|tx| facts::import(tx, memory.owner, &line));
        }
        let half_life = Some(Duration::from_secs(86_400));
        let found = memory.search(&Query { half_life, ..Query::new("tea", 1) });
        let fresh: Vec<f64> = found.iter().map(|found| found.parts.freshness).collect();
        assert_eq!(fresh, [1.0, 0.0]);
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

#[test]
fn a_question_of_any_length_finds_what_it_begins_with() {
    on_both(|memory| {
        memory.add("Ada prefers tabs in every editor");
        let long = format!("which tabs? {}", "and many other words 日本語 ".repeat(20_000));
        assert_eq!(memory.found(&long), ["Ada prefers tabs in every editor"]);
        assert_eq!(memory.found(""), [""; 0]);
        assert_eq!(memory.search(&Query { limit: 0, ..Query::new("tabs", 0) }), []);
    });
}

#[test]
fn a_question_stays_within_a_category_however_many_facts_others_have() {
    on_both(|memory| {
        memory.write(|tx| {
            for number in 0..150 {
                let fact = NewFact { category: "many".to_owned(), ..new(&format!("tea {number}")) };
                facts::add(tx, memory.owner, &fact)?;
            }
            Ok(())
        });
        memory.add_to("few", "a rather long sentence that has the word tea somewhere in it");
        let query = Query { category: Some("few".to_owned()), ..Query::new("tea", 0) };
        assert_eq!(memory.search(&query).len(), 1);
        let all = Query { limit: 1000, ..Query::new("tea", 0) };
        assert_eq!(memory.search(&all).len(), 151);
    });
}
