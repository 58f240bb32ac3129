//! Search: full text over all entries of an owner's sessions.
//!
//! The index is a cache in tables of its own. Nothing of a turn waits for it: it catches up from what
//! is durable, before a search, in small commits. Whatever is wrong with it, it is made anew from the
//! entries, and what is shown is read from them.
//!
//! An engine finds the newest entries that match (`sqlite`, `postgres`); all the rest is shared: what is
//! a word (`words`), what is asked for (`query`), and what comes first (`look`).

mod engine;
mod folding;
mod index;
mod look;
mod postgres;
mod query;
mod snippet;
mod sqlite;
mod text;
mod words;

use std::ops::Range;
use std::time::Duration;

use mainstay_store::{Component, Migration, OwnerId, Progress, ReadTx, Store, WriteTx, params};

pub use index::{Caught, catch_up, catch_up_ahead, forget_deleted, rebuild};

use crate::{Result, SessionId};
use query::Query;

/// The tables of the index that are always there; it makes the others itself.
pub const SEARCH: Component =
    Component { name: "search", migrations: &[Migration::Both(index::STATE)] };

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Words, `"phrases"`, `begin*`, `-without`, `OR`.
    pub words: String,
    /// What an entry must be besides.
    pub filter: Filter,
    /// What comes first.
    pub sort: Sort,
    /// How many hits are wanted.
    pub limit: usize,
}

/// What an entry must be to be found.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// Not of this session.
    pub except: Option<SessionId>,
    /// Of a session in this directory or below it.
    pub workspace: Option<String>,
    /// Said by these.
    pub who: Option<Who>,
    /// Not older than this, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Older than this.
    pub until: Option<i64>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The user.
    User,
    /// A model.
    Assistant,
    /// A tool, in the result of a call.
    Tool,
    /// The harness.
    Notice,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// What fits best; of what fits as well, the newest.
    #[default]
    Relevance,
    /// The newest.
    Newest,
    /// The oldest.
    Oldest,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The entries, in the order asked for.
    pub hits: Vec<Hit>,
    /// No entry has all of the words; these have some.
    pub partly: bool,
    /// There was no word in the question.
    pub wordless: bool,
    /// More entries match than were looked through, so that older ones may be missing.
    pub capped: bool,
    /// Entries that are not in the index yet.
    pub behind: u64,
    /// What stands in the way of a better answer, in a sentence.
    pub shortcoming: Option<String>,
}

/// An entry that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Its session.
    pub session: SessionId,
    /// The session's title.
    pub title: String,
    /// The session's directory.
    pub workspace: String,
    /// Its number.
    pub seq: i64,
    /// When it was written, in milliseconds since 1970.
    pub at: i64,
    /// Who said it.
    pub who: Who,
    /// How well it fits.
    pub score: f64,
    /// The part of it that fits best.
    pub snippet: Snippet,
    /// What was said before it.
    pub before: Option<Excerpt>,
    /// What was said after it.
    pub after: Option<Excerpt>,
}

/// A part of a text, on one line, with the places that were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The words.
    pub text: String,
    /// Bytes of them that were looked for, in order.
    pub marks: Vec<Range<usize>>,
}

/// The beginning of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Its number.
    pub seq: i64,
    /// When it was written, in milliseconds since 1970.
    pub at: i64,
    /// Who said it.
    pub who: Who,
    /// The words.
    pub text: String,
}

/// Searches the sessions of an owner. The index catches up first, for as long as `patience` lasts
/// where there is one; an index that is damaged or not there is made anew.
pub fn search(
    store: &Store,
    owner: OwnerId,
    asked: &Asked,
    patience: Option<Duration>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Answer> {
    let query = Query::parse(&asked.words);
    if query.terms.is_empty() {
        return Ok(Answer { wordless: true, ..Answer::default() });
    }
    index::healed(store, |store| {
        let caught = index::follow(store, owner, patience, &mut *progress);
        let (behind, hindrance) = match caught {
            Ok(caught) => (caught.behind, None),
            Err(error) => {
                let (behind, why) = index::as_it_is(store, owner, error)?;
                (behind, Some(why).filter(|_| behind > 0))
            }
        };
        let mut answer = store.read(|tx| look::look(tx, owner, asked, &query))?;
        answer.behind = behind;
        answer.shortcoming = hindrance.or(answer.shortcoming);
        Ok(answer)
    })
}

/// The entries of a session from one number to another, each with so many characters at most. Entries
/// without words are left out.
pub fn excerpts(
    tx: &mut ReadTx<'_>,
    session: SessionId,
    (from, to): (i64, i64),
    longest: usize,
) -> Result<Vec<Excerpt>> {
    let rows: Vec<(i64, i64, String)> = tx.query(
        "SELECT seq, at, body FROM entries WHERE session = ?1 AND seq BETWEEN ?2 AND ?3
         ORDER BY seq",
        params![session, from, to],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(rows
        .into_iter()
        .filter_map(|(seq, at, body)| {
            let (who, text) = text::of(&body)?;
            Some(Excerpt { seq, at, who, text: snippet::beginning(&text, longest) })
        })
        .collect())
}

/// Notes that a session is deleted. Its words leave the index with [`forget_deleted`], or when it next
/// catches up.
pub fn forget(tx: &mut WriteTx<'_>, session: SessionId) -> Result<()> {
    // Whatever happened to the index, a session can be deleted.
    index::ensure_state(tx)?;
    tx.execute(
        "INSERT INTO cache_search_gone (session) VALUES (?1) ON CONFLICT (session) DO NOTHING",
        params![session],
    )?;
    Ok(())
}

impl Who {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Who::User => "user",
            Who::Assistant => "assistant",
            Who::Tool => "tool",
            Who::Notice => "notice",
        }
    }

    /// How it is kept.
    fn number(self) -> i64 {
        match self {
            Who::User => 0,
            Who::Assistant => 1,
            Who::Tool => 2,
            Who::Notice => 3,
        }
    }
}

impl Snippet {
    /// The words, with marks around what was looked for.
    pub fn marked(&self, open: &str, close: &str) -> String {
        let mut out = String::with_capacity(self.text.len() + self.marks.len() * 4);
        let mut place = 0;
        for mark in &self.marks {
            out.push_str(&self.text[place..mark.start]);
            out.push_str(open);
            out.push_str(&self.text[mark.clone()]);
            out.push_str(close);
            place = mark.end;
        }
        out.push_str(&self.text[place..]);
        out
    }
}
