//! A fact and how it is read from its row.

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use mainstay_store::{FromValue, OwnerId, ReadTx, Row, ToValue, ValueRef, params};

use super::prepared::fact_words;
use crate::vector::Compact;
use crate::{Error, Result};

/// The number of a fact among its owner's. Numbers grow and are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(i64);

/// What is to be remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewFact {
    /// The statement. The same text is one fact, however often it is added.
    pub content: String,
    /// What it is about, one word or a few; `general` where empty.
    pub category: String,
    /// Words by which it is found too.
    pub tags: Vec<String>,
    /// Whom or what it is about; found in the text where `None`.
    pub entities: Option<Vec<String>>,
    /// Who said it: `user`, `session 0198…`.
    pub source: String,
    /// The same key twice is one fact, whatever the text.
    pub key: Option<String>,
}

/// A remembered fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Its number.
    pub id: FactId,
    /// The statement.
    pub content: String,
    /// What it is about.
    pub category: String,
    /// Words by which it is found too.
    pub tags: Vec<String>,
    /// Names as they were written.
    pub entities: Vec<String>,
    /// Who said it.
    pub source: String,
    /// The caller's own key.
    pub key: Option<String>,
    /// From 0 to 1: begins at 0.5 and follows feedback.
    pub trust: f64,
    /// How often it was called helpful.
    pub helpful: i64,
    /// How often it was called unhelpful.
    pub unhelpful: i64,
    /// When it was added, in milliseconds since 1970.
    pub created_at: i64,
    /// When its text last changed.
    pub changed_at: i64,
}

/// A fact with its vector.
pub(super) struct Stored {
    pub(super) fact: Fact,
    pub(super) vector: Compact,
}

/// What is looked at to judge a fact, as it stands in its row: most that are judged are not chosen.
pub(super) struct Glance<'a> {
    pub(super) number: i64,
    pub(super) content: &'a str,
    pub(super) trust: f64,
    pub(super) changed_at: i64,
    tags: &'a str,
    vector: &'a [u8],
}

/// How many facts one statement reads by their numbers.
const AT_ONCE: usize = 16;

const COLUMNS: &str = "number, category, content, tags, entities, source, key, trust, helpful, \
                       unhelpful, created_at, changed_at, vector";

/// The facts with these numbers, those that there are, in no order.
pub(super) fn stored(tx: &mut ReadTx<'_>, owner: OwnerId, numbers: &[i64]) -> Result<Vec<Stored>> {
    let mut found = Vec::with_capacity(numbers.len());
    each(tx, owner, COLUMNS, numbers, |row| {
        found.push(read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// Looks at the facts with these numbers, those that there are, in no order.
pub(super) fn glance(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    numbers: &[i64],
    mut look: impl FnMut(&Glance<'_>) -> Result<()>,
) -> Result<()> {
    let columns = "number, content, tags, trust, changed_at, vector";
    each(tx, owner, columns, numbers, |row| {
        let (ValueRef::Text(content), ValueRef::Text(tags), ValueRef::Blob(vector)) =
            (row.value(1)?, row.value(2)?, row.value(5)?)
        else {
            return Err(damaged(row.get(0)?, "its columns have other types"));
        };
        let trust: i64 = row.get(3)?;
        look(&Glance {
            number: row.get(0)?,
            content,
            trust: trust as f64 / 100.0,
            changed_at: row.get(4)?,
            tags,
            vector,
        })
    })
}

impl Glance<'_> {
    /// The words of the text and of the tags.
    pub(super) fn distinct_words(&self) -> Result<Vec<String>> {
        let tags = if self.tags == "[]" { Vec::new() } else { list(self.number, self.tags)? };
        Ok(fact_words(self.content, &tags))
    }

    pub(super) fn similarity(&self, vector: &Compact) -> Result<f64> {
        let similarity = vector.similarity_to(self.vector);
        similarity.ok_or_else(|| damaged(self.number, OTHER_LENGTH))
    }
}

/// Hands over the rows of these numbers, a few a statement.
fn each(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    columns: &str,
    numbers: &[i64],
    mut with: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let places: Vec<String> = (2..AT_ONCE + 2).map(|place| format!("?{place}")).collect();
    let sql = format!(
        "SELECT {columns} FROM facts WHERE owner = ?1 AND number IN ({})",
        places.join(", ")
    );
    for some in numbers.chunks(AT_ONCE) {
        // A last number that stands more than once is found once.
        let last = &some[some.len() - 1];
        let mut values: Vec<&dyn ToValue> = vec![&owner];
        values.extend((0..AT_ONCE).map(|index| some.get(index).unwrap_or(last) as &dyn ToValue));
        let mut failed = None;
        tx.for_each(&sql, &values, |row| match with(row) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) => {
                failed = Some(error);
                Ok(ControlFlow::Break(()))
            }
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// One fact.
pub(super) fn one(tx: &mut ReadTx<'_>, owner: OwnerId, id: FactId) -> Result<Option<Stored>> {
    let sql = format!("SELECT {COLUMNS} FROM facts WHERE owner = ?1 AND number = ?2");
    tx.query_opt(&sql, params![owner, id], |row| Ok(read(row)))?.transpose()
}

/// The newest facts below a number.
pub(super) fn newest(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    below: i64,
    limit: usize,
) -> Result<Vec<Stored>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM facts WHERE owner = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query(&sql, params![owner, below, limit], |row| Ok(read(row)))?.into_iter().collect()
}

/// The oldest facts above a number.
pub(super) fn oldest(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    above: i64,
    limit: usize,
) -> Result<Vec<Stored>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM facts WHERE owner = ?1 AND number > ?2 ORDER BY number LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query(&sql, params![owner, above, limit], |row| Ok(read(row)))?.into_iter().collect()
}

fn read(row: &Row<'_>) -> Result<Stored> {
    let id: FactId = row.get(0)?;
    let names = |index: usize| -> Result<Vec<String>> { list(id.0, &row.get::<String>(index)?) };
    let vector = match row.value(12)? {
        ValueRef::Blob(bytes) => Compact::from_bytes(bytes),
        _ => None,
    };
    let trust: i64 = row.get(7)?;
    let fact = Fact {
        id,
        category: row.get(1)?,
        content: row.get(2)?,
        tags: names(3)?,
        entities: names(4)?,
        source: row.get(5)?,
        key: row.get(6)?,
        trust: trust as f64 / 100.0,
        helpful: row.get(8)?,
        unhelpful: row.get(9)?,
        created_at: row.get(10)?,
        changed_at: row.get(11)?,
    };
    let vector = vector.ok_or_else(|| damaged(id.0, OTHER_LENGTH))?;
    Ok(Stored { fact, vector })
}

const OTHER_LENGTH: &str = "its vector has another length";

fn list(number: i64, text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(|error| damaged(number, &error.to_string()))
}

fn damaged(number: i64, detail: &str) -> Error {
    Error::Damaged { what: format!("fact {number}"), detail: detail.to_owned() }
}

impl FactId {
    pub(super) const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number itself.
    pub const fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for FactId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = text.trim().trim_start_matches('#').parse().ok();
        number.filter(|number| *number > 0).map(Self).ok_or_else(|| {
            Error::Refused(format!("\"{text}\" is not a valid fact number, such as 17"))
        })
    }
}

impl ToValue for FactId {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Integer(self.0)
    }
}

impl FromValue for FactId {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).map(Self)
    }
}
