//! Facts by number and by category.

use mainstay_store::{OwnerId, ReadTx};

use super::bank;
use super::fact::{self, Fact, FactId};
use super::terms::{self, Kind};
use crate::Result;

/// Which facts are to be listed, newest first.
#[derive(Clone, Debug)]
pub struct List {
    /// Only of this category.
    pub category: Option<String>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only facts before this one: the last of the page before.
    pub before: Option<FactId>,
    /// At most so many.
    pub limit: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { category: None, tag: None, before: None, limit: 50 }
    }
}

/// One fact of this owner.
pub fn get(tx: &mut ReadTx<'_>, owner: OwnerId, id: FactId) -> Result<Option<Fact>> {
    Ok(fact::one(tx, owner, id)?.map(|stored| stored.fact))
}

/// A page of facts, newest first.
pub fn list(tx: &mut ReadTx<'_>, owner: OwnerId, list: &List) -> Result<Vec<Fact>> {
    let below = list.before.map_or(i64::MAX, FactId::number);
    let stored = match with(tx, owner, list.category.as_deref(), list.tag.as_deref())? {
        None => fact::newest(tx, owner, below, list.limit)?,
        Some(numbers) => {
            let wanted = numbers.into_iter().rev().filter(|number| *number < below);
            let wanted: Vec<i64> = wanted.take(list.limit).collect();
            fact::stored(tx, owner, &wanted)?
        }
    };
    let mut facts: Vec<Fact> = stored.into_iter().map(|stored| stored.fact).collect();
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.id));
    Ok(facts)
}

/// How many facts an owner has.
pub fn count(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<i64> {
    Ok(bank::size(tx, owner)?.facts)
}

/// The facts of a category and with a tag, ascending; `None` where neither was asked for.
pub(super) fn with(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    category: Option<&str>,
    tag: Option<&str>,
) -> Result<Option<Vec<i64>>> {
    let mut numbers: Option<Vec<i64>> = None;
    for (kind, term) in [(Kind::Category, category), (Kind::Tag, tag)] {
        let Some(term) = term else { continue };
        let list = terms::list(tx, owner, kind, &term.trim().to_lowercase())?;
        numbers = Some(match numbers {
            None => list,
            Some(both) => common(&both, &list),
        });
    }
    Ok(numbers)
}

/// The numbers that are in both lists; both ascending.
pub(super) fn common(one: &[i64], other: &[i64]) -> Vec<i64> {
    let mut common = Vec::new();
    let (mut at, mut there) = (0, 0);
    while let (Some(here), Some(beside)) = (one.get(at), other.get(there)) {
        match here.cmp(beside) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => there += 1,
            std::cmp::Ordering::Equal => {
                common.push(*here);
                at += 1;
                there += 1;
            }
        }
    }
    common
}
