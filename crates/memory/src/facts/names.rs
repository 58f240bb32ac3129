//! Names of entities: which of them a question mentions, and which stand for the same.

use std::collections::BTreeSet;

use mainstay_store::{OwnerId, ReadTx, params};

use super::terms::{self, Kind};
use crate::Result;
use crate::entities::folded;

/// The most words of a name that is looked for in a question.
const LONGEST: usize = 4;
/// The most words of a question in which names are looked for.
const LOOKED_AT: usize = 48;
/// The most names that stand for one entity.
const GROUP: usize = 16;

/// The names in `text` that facts have, with the other names of the same entities; folded.
pub(super) fn mentioned(tx: &mut ReadTx<'_>, owner: OwnerId, text: &str) -> Result<Vec<String>> {
    let words: Vec<&str> = text.split_whitespace().take(LOOKED_AT).collect();
    let mut phrases = BTreeSet::new();
    for start in 0..words.len() {
        for end in start + 1..=(start + LONGEST).min(words.len()) {
            let phrase = folded(&words[start..end].join(" "));
            if phrase.chars().count() > 1 {
                phrases.insert(phrase);
            }
        }
    }
    let phrases: Vec<String> = phrases.into_iter().collect();
    let mut names = BTreeSet::new();
    for name in known(tx, owner, &phrases)? {
        names.extend(group(tx, owner, &name)?);
    }
    Ok(names.into_iter().collect())
}

/// All names of the entity that `name` names, this one first.
pub(super) fn group(tx: &mut ReadTx<'_>, owner: OwnerId, name: &str) -> Result<Vec<String>> {
    let mut names = vec![folded(name)];
    let mut next = 0;
    while next < names.len() && names.len() < GROUP {
        let others: Vec<String> = tx.query(
            "SELECT DISTINCT other FROM fact_aliases WHERE owner = ?1 AND name = ?2 ORDER BY other",
            params![owner, names[next]],
            |row| row.get(0),
        )?;
        for other in others {
            if !names.contains(&other) {
                names.push(other);
            }
        }
        next += 1;
    }
    names.truncate(GROUP);
    Ok(names)
}

/// Those of `phrases` that are names of entities.
fn known(tx: &mut ReadTx<'_>, owner: OwnerId, phrases: &[String]) -> Result<Vec<String>> {
    Ok(terms::lists(tx, owner, Kind::Entity, phrases)?.into_keys().collect())
}
