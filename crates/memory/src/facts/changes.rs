//! Writing: a fact comes, changes or goes with everything that leads to it, in one transaction.

use mainstay_store::{OwnerId, WriteTx, params};

use super::bank::{self, BankChange};
use super::fact::{self, FactId, NewFact, Stored};
use super::prepared::{Prepared, both_ways};
use super::terms::{self, Term};
use crate::Result;
use crate::entities;

/// Trust in hundredths: where a fact begins, and what feedback does to it.
const TRUST: i64 = 50;
const HELPFUL: i64 = 5;
const UNHELPFUL: i64 = -10;

/// What became of a fact that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is remembered now.
    New(FactId),
    /// The same text, or the same key, was there.
    Known(FactId),
}

impl Added {
    /// The fact, new or known.
    pub fn id(self) -> FactId {
        match self {
            Added::New(id) | Added::Known(id) => id,
        }
    }
}

/// What is to be different about a fact; the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Another text; its entities are found anew unless they are given.
    pub content: Option<String>,
    /// Another category.
    pub category: Option<String>,
    /// Other tags.
    pub tags: Option<Vec<String>>,
    /// Other entities.
    pub entities: Option<Vec<String>>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The fact is different now.
    Made,
    /// The fact was like that.
    Same,
    /// Another fact has that text; nothing was changed.
    Taken(FactId),
    /// There is no such fact.
    Absent,
}

/// How an imported fact differs from a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) trust: i64,
    pub(super) helpful: i64,
    pub(super) unhelpful: i64,
    pub(super) created_at: i64,
    pub(super) changed_at: i64,
}

/// Remembers a fact, unless its text or its key is known.
pub fn add(tx: &mut WriteTx<'_>, owner: OwnerId, fact: &NewFact) -> Result<Added> {
    add_prepared(tx, owner, &Prepared::new(fact)?)
}

/// Remembers a fact that was prepared before the transaction.
pub fn add_prepared(tx: &mut WriteTx<'_>, owner: OwnerId, fact: &Prepared) -> Result<Added> {
    let now = tx.now();
    let standing =
        Standing { trust: TRUST, helpful: 0, unhelpful: 0, created_at: now, changed_at: now };
    add_standing(tx, owner, fact, standing)
}

/// Remembers a fact with the standing that it has elsewhere.
pub(super) fn add_standing(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    fact: &Prepared,
    standing: Standing,
) -> Result<Added> {
    // All writers of an owner's facts change the same number, the same sums and often the same
    // lists.
    tx.in_turn()?;
    if let Some(known) = known(tx, owner, fact)? {
        return Ok(Added::Known(known));
    }
    let number: i64 = tx.query_one(
        "INSERT INTO fact_numbers (owner, last) VALUES (?1, 1)
         ON CONFLICT (owner) DO UPDATE SET last = fact_numbers.last + 1 RETURNING last",
        params![owner],
        |row| row.get(0),
    )?;
    tx.execute(
        "INSERT INTO facts (owner, number, category, content, digest, tags, entities, source, key,
             trust, helpful, unhelpful, created_at, changed_at, vector)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            owner,
            number,
            fact.category,
            fact.content,
            fact.digest,
            json(&fact.tags),
            json(&fact.entities),
            fact.source,
            fact.key,
            standing.trust,
            standing.helpful,
            standing.unhelpful,
            standing.created_at,
            standing.changed_at,
            fact.vector.bytes().as_slice()
        ],
    )?;
    for (kind, term) in fact.terms() {
        terms::insert(tx, owner, Term { kind, text: &term }, number)?;
    }
    insert_aliases(tx, owner, &fact.aliases, number)?;
    bank::apply(tx, owner, &fact.category, BankChange::Add, &fact.vector, fact.word_count())?;
    Ok(Added::New(FactId::new(number)))
}

/// Changes a fact's text, category, tags or entities.
pub fn update(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    id: FactId,
    change: &Change,
) -> Result<Changed> {
    tx.in_turn()?;
    let Some(old) = fact::one(tx, owner, id)? else { return Ok(Changed::Absent) };
    let new = Prepared::new(&changed(&old, change))?;
    let same_text = new.content == old.fact.content;
    if same_text
        && new.category == old.fact.category
        && new.tags == old.fact.tags
        && new.entities == old.fact.entities
    {
        return Ok(Changed::Same);
    }
    if !same_text && let Some(other) = with_digest(tx, owner, &new.digest)? {
        return Ok(Changed::Taken(other));
    }
    let changed_at = if same_text { old.fact.changed_at } else { tx.now() };
    tx.execute(
        "UPDATE facts SET category = ?3, content = ?4, digest = ?5, tags = ?6, entities = ?7,
             changed_at = ?8, vector = ?9
         WHERE owner = ?1 AND number = ?2",
        params![
            owner,
            id,
            new.category,
            new.content,
            new.digest,
            json(&new.tags),
            json(&new.entities),
            changed_at,
            new.vector.bytes().as_slice()
        ],
    )?;
    let (before, after) = (old.terms(), new.terms());
    for (kind, term) in before.difference(&after) {
        terms::remove(tx, owner, Term { kind: *kind, text: term }, id.number())?;
    }
    for (kind, term) in after.difference(&before) {
        terms::insert(tx, owner, Term { kind: *kind, text: term }, id.number())?;
    }
    if !same_text {
        remove_aliases(tx, owner, &old)?;
        insert_aliases(tx, owner, &new.aliases, id.number())?;
    }
    bank::apply(tx, owner, &old.fact.category, BankChange::Remove, &old.vector, old.word_count())?;
    bank::apply(tx, owner, &new.category, BankChange::Add, &new.vector, new.word_count())?;
    Ok(Changed::Made)
}

/// Forgets a fact; answers whether there was one.
pub fn forget(tx: &mut WriteTx<'_>, owner: OwnerId, id: FactId) -> Result<bool> {
    tx.in_turn()?;
    let Some(old) = fact::one(tx, owner, id)? else { return Ok(false) };
    tx.execute("DELETE FROM facts WHERE owner = ?1 AND number = ?2", params![owner, id])?;
    for (kind, term) in old.terms() {
        terms::remove(tx, owner, Term { kind, text: &term }, id.number())?;
    }
    remove_aliases(tx, owner, &old)?;
    bank::apply(tx, owner, &old.fact.category, BankChange::Remove, &old.vector, old.word_count())?;
    Ok(true)
}

/// Moves the trust in a fact by what somebody made of it; answers the trust, if there is such a
/// fact.
pub fn feedback(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    id: FactId,
    helpful: bool,
) -> Result<Option<f64>> {
    let found: Option<i64> = tx.query_opt(
        "SELECT trust FROM facts WHERE owner = ?1 AND number = ?2",
        params![owner, id],
        |row| row.get(0),
    )?;
    let Some(trust) = found else { return Ok(None) };
    let trust = (trust + if helpful { HELPFUL } else { UNHELPFUL }).clamp(0, 100);
    tx.execute(
        "UPDATE facts SET trust = ?3, helpful = helpful + ?4, unhelpful = unhelpful + ?5
         WHERE owner = ?1 AND number = ?2",
        params![owner, id, trust, helpful, !helpful],
    )?;
    Ok(Some(trust as f64 / 100.0))
}

/// The fact as it is to be.
fn changed(old: &Stored, change: &Change) -> NewFact {
    let kept = &old.fact;
    let entities = match (&change.entities, &change.content) {
        (Some(given), _) => Some(given.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(kept.entities.clone()),
    };
    NewFact {
        content: change.content.clone().unwrap_or_else(|| kept.content.clone()),
        category: change.category.clone().unwrap_or_else(|| kept.category.clone()),
        tags: change.tags.clone().unwrap_or_else(|| kept.tags.clone()),
        entities,
        source: kept.source.clone(),
        key: kept.key.clone(),
    }
}

fn known(tx: &mut WriteTx<'_>, owner: OwnerId, fact: &Prepared) -> Result<Option<FactId>> {
    if let Some(key) = &fact.key {
        let found = tx.query_opt(
            "SELECT number FROM facts WHERE owner = ?1 AND key = ?2",
            params![owner, key],
            |row| row.get(0),
        )?;
        if found.is_some() {
            return Ok(found);
        }
    }
    with_digest(tx, owner, &fact.digest)
}

fn with_digest(tx: &mut WriteTx<'_>, owner: OwnerId, digest: &[u8]) -> Result<Option<FactId>> {
    let found = tx.query_opt(
        "SELECT number FROM facts WHERE owner = ?1 AND digest = ?2",
        params![owner, digest],
        |row| row.get(0),
    )?;
    Ok(found)
}

fn insert_aliases(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    aliases: &[(String, String)],
    number: i64,
) -> Result<()> {
    for (name, other) in both_ways(aliases) {
        tx.execute(
            "INSERT INTO fact_aliases (owner, name, other, fact) VALUES (?1, ?2, ?3, ?4)",
            params![owner, name, other, number],
        )?;
    }
    Ok(())
}

fn remove_aliases(tx: &mut WriteTx<'_>, owner: OwnerId, old: &Stored) -> Result<()> {
    for (name, other) in both_ways(&entities::found(&old.fact.content).aliases) {
        tx.execute(
            "DELETE FROM fact_aliases
             WHERE owner = ?1 AND name = ?2 AND other = ?3 AND fact = ?4",
            params![owner, name, other, old.fact.id],
        )?;
    }
    Ok(())
}

/// A list of texts as it is stored.
fn json(list: &[String]) -> String {
    serde_json::Value::from(list.to_vec()).to_string()
}
