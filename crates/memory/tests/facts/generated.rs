//! Whatever is done in whatever order: what leads to facts is what the facts say, and a plain list of
//! texts agrees.

use std::collections::BTreeMap;

use mainstay_memory::facts::{self, Added, Change, Changed, FactId};
use mainstay_store::Location;
use proptest::prelude::*;

use crate::memory::{Memory, new};

#[derive(Clone, Debug)]
enum MemoryStep {
    Add { text: usize, category: usize },
    Rewrite { fact: usize, text: usize },
    Move { fact: usize, category: usize },
    Forget { fact: usize },
    Feedback { fact: usize, helpful: bool },
}

const TEXTS: [&str; 8] = [
    "Ada Lovelace likes tea",
    "tea is green",
    "Robert Smith aka Bob likes tea",
    "the \"green door\" of Robert Smith",
    "tea tea tea",
    "東京のお茶",
    "…",
    "nothing of the kind",
];
const CATEGORIES: [&str; 3] = ["general", "taste", "place"];

fn step() -> impl Strategy<Value = MemoryStep> {
    let (text, category, fact) = (0..TEXTS.len(), 0..CATEGORIES.len(), 0..10_usize);
    prop_oneof![
        4 => (text.clone(), category.clone()).prop_map(|(text, category)| MemoryStep::Add { text, category }),
        2 => (fact.clone(), text).prop_map(|(fact, text)| MemoryStep::Rewrite { fact, text }),
        2 => (fact.clone(), category).prop_map(|(fact, category)| MemoryStep::Move { fact, category }),
        2 => fact.clone().prop_map(|fact| MemoryStep::Forget { fact }),
        1 => (fact, any::<bool>()).prop_map(|(fact, helpful)| MemoryStep::Feedback { fact, helpful }),
    ]
}

fn run(memory: &Memory, steps: &[MemoryStep]) {
    let mut model: BTreeMap<FactId, (&str, &str)> = BTreeMap::new();
    let nth = |fact: usize| (fact + 1).to_string().parse::<FactId>().unwrap();
    for step in steps {
        match *step {
            MemoryStep::Add { text, category } => {
                let known = model.iter().find(|(_, (content, _))| *content == TEXTS[text]);
                let known = known.map(|(id, _)| *id);
                let fact = facts::NewFact {
                    category: CATEGORIES[category].to_owned(),
                    ..new(TEXTS[text])
                };
                let added = memory.write(|tx| facts::add(tx, memory.owner, &fact));
                assert_eq!(known.map(Added::Known).unwrap_or(Added::New(added.id())), added);
                model.entry(added.id()).or_insert((TEXTS[text], CATEGORIES[category]));
            }
            MemoryStep::Rewrite { fact, text } => {
                let content = Some(TEXTS[text].to_owned());
                let change = Change { content, ..Change::default() };
                let id = nth(fact);
                let changed = memory.write(|tx| facts::update(tx, memory.owner, id, &change));
                let other = model.iter().find(|(_, (content, _))| *content == TEXTS[text]);
                let other = other.map(|(id, _)| *id);
                let expected = match (model.contains_key(&id), other) {
                    (false, _) => Changed::Absent,
                    (true, Some(other)) if other == id => Changed::Same,
                    (true, Some(other)) => Changed::Taken(other),
                    (true, None) => Changed::Made,
                };
                assert_eq!(changed, expected);
                if changed == Changed::Made {
                    model.entry(id).and_modify(|known| known.0 = TEXTS[text]);
                }
            }
            MemoryStep::Move { fact, category } => {
                let category = CATEGORIES[category];
                let change = Change { category: Some(category.to_owned()), ..Change::default() };
                memory.write(|tx| facts::update(tx, memory.owner, nth(fact), &change));
                model.entry(nth(fact)).and_modify(|known| known.1 = category);
            }
            MemoryStep::Forget { fact } => {
                let gone = memory.write(|tx| facts::forget(tx, memory.owner, nth(fact)));
                assert_eq!(gone, model.remove(&nth(fact)).is_some());
            }
            MemoryStep::Feedback { fact, helpful } => {
                let trust =
                    memory.write(|tx| facts::feedback(tx, memory.owner, nth(fact), helpful));
                assert_eq!(trust.is_some(), model.contains_key(&nth(fact)));
            }
        }
        assert_eq!(memory.problems(), [""; 0], "after {step:?}");
    }
    let there = memory.read(|tx| facts::list(tx, memory.owner, &facts::List::default()));
    let there: BTreeMap<FactId, (&str, &str)> = there
        .iter()
        .map(|fact| (fact.id, (fact.content.as_str(), fact.category.as_str())))
        .collect();
    assert_eq!(there, model);
    assert_eq!(memory.read(|tx| facts::count(tx, memory.owner)), model.len() as i64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_steps_leave_facts_and_what_leads_to_them_in_agreement(
        steps in prop::collection::vec(step(), 1..20)
    ) {
        let directory = tempfile::tempdir().unwrap();
        run(&Memory::open(&Location::file(directory.path().join("store.db"))), &steps);
    }
}

#[test]
fn long_lists_of_facts_are_split_and_come_together_again() {
    crate::memory::on_both(|memory| {
        // More than one chunk of a word, a tag, an entity and a category.
        let fact = |number: i64| facts::NewFact {
            tags: vec!["counted".to_owned()],
            entities: Some(vec!["Everything".to_owned()]),
            ..new(&format!("common number {number}"))
        };
        for start in (1..=300).step_by(50) {
            memory.write(|tx| {
                for number in start..start + 50 {
                    facts::add(tx, memory.owner, &fact(number))?;
                }
                Ok(())
            });
        }
        assert_eq!(memory.problems(), [""; 0]);
        // A word that comes into the middle of a full chunk.
        let id = |number: i64| number.to_string().parse::<FactId>().unwrap();
        let rename = |number: i64, content: &str| {
            let change = Change { content: Some(content.to_owned()), ..Change::default() };
            memory.write(|tx| facts::update(tx, memory.owner, id(number), &change));
        };
        rename(100, "rare");
        rename(257, "rare one");
        rename(100, "common again");
        rename(257, "common once more");
        assert_eq!(memory.problems(), [""; 0]);
        for start in [1, 101, 201] {
            memory.write(|tx| {
                for number in (start..start + 100).filter(|number| *number < 150 || number % 2 == 0)
                {
                    facts::forget(tx, memory.owner, id(number))?;
                }
                Ok(())
            });
        }
        assert_eq!(memory.read(|tx| facts::count(tx, memory.owner)), 75);
    });
}
