//! Which of the entries that match come first.
//!
//! An engine answers the newest matches and no more than can be weighed in a few milliseconds: a word
//! that is in every second entry must not cost a look at half a million. Those are weighed by how
//! often and how closely they say what was asked (BM25), the same way on both engines.

use std::collections::{BTreeMap, HashSet};

use mainstay_store::{OwnerId, ReadTx, params};

use super::engine::{self, Candidate, Engine, LOOKED_THROUGH, Wanted};
use super::query::{Query, Term};
use super::{
    Answer, Asked, Excerpt, Filter, Hit, Sort, Who, excerpts, folding, index, snippet, text,
};
use crate::{Result, SessionId};

/// Matches that are weighed against each other.
const WEIGHED: i64 = 200;
/// Where some words are enough, so many of the rarest are looked for.
const RAREST: usize = 6;
/// A word that is in more entries than this is as common as any.
const COMMON: i64 = 500;
/// Characters of the neighbours that are shown.
const NEIGHBOUR: usize = 200;
/// Fewer characters are in every name.
const SHORTEST_FRAGMENT: usize = 3;

/// How much a repetition counts, and the length of a text.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// The bytes of a text of usual length.
const USUAL: f64 = 800.0;

/// A match with its weight.
struct Weighed {
    candidate: Candidate,
    who: Who,
    text: String,
    score: f64,
}

pub(super) fn look(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    asked: &Asked,
    query: &Query,
) -> Result<Answer> {
    let mut answer = Answer::default();
    let Some(bounds) = bounds(tx, &asked.filter)? else { return Ok(answer) };
    let search = Search { engine: engine::of(tx), owner, asked, query, bounds };
    let terms: Vec<&Term> = query.terms.iter().collect();
    // Between the matches of a single word its rarity makes no difference.
    let mut rarity = match terms.len() {
        1 => vec![COMMON],
        _ => search.rarity(tx)?,
    };
    let mut fragments: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    if !query.any {
        found = search.matches(tx, &terms, &[], WEIGHED)?;
        if found.is_empty() {
            rarity = search.rarity(tx)?;
            // What is no word anywhere may be a piece of a name.
            let (pieces, words) = search.pieces(&terms, &rarity);
            if !pieces.is_empty() {
                found = search.matches(tx, &words, &pieces, WEIGHED)?;
                fragments = pieces;
                answer.shortcoming = search.engine.shortcoming(tx)?;
            }
        }
    }
    let mut weighed = search.weighed(found, &rarity, &fragments);
    if weighed.is_empty() && query.terms.len() > 1 {
        answer.partly = !query.any;
        weighed = search.weighed(search.any(tx, &rarity)?, &rarity, &[]);
    }
    answer.capped = search.is_capped(tx, weighed.len(), &rarity)?;
    sort(&mut weighed, asked.sort);
    let mut known = HashSet::new();
    let mut lineage = Lineage::default();
    for hit in weighed {
        if answer.hits.len() == asked.limit {
            break;
        }
        let Candidate { session, seq, .. } = hit.candidate;
        // A fork has copies of what it shares with its parent.
        if known.insert((lineage.origin(tx, session, seq)?, seq)) {
            answer.hits.extend(shown(tx, hit, &query.terms)?);
        }
    }
    Ok(answer)
}

struct Search<'a> {
    engine: &'static dyn Engine,
    owner: OwnerId,
    asked: &'a Asked,
    query: &'a Query,
    bounds: (i64, i64),
}

impl<'a> Search<'a> {
    fn matches(
        &self,
        tx: &mut ReadTx<'_>,
        terms: &[&Term],
        fragments: &[&str],
        most: i64,
    ) -> Result<Vec<Candidate>> {
        let wanted = Wanted {
            owner: self.owner,
            filter: &self.asked.filter,
            terms,
            without: &self.query.without,
            fragments,
            bounds: self.bounds,
            oldest_first: self.asked.sort == Sort::Oldest,
            most,
        };
        self.engine.matches(tx, &wanted)
    }

    /// In how many entries each term is, as far as that matters.
    fn rarity(&self, tx: &mut ReadTx<'_>) -> Result<Vec<i64>> {
        let terms = self.query.terms.iter();
        terms.map(|term| self.engine.count(tx, self.owner, term, COMMON)).collect()
    }

    /// The terms that are in no entry as words, and the others. Without a piece, nothing.
    fn pieces(&self, terms: &[&'a Term], rarity: &[i64]) -> (Vec<&'a str>, Vec<&'a Term>) {
        let mut pieces = Vec::new();
        let mut words = Vec::new();
        for (term, count) in terms.iter().zip(rarity) {
            let long = term.literal.chars().count() >= SHORTEST_FRAGMENT;
            if *count == 0 && long && !term.unspaced {
                pieces.push(term.literal.as_str());
            } else {
                words.push(*term);
            }
        }
        (pieces, words)
    }

    /// The matches of some of the terms, the rarest.
    fn any(&self, tx: &mut ReadTx<'_>, rarity: &[i64]) -> Result<Vec<Candidate>> {
        let mut terms: Vec<(i64, &Term)> =
            rarity.iter().copied().zip(&self.query.terms).filter(|(count, _)| *count > 0).collect();
        terms.sort_by_key(|(count, _)| *count);
        // What is everywhere says nothing where something else does.
        if terms.first().is_some_and(|(count, _)| *count < COMMON) {
            terms.retain(|(count, _)| *count < COMMON);
        }
        let mut found: BTreeMap<i64, Candidate> = BTreeMap::new();
        let most = WEIGHED / 2;
        for (_, term) in terms.into_iter().take(RAREST) {
            for candidate in self.matches(tx, &[term], &[], most)? {
                found.insert(candidate.id, candidate);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Whether there may be matches that the filters let pass beyond those that were looked through.
    fn is_capped(&self, tx: &mut ReadTx<'_>, found: usize, rarity: &[i64]) -> Result<bool> {
        let Filter { workspace, who, .. } = &self.asked.filter;
        let narrow = workspace.is_some() || who.is_some();
        let few = i64::try_from(found).is_ok_and(|found| found < WEIGHED);
        if !(narrow && few && rarity.iter().all(|count| *count >= COMMON)) {
            return Ok(false);
        }
        for term in &self.query.terms {
            if self.engine.count(tx, self.owner, term, LOOKED_THROUGH)? < LOOKED_THROUGH {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn weighed(&self, found: Vec<Candidate>, rarity: &[i64], fragments: &[&str]) -> Vec<Weighed> {
        found
            .into_iter()
            .filter_map(|mut candidate| {
                let (who, text) = text::of(&std::mem::take(&mut candidate.body))?;
                let folded = folding::folded(&text);
                // An index of trigrams answers what may have a piece; the text decides.
                if !fragments.iter().all(|fragment| folded.contains(fragment)) {
                    return None;
                }
                let score = self.score(&folded, who, rarity);
                Some(Weighed { candidate, who, text, score })
            })
            .collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "a weight need not be exact")]
    fn score(&self, folded: &str, who: Who, rarity: &[i64]) -> f64 {
        let length = 1.0 - LENGTH + LENGTH * folded.len() as f64 / USUAL;
        let mut score = 0.0;
        for (term, count) in self.query.terms.iter().zip(rarity) {
            let mut often = term.places(folded, 32).len() as f64;
            // A part of a name is less than a word.
            if often == 0.0 && folded.contains(term.literal.as_str()) {
                often = 0.5;
            }
            let weight = (2.0 + COMMON as f64 / (*count as f64 + 1.0)).ln();
            score += weight * often * (SATURATION + 1.0) / (often + SATURATION * length);
        }
        if self.query.terms.len() > 1 && folded.contains(&self.query.literal) {
            score *= 1.3;
        }
        match who {
            Who::User | Who::Assistant => score,
            // What people and models say is meant to be read; what tools print is often long.
            Who::Tool => score * 0.8,
            // What the harness tells (a summary, a memory) was mostly said elsewhere.
            Who::Notice => score * 0.7,
        }
    }
}

fn sort(weighed: &mut [Weighed], sort: Sort) {
    weighed.sort_by(|one, other| {
        let (a, b) = (&one.candidate, &other.candidate);
        let order = match sort {
            Sort::Relevance => other.score.total_cmp(&one.score).then(b.at.cmp(&a.at)),
            Sort::Newest => b.at.cmp(&a.at),
            Sort::Oldest => a.at.cmp(&b.at),
        };
        // Of copies, the one that was there first.
        let earlier = match sort {
            Sort::Oldest => a.seq.cmp(&b.seq),
            Sort::Relevance | Sort::Newest => b.seq.cmp(&a.seq),
        };
        order.then(earlier).then(a.session.cmp(&b.session))
    });
}

/// The first and the last document that the filters can let pass; `None` where there is none.
fn bounds(tx: &mut ReadTx<'_>, filter: &Filter) -> Result<Option<(i64, i64)>> {
    let mut bounds = (0, i64::MAX);
    if filter.since.is_some() || filter.until.is_some() {
        let (since, until) = (filter.since.unwrap_or(i64::MIN), filter.until.unwrap_or(i64::MAX));
        let spans: (Option<i64>, Option<i64>) = tx.query_one(
            "SELECT min(span), max(span) FROM cache_search_spans
             WHERE last_at >= ?1 AND first_at < ?2",
            params![since, until],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let (Some(first), Some(last)) = spans else { return Ok(None) };
        bounds = (first * index::SPAN, (last + 1) * index::SPAN - 1);
    }
    if let Some(session) = filter.session {
        let documents: (Option<i64>, Option<i64>) = tx.query_one(
            "SELECT min(d.id), max(d.id) FROM cache_search_documents d
             JOIN cache_search_sessions i ON i.number = d.session WHERE i.session = ?1",
            params![session],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let (Some(first), Some(last)) = documents else { return Ok(None) };
        bounds = (bounds.0.max(first), bounds.1.min(last));
    }
    Ok((bounds.0 <= bounds.1).then_some(bounds))
}

/// Where sessions come from.
#[derive(Default)]
struct Lineage(BTreeMap<SessionId, Option<(SessionId, i64)>>);

impl Lineage {
    /// The session that an entry was first written in.
    fn origin(&mut self, tx: &mut ReadTx<'_>, session: SessionId, seq: i64) -> Result<SessionId> {
        let mut origin = session;
        loop {
            let parent = match self.0.get(&origin) {
                Some(parent) => *parent,
                None => {
                    let parent = tx
                        .query_opt(
                            "SELECT parent, parent_seq FROM sessions WHERE id = ?1",
                            params![origin],
                            |row| Ok(row.get::<Option<SessionId>>(0)?.zip(row.get(1)?)),
                        )?
                        .flatten();
                    self.0.insert(origin, parent);
                    parent
                }
            };
            // A fork is younger than its parent, so this ends.
            match parent {
                Some((parent, shared)) if seq <= shared && parent < origin => origin = parent,
                _ => return Ok(origin),
            }
        }
    }
}

/// A match as it is shown.
fn shown(tx: &mut ReadTx<'_>, hit: Weighed, terms: &[Term]) -> Result<Option<Hit>> {
    let Weighed { candidate: Candidate { session, seq, at, .. }, who, text, score } = hit;
    let about: Option<(String, String)> = tx.query_opt(
        "SELECT title, workspace FROM sessions WHERE id = ?1",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let Some((title, workspace)) = about else { return Ok(None) };
    let near = excerpts(tx, session, (seq - 1, seq + 1), NEIGHBOUR)?;
    let neighbour = |wanted: i64| -> Option<Excerpt> {
        near.iter().find(|excerpt| excerpt.seq == wanted).cloned()
    };
    Ok(Some(Hit {
        session,
        title,
        workspace,
        seq,
        at,
        who,
        score,
        snippet: snippet::of(&text, terms),
        before: neighbour(seq - 1),
        after: neighbour(seq + 1),
    }))
}
