//! The `session_search` tool: what was said and done in earlier sessions.
//!
//! What it finds is framed as data. Words of a session that had read words from outside bring that
//! with them: they taint the session that reads them now.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use mainstay_journal::entry::{self, Body};
use mainstay_journal::search::{self, Asked, Excerpt, Filter};
use mainstay_journal::{SessionId, session};
use mainstay_message::ToolSpec;
use mainstay_store::{Id, ReadTx, params, wall_millis};
use mainstay_tools::{Action, Concurrency, Fact, Invocation, Outcome, Replay, Tool, Traits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::agent::{Parts, blocking};
use crate::{Error, Result, taint};

const NAME: &str = "session_search";
/// A call takes milliseconds, unless the index has much to catch up with.
const WALL: Duration = Duration::from_secs(60);
/// How long the index may catch up before it is used as it is.
const PATIENCE: Duration = Duration::from_secs(3);
/// Hits, and sessions in a list.
const USUAL: usize = 8;
const MOST: usize = 20;
/// Entries before and after the one that is read around, and characters of each.
const AROUND: i64 = 5;
const LONGEST: usize = 1_500;
/// Places from which words came that are remembered of one session.
const ORIGINS: usize = 20;

/// Searches, reads and lists the owner's sessions.
pub(crate) struct SessionSearch {
    /// The agent has this tool, so it must not be held by it.
    agent: Weak<Parts>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words, "phrases", begin*, -without.
    query: Option<String>,
    /// Only this one.
    session: Option<String>,
    /// Entry to read around.
    around: Option<i64>,
    /// 7d, 12h or 2026-01-31.
    since: Option<String>,
    limit: Option<usize>,
}

impl SessionSearch {
    pub(crate) fn new(agent: Weak<Parts>) -> Self {
        Self { agent }
    }
}

impl Tool for SessionSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Looks into the user's earlier sessions: searches them (query), reads one \
                          (session, around), or lists the latest (neither)."
                    .to_owned(),
            parameters: mainstay_tools::parameters::<Arguments>(),
        }
    }

    fn traits(&self) -> Traits {
        Traits { replay: Replay::Pure, concurrency: Concurrency::Parallel, wall: WALL }
    }

    fn action(&self, _: &Invocation<'_>) -> Action {
        Action::Read
    }

    fn run<'a>(&'a self, call: Invocation<'a>, _: Option<&'a Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let arguments: Arguments = match mainstay_tools::arguments(call.arguments) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            let Some(parts) = self.agent.upgrade() else {
                return Outcome::failed("The agent is going. Nothing was searched.");
            };
            let here = call.session.parse::<Id>().map(SessionId::from).ok();
            let done = blocking(|| match (&arguments.query, &arguments.session) {
                (Some(query), _) => discover(&parts, query, &arguments, here),
                (None, Some(session)) => read(&parts, session, arguments.around),
                (None, None) => browse(&parts, &arguments),
            });
            done.unwrap_or_else(|error| {
                Outcome::failed(format!("The sessions cannot be searched: {error}"))
            })
        })
    }
}

/// Finds entries by their words.
fn discover(
    parts: &Arc<Parts>,
    query: &str,
    arguments: &Arguments,
    here: Option<SessionId>,
) -> Result<Outcome> {
    let mut filter = Filter::default();
    match &arguments.session {
        Some(typed) => {
            let found = parts.store.read(|tx| session::find(tx, parts.owner, typed));
            match found {
                Ok(session) => filter.session = Some(session.id),
                Err(error) => return unknown(error),
            }
        }
        // What is said in this session the model knows, the question above all.
        None => filter.except = here,
    }
    if let Some(since) = &arguments.since {
        filter.since = moment(since, wall_millis());
        if filter.since.is_none() {
            return Ok(Outcome::failed(format!(
                "\"{since}\" is no time. Write how long ago (12h, 7d, 8w) or a date (2026-01-31)."
            )));
        }
    }
    let limit = arguments.limit.unwrap_or(USUAL).clamp(1, MOST);
    let asked = Asked { words: query.to_owned(), filter, limit, ..Asked::default() };
    let answer = search::search(&parts.store, parts.owner, &asked, Some(PATIENCE), &mut |_| {})?;
    let mut said = match answer.hits.len() {
        _ if answer.wordless => {
            return Ok(Outcome::failed("There is no word in the query. Write some."));
        }
        0 => "Nothing was found.".to_owned(),
        1 => "1 entry was found.".to_owned(),
        many => format!("{many} entries were found, the best first."),
    };
    if answer.partly && !answer.hits.is_empty() {
        said.push_str(" None has all of the words.");
    }
    if answer.behind > 0 {
        said.push_str(&format!(
            " {} entries are not in the index yet; search again to have more of them in it.",
            answer.behind
        ));
    }
    if let Some(shortcoming) = &answer.shortcoming {
        said.push_str(&format!(" {shortcoming}"));
    }
    let mut data = String::new();
    let mut shown = BTreeMap::new();
    for hit in &answer.hits {
        data.push_str(&format!(
            "session {} entry {} ({}, {}; {}; {})\n",
            hit.session,
            hit.seq,
            hit.who.as_str(),
            minute(hit.at),
            hit.title,
            hit.workspace
        ));
        if let Some(before) = &hit.before {
            data.push_str(&format!("  before, {}: {}\n", before.who.as_str(), before.text));
        }
        data.push_str(&format!("  {}\n", hit.snippet.marked("**", "**")));
        if let Some(after) = &hit.after {
            data.push_str(&format!("  after, {}: {}\n", after.who.as_str(), after.text));
        }
        let through: &mut i64 = shown.entry(hit.session).or_default();
        *through = (*through).max(hit.seq + 1);
    }
    framed(parts, said, data, &shown)
}

/// Shows a part of a session.
fn read(parts: &Arc<Parts>, typed: &str, around: Option<i64>) -> Result<Outcome> {
    let found = parts.store.read(|tx| -> mainstay_journal::Result<_> {
        let session = session::find(tx, parts.owner, typed)?;
        let last = entry::count(tx, session.id)?;
        let around = around.unwrap_or(last).clamp(1, last.max(1));
        let range = (around - AROUND, around + AROUND);
        let entries = search::excerpts(tx, session.id, range, LONGEST)?;
        Ok((session, last, range.1, entries))
    });
    let (session, last, through, entries) = match found {
        Ok(found) => found,
        Err(error) => return unknown(error),
    };
    let said = format!("Session {} has {last} entries; around: N shows others.", session.id);
    // A title is somebody's words too.
    let mut data = format!("{} (in {})\n", session.title, session.workspace);
    for Excerpt { seq, at, who, text } in &entries {
        data.push_str(&format!("entry {seq} ({}, {}): {text}\n", who.as_str(), minute(*at)));
    }
    framed(parts, said, data, &BTreeMap::from([(session.id, through)]))
}

/// Lists the sessions that were used last.
fn browse(parts: &Arc<Parts>, arguments: &Arguments) -> Result<Outcome> {
    let limit = u32::try_from(arguments.limit.unwrap_or(USUAL).clamp(1, MOST)).unwrap_or(1);
    let sessions = parts.store.read(|tx| session::list(tx, parts.owner, limit))?;
    let data: String = sessions
        .iter()
        .map(|session| {
            format!(
                "session {} ({}, {} turns; {}): {}\n",
                session.id,
                minute(session.used_at),
                session.turns,
                session.workspace,
                session.title
            )
        })
        .collect();
    let said = "The sessions that were used last:";
    Ok(if data.is_empty() {
        Outcome::said("There are no sessions.")
    } else {
        Outcome::said(said).data(data)
    })
}

/// What is shown of sessions, each up to an entry, with the places from which their words came.
fn framed(
    parts: &Arc<Parts>,
    said: String,
    data: String,
    shown: &BTreeMap<SessionId, i64>,
) -> Result<Outcome> {
    let mut outcome = Outcome::said(said);
    if data.is_empty() {
        return Ok(outcome);
    }
    outcome = outcome.data(data);
    outcome.facts = parts.store.read(|tx| -> Result<_> {
        let mut facts: Vec<Fact> = Vec::new();
        for (session, through) in shown {
            for fact in outside(tx, *session, *through)? {
                if !facts.contains(&fact) {
                    facts.push(fact);
                }
            }
        }
        Ok(facts)
    })?;
    Ok(outcome)
}

/// The places from which words came into a session, up to an entry.
fn outside(tx: &mut ReadTx<'_>, session: SessionId, through: i64) -> Result<Vec<Fact>> {
    // Few results and notices have any; what looks like one is looked at.
    let bodies: Vec<String> = tx.query(
        "SELECT body FROM entries WHERE session = ?1 AND seq <= ?2
         AND (kind = 'result' AND body LIKE '%\"outside\"%'
              OR kind = 'notice' AND body LIKE '%(from outside%') ORDER BY seq",
        params![session, through],
        |row| row.get(0),
    )?;
    let mut facts: Vec<Fact> = Vec::new();
    for body in bodies {
        let Ok(body) = serde_json::from_str::<Body>(&body) else { continue };
        for fact in taint::outside(&body) {
            if facts.len() < ORIGINS && !facts.contains(&fact) {
                facts.push(fact);
            }
        }
    }
    Ok(facts)
}

/// A session that is not there is the model's mistake; whatever else goes wrong is not.
fn unknown(error: mainstay_journal::Error) -> Result<Outcome> {
    match error {
        mainstay_journal::Error::Store(
            error @ (mainstay_store::Error::UnknownId { .. }
            | mainstay_store::Error::AmbiguousId { .. }),
        ) => Ok(Outcome::failed(format!("{error}."))),
        error => Err(Error::from(error)),
    }
}

fn minute(millis: i64) -> String {
    Timestamp::from_millisecond(millis).map_or_else(
        |_| format!("{millis} ms"),
        |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// A time as people write it: how long ago (`12h`, `7d`, `2 weeks`), `today`, `yesterday`, a date, or a
/// date with a time of day, by the clock on the wall here unless it names another.
pub fn moment(typed: &str, now: i64) -> Option<i64> {
    let typed = typed.trim();
    let now = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::system());
    let day = match typed {
        "today" => Some(now.clone()),
        "yesterday" => now.yesterday().ok(),
        _ => None,
    };
    if let Some(day) = day {
        return Some(day.start_of_day().ok()?.timestamp().as_millisecond());
    }
    let long = typed.strip_suffix("ago").unwrap_or(typed).trim_end();
    if let Ok(long) = long.parse::<Span>() {
        let ago = now.checked_sub(long).ok().filter(|_| !long.is_negative())?;
        return Some(ago.timestamp().as_millisecond());
    }
    if let Ok(time) = typed.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let time = match typed.parse::<Date>() {
        Ok(date) if typed.len() <= 10 => date.at(0, 0, 0, 0),
        _ => typed.replacen(' ', "T", 1).parse::<DateTime>().ok()?,
    };
    Some(time.to_zoned(TimeZone::system()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        let now = 1_800_000_000_000;
        assert_eq!(moment("2h", now), Some(now - 7_200_000));
        assert_eq!(moment("90min", now), Some(now - 5_400_000));
        assert_eq!(moment("1w", now), Some(now - 604_800_000));
        assert_eq!(moment("30m", now), moment("30 minutes ago", now));
        assert_eq!(moment("7 days", now), moment("7d", now));
        assert_eq!(moment("2027-01-15T08:00:00Z", now), Some(now));
        assert_eq!(moment("2027-01-15T09:00:00+01:00", now), Some(now));
        let (today, yesterday) = (moment("today", now).unwrap(), moment("yesterday", now).unwrap());
        assert!(yesterday < today && today <= now && now - yesterday < 50 * 3_600_000);
        let day = moment("2026-01-31", now).unwrap();
        assert_eq!(moment("2026-01-31 06:30", now), Some(day + 23_400_000));
        for wrong in ["", "d", "-1d", "ago", "soon", "2026-13-01", "7", "1.5d", "99999999999999h"] {
            assert_eq!(moment(wrong, now), None, "{wrong}");
        }
    }
}
