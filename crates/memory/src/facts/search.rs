//! Finding facts for a text.
//!
//! Facts that share a term with the text, or name an entity that it names, are candidates: nothing
//! else could be similar, because vectors without a common atom are unrelated. The best of them by
//! the weight of what they share are read and scored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mainstay_store::{OwnerId, ReadTx};

use super::bank::{self, Size};
use super::fact::{self, Fact, Glance};
use super::listing;
use super::names;
use super::terms::{self, Kind};
use crate::vector::{self, Compact};
use crate::{Result, words};

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// In any words.
    pub text: String,
    /// Only in this category.
    pub category: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// Only facts trusted at least so much.
    pub min_trust: f64,
    /// After this time a fact counts half.
    pub half_life: Option<Duration>,
    /// The time from which the age of facts is counted, in milliseconds since 1970.
    pub now: i64,
}

impl Query {
    /// The best five for `text`, of any age.
    pub fn new(text: impl Into<String>, now: i64) -> Self {
        let text = text.into();
        Self { text, category: None, limit: 5, min_trust: 0.3, half_life: None, now }
    }
}

/// A fact that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFact {
    /// The fact.
    pub fact: Fact,
    /// From 0 to 1; the order of an answer.
    pub score: f64,
    /// What the score is made of.
    pub parts: Parts,
}

/// What a score is made of: (0.4 · `words` + 0.3 · `overlap` + 0.3 · (`similarity` + 1) / 2) ·
/// trust · `freshness`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// How well the words fit by BM25, as a share of the best.
    pub words: f64,
    /// The share of common words among all words of both.
    pub overlap: f64,
    /// The similarity of the vectors.
    pub similarity: f64,
    /// 1, or less with age where there is a half-life.
    pub freshness: f64,
}

/// How much of a longer text is looked at: its first characters, of those so many different words,
/// and for the vector so many words. A question is asked with every message, whatever its length.
const CHARACTERS: usize = 4000;
const WORDS: usize = 128;
const VECTOR_WORDS: usize = 64;
/// Candidates that are read for each fact that is wanted, within bounds.
const READ_FOR_EACH: usize = 8;
const FEWEST_READ: usize = 40;
const MOST_READ: usize = 1000;

/// How fast further occurrences of a word count less, and how much a fact's length matters.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The facts that fit best, best first; of equal ones the newer first.
pub fn search(tx: &mut ReadTx<'_>, owner: OwnerId, query: &Query) -> Result<Vec<FoundFact>> {
    let text: String = query.text.chars().take(CHARACTERS).collect();
    let asked = QueryTerms::read(tx, owner, &text)?;
    let candidates = asked.candidates(tx, owner, query)?;
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let words: Vec<&str> = text.split_whitespace().take(VECTOR_WORDS).collect();
    let names = asked.names.iter().map(String::as_str);
    let vector = Compact::of(&vector::fact(&words.join(" "), names));
    let mut judged: Vec<Judged> = Vec::new();
    fact::glance(tx, owner, &candidates, |glance| {
        if glance.trust >= query.min_trust {
            judged.push(asked.judged(query, glance, glance.similarity(&vector)?)?);
        }
        Ok(())
    })?;
    let best = judged.iter().map(|judged| judged.parts.words).fold(0.0, f64::max);
    for judged in &mut judged {
        judged.parts.words = if best > 0.0 { judged.parts.words / best } else { 0.0 };
        judged.score = judged.parts.score() * judged.trust;
    }
    judged.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| other.number.cmp(&one.number))
    });
    judged.truncate(query.limit);
    let numbers: Vec<i64> = judged.iter().map(|judged| judged.number).collect();
    let mut facts: BTreeMap<i64, Fact> = BTreeMap::new();
    for stored in fact::stored(tx, owner, &numbers)? {
        facts.insert(stored.fact.id.number(), stored.fact);
    }
    let found = judged.into_iter().filter_map(|Judged { number, score, parts, .. }| {
        Some(FoundFact { fact: facts.remove(&number)?, score, parts })
    });
    Ok(found.collect())
}

/// A candidate with its score.
struct Judged {
    number: i64,
    trust: f64,
    score: f64,
    parts: Parts,
}

impl Parts {
    fn score(&self) -> f64 {
        let mixed = 0.4 * self.words + 0.3 * self.overlap + 0.3 * (self.similarity + 1.0) / 2.0;
        mixed * self.freshness
    }
}

/// A question with what the store knows about its words.
struct QueryTerms {
    size: Size,
    /// The question's words, each once.
    words: BTreeSet<String>,
    /// The facts with each word.
    lists: BTreeMap<String, Vec<i64>>,
    /// The entities that the question names, with other names they have.
    names: Vec<String>,
    /// The facts of each of these names.
    named: BTreeMap<String, Vec<i64>>,
}

impl QueryTerms {
    fn read(tx: &mut ReadTx<'_>, owner: OwnerId, text: &str) -> Result<Self> {
        let mut words = BTreeSet::new();
        for term in words::terms(text) {
            if words.len() < WORDS {
                words.insert(term);
            }
        }
        let looked_up: Vec<String> = words.iter().cloned().collect();
        let lists = terms::lists(tx, owner, Kind::Word, &looked_up)?;
        let names = names::mentioned(tx, owner, text)?;
        let named = terms::lists(tx, owner, Kind::Entity, &names)?;
        let size = bank::size(tx, owner)?;
        Ok(Self { size, words, lists, names, named })
    }

    /// How much it says that a fact has a term which so many have.
    fn weight(&self, with: usize) -> f64 {
        let with = with as f64;
        (1.0 + (self.size.facts as f64 - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// The numbers of the facts to read.
    fn candidates(&self, tx: &mut ReadTx<'_>, owner: OwnerId, query: &Query) -> Result<Vec<i64>> {
        let lists: Vec<&Vec<i64>> = self.lists.values().chain(self.named.values()).collect();
        let Some(last) = lists.iter().filter_map(|list| list.last()).max() else {
            return Ok(Vec::new());
        };
        // Numbers are dense, so a plain array is smaller and faster than a map.
        let mut weights = vec![0.0_f32; usize::try_from(*last).unwrap_or(0) + 1];
        for list in lists {
            let weight = self.weight(list.len()) as f32;
            for place in list.iter().filter_map(|number| usize::try_from(*number).ok()) {
                weights[place] += weight;
            }
        }
        let mut ranked: Vec<(f32, i64)> =
            match listing::with(tx, owner, query.category.as_deref(), None)? {
                Some(numbers) => {
                    let weighed = numbers.into_iter().filter_map(|number| {
                        let place = usize::try_from(number).ok()?;
                        Some((*weights.get(place)?, number))
                    });
                    weighed.filter(|(weight, _)| *weight > 0.0).collect()
                }
                None => {
                    let weighed = weights.iter().zip(0..).filter(|(weight, _)| **weight > 0.0);
                    weighed.map(|(weight, number)| (*weight, number)).collect()
                }
            };
        let read = (query.limit.saturating_mul(READ_FOR_EACH)).clamp(FEWEST_READ, MOST_READ);
        let better = |one: &(f32, i64), other: &(f32, i64)| {
            other.0.total_cmp(&one.0).then_with(|| other.1.cmp(&one.1))
        };
        if ranked.len() > read {
            ranked.select_nth_unstable_by(read, better);
            ranked.truncate(read);
        }
        let mut numbers: Vec<i64> = ranked.into_iter().map(|(_, number)| number).collect();
        // Neighbours are on one page.
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Everything about a candidate but its place among the others.
    fn judged(&self, query: &Query, glance: &Glance<'_>, similarity: f64) -> Result<Judged> {
        let of_fact = glance.distinct_words()?;
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for word in &of_fact {
            *counts.entry(word).or_default() += 1.0;
        }
        let average = self.size.words as f64 / (self.size.facts as f64).max(1.0);
        let length = 1.0 - LENGTH + LENGTH * of_fact.len() as f64 / average.max(1.0);
        let mut fit = 0.0;
        let mut common = 0;
        for word in &self.words {
            let Some(times) = counts.get(word.as_str()) else { continue };
            common += 1;
            let weight = self.weight(self.lists.get(word).map_or(0, Vec::len));
            fit += weight * times * (SATURATION + 1.0) / (times + SATURATION * length);
        }
        let all = counts.len() + self.words.len() - common;
        let overlap = if all == 0 { 0.0 } else { common as f64 / all as f64 };
        let freshness = freshness(query, glance.changed_at);
        let parts = Parts { words: fit, overlap, similarity, freshness };
        Ok(Judged { number: glance.number, trust: glance.trust, score: 0.0, parts })
    }
}

fn freshness(query: &Query, at: i64) -> f64 {
    let half = query.half_life.map_or(0, |half_life| half_life.as_millis());
    if half == 0 {
        return 1.0;
    }
    let age = query.now.saturating_sub(at).max(0);
    0.5_f64.powf(age as f64 / half as f64)
}
