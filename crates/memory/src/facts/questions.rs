//! What vectors are asked about entities: in which role does a fact hold this name?
//!
//! To unbind a name and a role from a fact's vector and to compare what is left with nothing at all
//! (every angle zero) is to compare the fact with the name bound to the role; so one comparison of
//! two stored vectors answers a question. Facts without the name are unrelated to it, within noise;
//! they are left out by the terms, which say exactly which facts have it.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_store::{OwnerId, ReadTx};

use super::bank;
use super::fact::{self, Fact, Glance};
use super::listing::{self, common};
use super::names;
use super::terms::{self, Kind};
use crate::vector::{self, Compact, DIMENSION};
use crate::{Result, words};

/// Which facts may answer.
#[derive(Clone, Debug)]
pub struct Within {
    /// Only of this category.
    pub category: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only facts trusted at least so much.
    pub min_trust: f64,
}

impl Default for Within {
    fn default() -> Self {
        Self { category: None, limit: 10, min_trust: 0.3 }
    }
}

/// A fact that answers a question about entities.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The fact.
    pub fact: Fact,
    /// (`similarity` + 1) / 2 · trust; the order of an answer.
    pub score: f64,
    /// How strongly the fact's vector holds the entity: about 0.6 for a fact that is about nothing
    /// else, less the more it is about, around 0 for none.
    pub similarity: f64,
}

/// A category as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// How many facts it has.
    pub facts: i64,
    /// How far one of its facts stands out of the noise of the others: √(1024/facts).
    pub signal: f64,
}

impl Category {
    /// Whether the bank holds so many facts that what it says about one entity is mostly noise.
    pub fn is_crowded(&self) -> bool {
        self.facts > DIMENSION as i64 / 4
    }
}

/// The most facts that are compared, the newest of those that have the name.
const COMPARED: usize = 1000;

/// What there is about an entity: facts that hold it as one of theirs.
pub fn probe(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    entity: &str,
    within: &Within,
) -> Result<Vec<Answer>> {
    let asked = EntityCandidates::in_entities(tx, owner, entity)?;
    answers(tx, owner, &[asked], within)
}

/// What is connected with an entity: facts that hold it as one of theirs, or in their words.
pub fn related(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    entity: &str,
    within: &Within,
) -> Result<Vec<Answer>> {
    let asked = EntityCandidates::in_either_role(tx, owner, entity)?;
    answers(tx, owner, &[asked], within)
}

/// What connects all of these entities: a fact is as similar as it is to the least of them.
pub fn reason(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    entities: &[&str],
    within: &Within,
) -> Result<Vec<Answer>> {
    let mut asked = Vec::new();
    for entity in entities {
        asked.push(EntityCandidates::in_either_role(tx, owner, entity)?);
    }
    answers(tx, owner, &asked, within)
}

/// The categories of an owner.
pub fn categories(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Vec<Category>> {
    Ok(bank::sizes(tx, owner)?.into_iter().map(|(name, size)| category(name, size.facts)).collect())
}

/// Which categories are about an entity, by the similarity of their banks, most similar first.
pub fn about(tx: &mut ReadTx<'_>, owner: OwnerId, entity: &str) -> Result<Vec<(Category, f64)>> {
    let keys: Vec<_> =
        names::group(tx, owner, entity)?.iter().map(|name| vector::entity(name)).collect();
    let mut about = Vec::new();
    for (name, bank) in bank::all(tx, owner)? {
        let bundle = bank.vector();
        let similar = keys.iter().map(|key| vector::similarity(&bundle, key));
        about.push((category(name, bank.facts), similar.fold(-1.0, f64::max)));
    }
    about.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(about)
}

fn category(name: String, facts: i64) -> Category {
    let signal = (DIMENSION as f64 / (facts as f64).max(1.0)).sqrt();
    Category { name, facts, signal }
}

/// One entity: the facts that may hold it, and the vectors that say how strongly they do.
struct EntityCandidates {
    numbers: Vec<i64>,
    keys: Vec<Compact>,
}

impl EntityCandidates {
    fn in_entities(tx: &mut ReadTx<'_>, owner: OwnerId, entity: &str) -> Result<Self> {
        let names = names::group(tx, owner, entity)?;
        let lists = terms::lists(tx, owner, Kind::Entity, &names)?;
        let numbers: BTreeSet<i64> = lists.into_values().flatten().collect();
        let keys = names.iter().map(|name| Compact::of(&vector::entity(name))).collect();
        Ok(Self { numbers: numbers.into_iter().collect(), keys })
    }

    fn in_either_role(tx: &mut ReadTx<'_>, owner: OwnerId, entity: &str) -> Result<Self> {
        let mut asked = Self::in_entities(tx, owner, entity)?;
        let mut numbers: BTreeSet<i64> = asked.numbers.into_iter().collect();
        for name in names::group(tx, owner, entity)? {
            let words: BTreeSet<String> = words::terms(&name).into_iter().collect();
            let words: Vec<String> = words.into_iter().collect();
            let lists = terms::lists(tx, owner, Kind::Word, &words)?;
            if lists.len() == words.len() {
                let all = lists.into_values().reduce(|one, other| common(&one, &other));
                numbers.extend(all.unwrap_or_default());
            }
            asked.keys.push(Compact::of(&vector::content(&name)));
        }
        Ok(Self { numbers: numbers.into_iter().collect(), ..asked })
    }

    /// How strongly a fact holds the entity, under the name and in the role where it does most.
    fn similarity(&self, glance: &Glance<'_>) -> Result<f64> {
        let mut most = -1.0_f64;
        for key in &self.keys {
            most = most.max(glance.similarity(key)?);
        }
        Ok(most)
    }
}

fn answers(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    asked: &[EntityCandidates],
    within: &Within,
) -> Result<Vec<Answer>> {
    let lists = asked.iter().map(|asked| asked.numbers.clone());
    let allowed = listing::with(tx, owner, within.category.as_deref(), None)?;
    let all = lists.reduce(|one, other| common(&one, &other)).unwrap_or_default();
    let mut numbers = allowed.map_or(all.clone(), |allowed| common(&all, &allowed));
    numbers.drain(..numbers.len().saturating_sub(COMPARED));
    let mut judged = Vec::new();
    fact::glance(tx, owner, &numbers, |glance| {
        if glance.trust < within.min_trust {
            return Ok(());
        }
        let mut least = 1.0_f64;
        for asked in asked {
            least = least.min(asked.similarity(glance)?);
        }
        judged.push((f64::midpoint(least, 1.0) * glance.trust, glance.number, least));
        Ok(())
    })?;
    judged.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| other.1.cmp(&one.1)));
    judged.truncate(within.limit);
    let chosen: Vec<i64> = judged.iter().map(|(_, number, _)| *number).collect();
    let mut facts: BTreeMap<i64, Fact> = BTreeMap::new();
    for stored in fact::stored(tx, owner, &chosen)? {
        facts.insert(stored.fact.id.number(), stored.fact);
    }
    let answers = judged.into_iter().filter_map(|(score, number, similarity)| {
        Some(Answer { fact: facts.remove(&number)?, score, similarity })
    });
    Ok(answers.collect())
}
