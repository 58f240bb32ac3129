//! Facts that say different things about the same entities, which is worth a look.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_store::{OwnerId, ReadTx};

use super::fact::{self, Fact};
use super::listing;
use super::questions::Within;
use crate::Result;
use crate::entities::folded;
use crate::vector::{self, Compact};

/// Two facts about the same that are unlike each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    /// The newer one.
    pub newer: Fact,
    /// The older one.
    pub older: Fact,
    /// `overlap` · (1 − (`similarity` + 1) / 2); the order of an answer.
    pub score: f64,
    /// The share of common entities among those of both.
    pub overlap: f64,
    /// The similarity of what they say.
    pub similarity: f64,
}

/// The newest facts, which are compared with each other.
const COMPARED: usize = 500;
const LEAST_OVERLAP: f64 = 0.3;
const LEAST_SCORE: f64 = 0.3;

/// Pairs among the newest 500 facts that may contradict each other, the likeliest first.
///
/// Texts are compared without their entities: those are what the two have in common.
pub fn contradictions(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    within: &Within,
) -> Result<Vec<Contradiction>> {
    let facts = newest(tx, owner, within)?;
    let entities: Vec<BTreeSet<String>> =
        facts.iter().map(|fact| fact.entities.iter().map(|name| folded(name)).collect()).collect();
    let mut texts: BTreeMap<usize, Compact> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (newer, older) in sharing(&entities) {
        let both = entities[newer].intersection(&entities[older]).count() as f64;
        let any = entities[newer].union(&entities[older]).count() as f64;
        let overlap = both / any;
        if overlap < LEAST_OVERLAP {
            continue;
        }
        for at in [newer, older] {
            texts.entry(at).or_insert_with(|| Compact::of(&vector::text(&facts[at].content)));
        }
        let similarity = texts[&newer].similarity(&texts[&older]);
        let score = overlap * (1.0 - f64::midpoint(similarity, 1.0));
        if score >= LEAST_SCORE {
            pairs.push((score, overlap, similarity, newer, older));
        }
    }
    pairs.sort_by(|one, other| {
        other.0.total_cmp(&one.0).then((one.3, one.4).cmp(&(other.3, other.4)))
    });
    pairs.truncate(within.limit);
    let found = pairs.into_iter().map(|(score, overlap, similarity, newer, older)| Contradiction {
        newer: facts[newer].clone(),
        older: facts[older].clone(),
        score,
        overlap,
        similarity,
    });
    Ok(found.collect())
}

/// The facts to compare, newest first.
fn newest(tx: &mut ReadTx<'_>, owner: OwnerId, within: &Within) -> Result<Vec<Fact>> {
    let stored = match listing::with(tx, owner, within.category.as_deref(), None)? {
        None => fact::newest(tx, owner, i64::MAX, COMPARED)?,
        Some(mut numbers) => {
            numbers.drain(..numbers.len().saturating_sub(COMPARED));
            fact::stored(tx, owner, &numbers)?
        }
    };
    let mut facts: Vec<Fact> = stored.into_iter().map(|stored| stored.fact).collect();
    facts.retain(|fact| fact.trust >= within.min_trust);
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.id));
    Ok(facts)
}

/// Positions of facts that have an entity in common, each pair once.
fn sharing(entities: &[BTreeSet<String>]) -> BTreeSet<(usize, usize)> {
    let mut with: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, names) in entities.iter().enumerate() {
        for name in names {
            with.entry(name).or_default().push(at);
        }
    }
    let mut pairs = BTreeSet::new();
    for facts in with.into_values() {
        for (index, newer) in facts.iter().enumerate() {
            pairs.extend(facts[index + 1..].iter().map(|older| (*newer, *older)));
        }
    }
    pairs
}
