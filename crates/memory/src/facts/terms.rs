//! Which facts have a term: a word, an entity, a tag, a category.
//!
//! The numbers of a term's facts are kept in chunks of a few hundred bytes, so that adding a fact
//! touches one small row for each of its terms, however many facts there are, and all facts of a
//! common word are in few rows.

use std::collections::BTreeMap;

use mainstay_store::{OwnerId, ReadTx, ToValue, WriteTx, params};

use super::chunk;
use crate::{Error, Result};

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A word of the text or of a tag.
    Word,
    /// The name of an entity, folded.
    Entity,
    /// A whole tag.
    Tag,
    /// A category.
    Category,
}

/// How many terms one statement looks up.
const AT_ONCE: usize = 16;

impl Kind {
    pub(super) fn text(self) -> &'static str {
        match self {
            Kind::Word => "word",
            Kind::Entity => "entity",
            Kind::Tag => "tag",
            Kind::Category => "category",
        }
    }
}

/// One way to facts: a word, an entity, a tag or a category.
#[derive(Clone, Copy)]
pub(super) struct Term<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// Notes that fact `number` has `term`.
pub(super) fn insert(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    term: Term<'_>,
    number: i64,
) -> Result<()> {
    let Some((first, mut numbers)) = around(tx, owner, term, number)? else {
        return put(tx, owner, term, &[number]);
    };
    let Err(place) = numbers.binary_search(&number) else { return Ok(()) };
    if numbers.len() < chunk::FULL {
        numbers.insert(place, number);
        return replace(tx, owner, term, first, &numbers);
    }
    if place == numbers.len() {
        // The usual case, the newest fact: the full chunk stays as it is.
        return put(tx, owner, term, &[number]);
    }
    numbers.insert(place, number);
    let (low, high) = numbers.split_at(numbers.len() / 2);
    replace(tx, owner, term, first, low)?;
    put(tx, owner, term, high)
}

/// Takes fact `number` from the facts of `term`.
pub(super) fn remove(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    term: Term<'_>,
    number: i64,
) -> Result<()> {
    let Some((first, mut numbers)) = around(tx, owner, term, number)? else {
        return Ok(());
    };
    let Ok(place) = numbers.binary_search(&number) else { return Ok(()) };
    numbers.remove(place);
    if place > 0 {
        return replace(tx, owner, term, first, &numbers);
    }
    // The first number is the row's key.
    tx.execute(
        "DELETE FROM fact_terms WHERE owner = ?1 AND kind = ?2 AND term = ?3 AND first = ?4",
        params![owner, term.kind.text(), term.text, first],
    )?;
    if numbers.is_empty() { Ok(()) } else { put(tx, owner, term, &numbers) }
}

/// The facts of each of these terms that has any, ascending.
pub(super) fn lists(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    kind: Kind,
    terms: &[String],
) -> Result<BTreeMap<String, Vec<i64>>> {
    let places: Vec<String> = (3..AT_ONCE + 3).map(|place| format!("?{place}")).collect();
    let sql = format!(
        "SELECT term, first, rest FROM fact_terms
         WHERE owner = ?1 AND kind = ?2 AND term IN ({}) ORDER BY term, first",
        places.join(", ")
    );
    let mut lists: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let name = kind.text();
    for some in terms.chunks(AT_ONCE) {
        let last = &some[some.len() - 1];
        let mut values: Vec<&dyn ToValue> = vec![&owner, &name];
        values.extend((0..AT_ONCE).map(|index| some.get(index).unwrap_or(last) as &dyn ToValue));
        let mut damage = None;
        tx.for_each(&sql, &values, |row| {
            let (term, first): (String, i64) = (row.get(0)?, row.get(1)?);
            let rest = row.value(2)?;
            if !add(lists.entry(term.clone()).or_default(), first, rest) {
                damage = Some(damaged(kind, &term));
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        damage.map_or(Ok(()), Err)?;
    }
    Ok(lists)
}

/// The facts of one term, ascending.
pub(super) fn list(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    kind: Kind,
    term: &str,
) -> Result<Vec<i64>> {
    Ok(lists(tx, owner, kind, &[term.to_owned()])?.remove(term).unwrap_or_default())
}

/// Everything that leads to facts of an owner, by kind and term.
pub(super) fn all(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
) -> Result<BTreeMap<(String, String), Vec<i64>>> {
    let mut all: BTreeMap<(String, String), Vec<i64>> = BTreeMap::new();
    let mut damage = None;
    tx.for_each(
        "SELECT kind, term, first, rest FROM fact_terms WHERE owner = ?1
         ORDER BY kind, term, first",
        params![owner],
        |row| {
            let (kind, term): (String, String) = (row.get(0)?, row.get(1)?);
            let first = row.get(2)?;
            let rest = row.value(3)?;
            let numbers = all.entry((kind, term)).or_default();
            if !add(numbers, first, rest) {
                damage = Some(format!("the chunk of facts that begins with {first}"));
            }
            Ok(std::ops::ControlFlow::Continue(()))
        },
    )?;
    let detail = "its bytes are not a list of numbers".to_owned();
    damage.map_or(Ok(all), |what| Err(Error::Damaged { what, detail }))
}

/// The chunk that has `number`, or would have: its key and its numbers.
fn around(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    term: Term<'_>,
    number: i64,
) -> Result<Option<(i64, Vec<i64>)>> {
    let found = tx.query_opt(
        "SELECT first, rest FROM fact_terms
         WHERE owner = ?1 AND kind = ?2 AND term = ?3 AND first <= ?4
         ORDER BY first DESC LIMIT 1",
        params![owner, term.kind.text(), term.text, number],
        |row| {
            let mut numbers = Vec::new();
            let first: i64 = row.get(0)?;
            Ok(add(&mut numbers, first, row.value(1)?).then_some((first, numbers)))
        },
    )?;
    found.map(|chunk| chunk.ok_or_else(|| damaged(term.kind, term.text))).transpose()
}

fn add(numbers: &mut Vec<i64>, first: i64, rest: mainstay_store::ValueRef<'_>) -> bool {
    let after = numbers.last().is_none_or(|last| *last < first);
    matches!(rest, mainstay_store::ValueRef::Blob(bytes) if after && chunk::decode(first, bytes, numbers))
}

fn put(tx: &mut WriteTx<'_>, owner: OwnerId, term: Term<'_>, numbers: &[i64]) -> Result<()> {
    tx.execute(
        "INSERT INTO fact_terms (owner, kind, term, first, rest) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![owner, term.kind.text(), term.text, numbers[0], chunk::encoded(numbers)],
    )?;
    Ok(())
}

fn replace(
    tx: &mut WriteTx<'_>,
    owner: OwnerId,
    term: Term<'_>,
    first: i64,
    numbers: &[i64],
) -> Result<()> {
    tx.execute(
        "UPDATE fact_terms SET rest = ?5
         WHERE owner = ?1 AND kind = ?2 AND term = ?3 AND first = ?4",
        params![owner, term.kind.text(), term.text, first, chunk::encoded(numbers)],
    )?;
    Ok(())
}

fn damaged(kind: Kind, term: &str) -> Error {
    let what = format!("the list of facts with the {} \"{term}\"", kind.text());
    Error::Damaged { what, detail: "its bytes are not a list of numbers".to_owned() }
}
