//! Facts as lines of JSON, to take them elsewhere and to bring them back.

use mainstay_store::{OwnerId, ReadTx, WriteTx};
use serde::{Deserialize, Serialize};

use super::changes::{self, Added, Standing};
use super::fact::{self, Fact, FactId, NewFact};
use super::prepared::Prepared;
use crate::{Error, Result};

/// A line that was read and can be imported.
#[derive(Clone, Debug)]
pub struct Line {
    fact: Prepared,
    trust: f64,
    helpful: i64,
    unhelpful: i64,
    created_at: Option<i64>,
    changed_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct Shape {
    content: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    entities: Option<Vec<String>>,
    #[serde(default)]
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default = "usual_trust")]
    trust: f64,
    #[serde(default)]
    helpful: i64,
    #[serde(default)]
    unhelpful: i64,
    #[serde(default)]
    created_at: Option<i64>,
    #[serde(default)]
    changed_at: Option<i64>,
}

fn usual_trust() -> f64 {
    0.5
}

/// A page of facts as lines, oldest first, with the last one's number to go on from. Empty at the
/// end.
pub fn export(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    after: Option<FactId>,
    limit: usize,
) -> Result<Vec<(FactId, String)>> {
    let stored = fact::oldest(tx, owner, after.map_or(0, FactId::number), limit)?;
    stored.into_iter().map(|stored| Ok((stored.fact.id, line(&stored.fact)?))).collect()
}

/// Remembers the fact of a line with its trust and its times, unless it is known.
pub fn import(tx: &mut WriteTx<'_>, owner: OwnerId, line: &Line) -> Result<Added> {
    let now = tx.now();
    let created_at = line.created_at.unwrap_or(now);
    let standing = Standing {
        trust: (line.trust * 100.0).round() as i64,
        helpful: line.helpful,
        unhelpful: line.unhelpful,
        created_at,
        changed_at: line.changed_at.unwrap_or(created_at),
    };
    changes::add_standing(tx, owner, &line.fact, standing)
}

impl std::str::FromStr for Line {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let shape: Shape = serde_json::from_str(text)
            .map_err(|error| Error::Refused(format!("the line is not a fact: {error}")))?;
        if !(0.0..=1.0).contains(&shape.trust) {
            return Err(Error::Refused(format!("a trust of {} is not from 0 to 1", shape.trust)));
        }
        let fact = Prepared::new(&NewFact {
            content: shape.content,
            category: shape.category,
            tags: shape.tags,
            entities: shape.entities,
            source: shape.source,
            key: shape.key,
        })?;
        Ok(Self {
            fact,
            trust: shape.trust,
            helpful: shape.helpful.max(0),
            unhelpful: shape.unhelpful.max(0),
            created_at: shape.created_at,
            changed_at: shape.changed_at,
        })
    }
}

fn line(fact: &Fact) -> Result<String> {
    let shape = Shape {
        content: fact.content.clone(),
        category: fact.category.clone(),
        tags: fact.tags.clone(),
        entities: Some(fact.entities.clone()),
        source: fact.source.clone(),
        key: fact.key.clone(),
        trust: fact.trust,
        helpful: fact.helpful,
        unhelpful: fact.unhelpful,
        created_at: Some(fact.created_at),
        changed_at: Some(fact.changed_at),
    };
    serde_json::to_string(&shape).map_err(|error| Error::Damaged {
        what: format!("fact {}", fact.id),
        detail: error.to_string(),
    })
}
