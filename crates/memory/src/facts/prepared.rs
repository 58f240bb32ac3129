//! Everything about a new fact that needs no transaction: what is refused, and what is computed.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::fact::{Fact, NewFact, Stored};
use super::terms::Kind;
use crate::entities::{self, folded};
use crate::vector::{self, Compact};
use crate::{Error, Result, words};

/// The most characters that a fact may have. It is a statement, not a document.
pub const CONTENT_LIMIT: usize = 4000;

/// The most characters of a category, a tag, a name, a source or a key.
const NAME_LIMIT: usize = 200;
/// The most tags, and the most entities, of a fact.
const LIST_LIMIT: usize = 32;
const USUAL_CATEGORY: &str = "general";

/// A fact that is ready to be written. Vectors take a fraction of a millisecond to compute: who
/// prepares a fact first keeps the transaction short.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) content: String,
    pub(super) digest: Vec<u8>,
    pub(super) category: String,
    pub(super) tags: Vec<String>,
    pub(super) entities: Vec<String>,
    pub(super) aliases: Vec<(String, String)>,
    pub(super) source: String,
    pub(super) key: Option<String>,
    pub(super) vector: Compact,
}

impl Prepared {
    /// Checks and computes; fails where the fact cannot be remembered.
    pub fn new(fact: &NewFact) -> Result<Self> {
        let content = kept(&fact.content);
        if content.is_empty() {
            return Err(Error::Refused("a fact needs text".to_owned()));
        }
        let length = content.chars().count();
        if length > CONTENT_LIMIT {
            return Err(Error::Refused(format!(
                "a fact of {length} characters is too long: {CONTENT_LIMIT} are allowed. \
                 Say it shorter, or as several facts."
            )));
        }
        let found = entities::found(&content);
        let mut names = Vec::new();
        for name in fact.entities.as_ref().unwrap_or(&found.names) {
            add(&mut names, name, folded);
        }
        // Who is given by one name is found by the others that the text has.
        for (one, other) in &found.aliases {
            for (named, also) in [(one, other), (other, one)] {
                if names.len() < LIST_LIMIT
                    && names.iter().any(|name| folded(name) == folded(named))
                {
                    add(&mut names, also, folded);
                }
            }
        }
        let mut tags = Vec::new();
        for tag in &fact.tags {
            add(&mut tags, &tag.to_lowercase(), str::to_owned);
        }
        let category = kept(&fact.category).to_lowercase();
        let prepared = Self {
            digest: digest(&content),
            category: if category.is_empty() { USUAL_CATEGORY.to_owned() } else { category },
            vector: Compact::of(&vector::fact(&content, names.iter().map(String::as_str))),
            content,
            tags,
            entities: names,
            aliases: found.aliases,
            source: kept(&fact.source),
            // A key without letters names nothing: all facts would be one.
            key: fact.key.as_deref().map(kept).filter(|key| !key.is_empty()),
        };
        prepared.refuse_excess()?;
        Ok(prepared)
    }

    fn refuse_excess(&self) -> Result<()> {
        for (what, list) in [("tags", &self.tags), ("entities", &self.entities)] {
            if list.len() > LIST_LIMIT {
                return Err(Error::Refused(format!(
                    "a fact with {} {what} has too many: {LIST_LIMIT} are allowed",
                    list.len()
                )));
            }
        }
        let names = [&self.category, &self.source].into_iter().chain(&self.key);
        for name in names.chain(&self.tags).chain(&self.entities) {
            if name.chars().count() > NAME_LIMIT {
                let start: String = name.chars().take(20).collect();
                return Err(Error::Refused(format!(
                    "\"{start}…\" is too long for a name: {NAME_LIMIT} characters are allowed"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn terms(&self) -> BTreeSet<(Kind, String)> {
        terms(&self.content, &self.category, &self.tags, &self.entities)
    }

    pub(super) fn word_count(&self) -> i64 {
        length(&self.content, &self.tags)
    }
}

impl Stored {
    /// What leads to the fact.
    pub(super) fn terms(&self) -> BTreeSet<(Kind, String)> {
        let Fact { content, category, tags, entities, .. } = &self.fact;
        terms(content, category, tags, entities)
    }

    pub(super) fn word_count(&self) -> i64 {
        length(&self.fact.content, &self.fact.tags)
    }
}

/// By what a text is known: the same text is one fact.
pub(super) fn digest(content: &str) -> Vec<u8> {
    Sha256::digest(content.as_bytes()).to_vec()
}

/// Names that stand for each other by what this text says, folded, both ways.
pub(super) fn both_ways(aliases: &[(String, String)]) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for (one, other) in aliases {
        let (one, other) = (folded(one), folded(other));
        if one != other && !one.is_empty() && !other.is_empty() {
            pairs.insert((one.clone(), other.clone()));
            pairs.insert((other, one));
        }
    }
    pairs
}

/// The words of a fact's text and tags, as they are counted and compared.
pub(super) fn fact_words(content: &str, tags: &[String]) -> Vec<String> {
    let mut all = words::terms(content);
    all.extend(tags.iter().flat_map(|tag| words::terms(tag)));
    all
}

fn length(content: &str, tags: &[String]) -> i64 {
    i64::try_from(fact_words(content, tags).len()).unwrap_or(i64::MAX)
}

fn terms(
    content: &str,
    category: &str,
    tags: &[String],
    entities: &[String],
) -> BTreeSet<(Kind, String)> {
    let mut terms = BTreeSet::from([(Kind::Category, category.to_owned())]);
    terms.extend(fact_words(content, tags).into_iter().map(|word| (Kind::Word, word)));
    terms.extend(entities.iter().map(|name| (Kind::Entity, folded(name))));
    terms.extend(tags.iter().map(|tag| (Kind::Tag, tag.clone())));
    terms
}

/// Text without white space around it, and without what no engine can hold.
fn kept(text: &str) -> String {
    text.replace('\0', "").trim().to_owned()
}

/// Adds a name that is not there yet.
fn add(names: &mut Vec<String>, name: &str, key: impl Fn(&str) -> String) {
    let name = kept(name).split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = key(&name);
    if !wanted.is_empty() && !names.iter().any(|known| key(known) == wanted) {
        names.push(name);
    }
}
