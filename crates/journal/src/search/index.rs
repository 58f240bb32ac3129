//! The index follows what is durable, and can always be made anew from it.
//!
//! For each session it notes up to which entry it has come. Each batch is one commit that adds
//! documents and moves that note, if it still is where the batch began: so two processes that catch up
//! at once add nothing twice, and one that is killed leaves nothing half-done.
//!
//! Which sessions have grown is told by when they were used last, with a day to spare for clocks that
//! disagree and commits that come late, and by the turns that are not over. Once a day all sessions
//! are looked at, whatever the clocks said.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use mainstay_store::{
    Clock, Dialect, Location, OwnerId, Progress, ReadTx, Store, SystemClock, WriteTx, params,
};

use super::engine::{self, Document};
use super::{Who, postgres, text, words};
use crate::{Error, Result, SessionId};

/// What is kept and how. Another number makes every index anew.
const VERSION: i64 = 2;

/// The tables that say what state the index is in.
pub(super) const STATE: &str = "
CREATE TABLE IF NOT EXISTS cache_search_state (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS cache_search_gone (session TEXT PRIMARY KEY);
";

/// How much one commit adds at most, so that a turn's commit never waits long for it.
const BATCH_ENTRIES: usize = 500;
const BATCH_BYTES: usize = 512 << 10;
/// How much less is tried, on a machine where a commit of that takes longer than one may.
const SMALLER: usize = 4;
/// So many entries a search adds without anybody noticing.
const IN_PASSING: u64 = 500;
/// Documents that share a note of when they were written.
pub(super) const SPAN: i64 = 4096;

/// How often, and how far apart, somebody who waits for the making of an index looks again.
const TURNS: u32 = 500;
const TURN: Duration = Duration::from_millis(20);
/// How often in a row somebody else can have been there first. After that the notes are wrong.
const OUTRUN: u32 = 100;

const DAY: i64 = 24 * 60 * 60 * 1000;
const HOUR: i64 = 60 * 60 * 1000;

/// How far the index came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caught {
    /// Entries that are not in it yet.
    pub behind: u64,
    /// Entries that were added to it.
    pub added: u64,
}

/// Adds what the owner's sessions have gained, for as long as `patience` lasts where there is one.
pub fn catch_up(
    store: &Store,
    owner: OwnerId,
    patience: Option<Duration>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Caught> {
    healed(store, |store| follow(store, owner, patience, progress))
}

/// Adds what the owner's sessions have gained before anybody searches, for about as long as `patience`
/// lasts. What a search adds in passing is left to it.
pub fn catch_up_ahead(store: &Store, owner: OwnerId, patience: Duration) -> Result<Caught> {
    let behind = store.read(|tx| -> Result<u64> {
        if is_fit(tx)? {
            return Ok(plan(tx, owner)?.missing());
        }
        // Where there is no index, no more has to be known than that it would be much.
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM entries LIMIT {IN_PASSING}) AS first_entries"
        );
        Ok(tx.query_one(&sql, params![], |row| row.get::<i64>(0))?.unsigned_abs())
    })?;
    if behind < IN_PASSING {
        return Ok(Caught { behind: 0, added: 0 });
    }
    catch_up(store, owner, Some(patience), &mut |_| {})
}

/// The same, on an index that may be damaged.
pub(super) fn follow(
    store: &Store,
    owner: OwnerId,
    patience: Option<Duration>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Caught> {
    let clock = SystemClock;
    let began = clock.uptime_millis();
    let patience = patience.map(|patience| i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
    let mut caught = Caught::default();
    let mut times = 0;
    let mut batch = Batch { entries: BATCH_ENTRIES, bytes: BATCH_BYTES };
    loop {
        ensure(store)?;
        let mut plan = store.read(|tx| plan(tx, owner))?;
        if !plan.gone.is_empty() {
            forget_gone(store, &plan.gone)?;
            // Of those that are there the words are wanted again.
            plan = store.read(|tx| self::plan(tx, owner))?;
        }
        caught.behind = plan.missing();
        let mut next = Place { session: 0, through: plan.through(0) };
        let mut outrun = false;
        while next.session < plan.behind.len() && !outrun {
            let late = |patience: &i64| clock.uptime_millis().saturating_sub(began) >= *patience;
            if patience.as_ref().is_some_and(late) {
                return Ok(caught);
            }
            let (pieces, after) = store.read(|tx| gather(tx, &plan, next, batch))?;
            let documents: Vec<Piece<Prepared>> = pieces.into_iter().map(Piece::prepared).collect();
            let gained: u64 = documents.iter().map(Piece::entries).sum();
            let added = match store.write(|tx| add(tx, owner, &documents)) {
                Err(error) if is_too_slow(store, &error) && batch.entries > SMALLER => {
                    batch = batch.smaller();
                    continue;
                }
                added => added?,
            };
            match added {
                Added::All => {
                    times = 0;
                    caught.added += gained;
                    caught.behind = caught.behind.saturating_sub(gained);
                    progress(Progress { done: caught.added, of: caught.added + caught.behind });
                }
                // Somebody else was there, or made the index anew: look again.
                Added::Some => outrun = true,
            }
            next = after;
        }
        if !outrun {
            note(store, owner, &plan)?;
            caught.behind = 0;
            return Ok(caught);
        }
        times += 1;
        if times == OUTRUN {
            return Err(Error::Store(mainstay_store::Error::Damaged {
                place: "the index of words".to_owned(),
                detail: "its notes contradict each other".to_owned(),
            }));
        }
    }
}

/// How much is added in one commit.
#[derive(Clone, Copy)]
struct Batch {
    entries: usize,
    bytes: usize,
}

impl Batch {
    fn smaller(self) -> Self {
        Self { entries: self.entries / SMALLER, bytes: self.bytes / SMALLER }
    }
}

/// Whether a transaction took too long by itself; on a server it was the way there.
fn is_too_slow(store: &Store, error: &Error) -> bool {
    matches!(error, Error::Store(mainstay_store::Error::TooSlow { .. }))
        && matches!(store.location(), Location::Sqlite { .. })
}

/// How many entries are missing in an index that cannot catch up for this reason, and the reason in a
/// sentence. What is in it can be found all the same; where there is no index, the reason is the error.
pub(super) fn as_it_is(store: &Store, owner: OwnerId, error: Error) -> Result<(u64, String)> {
    use mainstay_store::Error::{Full, InUse, Locked};
    if !matches!(error, Error::Store(Full(_) | InUse { .. } | Locked { .. })) {
        return Err(error);
    }
    let missing = store.read(|tx| -> Result<Option<u64>> {
        if is_fit(tx)? { Ok(Some(plan(tx, owner)?.missing())) } else { Ok(None) }
    });
    match missing {
        Ok(Some(missing)) => Ok((missing, format!("What is new cannot be indexed now: {error}."))),
        Ok(None) | Err(_) => Err(error),
    }
}

/// Makes the index anew; it is empty then, and catches up before it is used.
pub fn rebuild(store: &Store) -> Result<()> {
    make(store, Make::Anew)
}

/// Removes the words of deleted sessions from the index, where there is one.
pub fn forget_deleted(store: &Store) -> Result<()> {
    let gone: Vec<SessionId> = store.read(|tx| -> Result<_> {
        if !is_fit(tx)? {
            return Ok(Vec::new());
        }
        Ok(tx.query("SELECT session FROM cache_search_gone", params![], |row| row.get(0))?)
    })?;
    forget_gone(store, &gone)
}

/// Runs something with the index. Where the index turns out to be damaged it is made anew; where
/// somebody else is making it anew, the second attempt finds it.
pub(super) fn healed<T>(store: &Store, mut work: impl FnMut(&Store) -> Result<T>) -> Result<T> {
    use mainstay_store::Error::{Constraint, Damaged, Statement};
    match work(store) {
        // Its own numbers are there twice.
        Err(Error::Store(Damaged { .. } | Constraint { .. })) => make(store, Make::Anew)?,
        Err(Error::Store(Statement(_))) => make(store, Make::Missing)?,
        done => return done,
    }
    match work(store) {
        Err(Error::Store(Damaged { .. } | Constraint { .. } | Statement(_))) => {
            make(store, Make::Anew)?;
            work(store)
        }
        done => done,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Make {
    Missing,
    Anew,
}

/// Makes sure that there is an index of this version.
fn ensure(store: &Store) -> Result<()> {
    if store.read(is_fit)? { Ok(()) } else { make(store, Make::Missing) }
}

fn is_fit(tx: &mut ReadTx<'_>) -> Result<bool> {
    if !engine::of(tx).is_present(tx)? {
        return Ok(false);
    }
    let noted: BTreeMap<String, i64> = tx
        .query("SELECT name, value FROM cache_search_state", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .into_iter()
        .collect();
    Ok(noted.get("version") == Some(&VERSION) && noted.contains_key("next"))
}

fn make(store: &Store, how: Make) -> Result<()> {
    let dialect = store.read(|tx| Ok::<_, Error>(tx.dialect()))?;
    if dialect == Dialect::Postgres {
        postgres::ask_for_trigrams(store);
    }
    for _ in 0..TURNS {
        if store.write(|tx| made(tx, how))? {
            return Ok(());
        }
        // Somebody else is making it, for whatever reason.
        std::thread::sleep(TURN);
        if store.read(is_fit)? {
            return Ok(());
        }
    }
    Err(Error::Store(mainstay_store::Error::InUse {
        what: "the index of words".to_owned(),
        holder: "another process, which is rebuilding it".to_owned(),
    }))
}

/// Makes the index, unless somebody else is doing that.
fn made(tx: &mut WriteTx<'_>, how: Make) -> Result<bool> {
    let engine = engine::of(tx);
    if !engine.take_turn(tx)? {
        return Ok(false);
    }
    // Another process may have made it meanwhile.
    if how == Make::Missing && is_fit(tx)? {
        return Ok(true);
    }
    ensure_state(tx)?;
    engine.discard(tx)?;
    engine.create(tx)?;
    tx.execute("DELETE FROM cache_search_gone", params![])?;
    for (name, value) in [("version", VERSION), ("next", 1)] {
        tx.execute(
            "INSERT INTO cache_search_state (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            params![name, value],
        )?;
    }
    Ok(true)
}

/// Makes the tables that say what state the index is in, where somebody removed them.
pub(super) fn ensure_state(tx: &mut WriteTx<'_>) -> Result<()> {
    // As the migration made them: a server refuses statements that it knows for columns of another kind.
    let text = match tx.dialect() {
        Dialect::Sqlite => "TEXT",
        Dialect::Postgres => "TEXT COLLATE \"C\"",
    };
    for table in STATE.split(';').filter(|table| !table.trim().is_empty()) {
        tx.execute(&table.replace("TEXT", text), params![])?;
    }
    Ok(())
}

/// What has to be done.
struct Plan {
    behind: Vec<Behind>,
    /// Sessions whose words are to go.
    gone: Vec<SessionId>,
    /// When the session that was used last was used.
    seen: i64,
    /// What was noted of that before.
    seen_before: Option<i64>,
    /// Whether all sessions were looked at.
    full: bool,
}

struct Behind {
    session: SessionId,
    through: i64,
    last: i64,
}

impl Plan {
    fn missing(&self) -> u64 {
        self.behind.iter().map(|behind| (behind.last - behind.through).unsigned_abs()).sum()
    }

    fn through(&self, session: usize) -> i64 {
        self.behind.get(session).map_or(0, |behind| behind.through)
    }
}

fn plan(tx: &mut ReadTx<'_>, owner: OwnerId) -> Result<Plan> {
    let now = tx.now();
    let noted: Option<(i64, i64)> = tx.query_opt(
        "SELECT seen, full_at FROM cache_search_owners WHERE owner = ?1",
        params![owner],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    // A clock that went back is no reason to trust it.
    let full = noted.is_none_or(|(_, full_at)| !(full_at..full_at + DAY).contains(&now));
    let seen_before = noted.map(|(seen, _)| seen);
    let from = if full { i64::MIN } else { seen_before.unwrap_or(i64::MIN).saturating_sub(DAY) };
    let mut gone: Vec<SessionId> =
        tx.query("SELECT session FROM cache_search_gone", params![], |row| row.get(0))?;
    if full {
        gone.extend(tx.query(
            "SELECT session FROM cache_search_sessions i WHERE owner = ?1
             AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = i.session)",
            params![owner],
            |row| row.get::<SessionId>(0),
        )?);
    }
    let seen = tx.query_opt(
        "SELECT used_at FROM sessions WHERE owner = ?1 ORDER BY used_at DESC LIMIT 1",
        params![owner],
        |row| row.get(0),
    )?;
    let mut plan = Plan { behind: Vec::new(), gone, seen: seen.unwrap_or(0), seen_before, full };
    grown(tx, owner, "s.used_at >= ?2", from, &mut plan)?;
    if !full {
        let unfinished =
            "s.used_at < ?2 AND s.id IN (SELECT session FROM turns WHERE state <> 'ended')";
        grown(tx, owner, unfinished, from, &mut plan)?;
    }
    Ok(plan)
}

/// Finds the sessions that have more entries than the index.
fn grown(
    tx: &mut ReadTx<'_>,
    owner: OwnerId,
    which: &str,
    from: i64,
    plan: &mut Plan,
) -> Result<()> {
    // The oldest first: the order of documents is about that of time.
    let sql = format!(
        "SELECT s.id, COALESCE(i.through, 0),
             (SELECT e.seq FROM entries e WHERE e.session = s.id ORDER BY e.seq DESC LIMIT 1)
         FROM sessions s LEFT JOIN cache_search_sessions i ON i.session = s.id
         WHERE s.owner = ?1 AND {which} ORDER BY s.used_at, s.id"
    );
    let Plan { behind, gone, .. } = plan;
    tx.for_each(&sql, params![owner, from], |row| {
        let (session, through): (SessionId, i64) = (row.get(0)?, row.get(1)?);
        let last = row.get::<Option<i64>>(2)?.unwrap_or(0);
        if last > through {
            behind.push(Behind { session, through, last });
        } else if last < through {
            // Entries never go alone: the index knows of what is not there.
            gone.push(session);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

/// Removes the words of sessions that are deleted.
fn forget_gone(store: &Store, gone: &[SessionId]) -> Result<()> {
    for session in gone {
        store.write(|tx| -> Result<()> {
            let number = tx.query_opt(
                "SELECT number FROM cache_search_sessions WHERE session = ?1",
                params![*session],
                |row| row.get::<i64>(0),
            )?;
            if let Some(number) = number {
                engine::of(tx).remove(tx, number)?;
                tx.execute("DELETE FROM cache_search_sessions WHERE number = ?1", params![number])?;
            }
            tx.execute("DELETE FROM cache_search_gone WHERE session = ?1", params![*session])?;
            Ok(())
        })?;
    }
    Ok(())
}

/// How far a plan was carried out.
#[derive(Clone, Copy)]
struct Place {
    session: usize,
    through: i64,
}

/// Entries of a session that follow one another.
struct Piece<T> {
    session: SessionId,
    from: i64,
    to: i64,
    entries: Vec<T>,
}

struct Raw {
    seq: i64,
    at: i64,
    body: String,
}

struct Prepared {
    seq: i64,
    at: i64,
    who: Who,
    tokens: String,
    fragments: String,
}

impl Piece<Raw> {
    /// Cuts the entries into words, outside of any transaction.
    fn prepared(self) -> Piece<Prepared> {
        let entries = self.entries.into_iter().filter_map(|Raw { seq, at, body }| {
            let (who, text) = text::of(&body)?;
            let (tokens, fragments) = (words::tokens(&text), words::fragments(&text));
            let empty = tokens.is_empty() && fragments.is_empty();
            (!empty).then_some(Prepared { seq, at, who, tokens, fragments })
        });
        Piece { session: self.session, from: self.from, to: self.to, entries: entries.collect() }
    }
}

impl<T> Piece<T> {
    fn entries(&self) -> u64 {
        (self.to - self.from).unsigned_abs()
    }
}

/// Reads the next entries, of several sessions where they are short.
fn gather(
    tx: &mut ReadTx<'_>,
    plan: &Plan,
    mut next: Place,
    batch: Batch,
) -> Result<(Vec<Piece<Raw>>, Place)> {
    let at_once = i64::try_from(batch.entries.min(100)).unwrap_or(100);
    let (mut pieces, mut count, mut bytes) = (Vec::new(), 0, 0);
    while let Some(Behind { session, last, .. }) = plan.behind.get(next.session) {
        let mut entries = Vec::new();
        tx.for_each(
            "SELECT seq, at, body FROM entries WHERE session = ?1 AND seq > ?2 AND seq <= ?3
             ORDER BY seq LIMIT ?4",
            params![*session, next.through, *last, at_once],
            |row| {
                let raw = Raw { seq: row.get(0)?, at: row.get(1)?, body: row.get(2)? };
                bytes += raw.body.len();
                entries.push(raw);
                let full = bytes >= batch.bytes;
                Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        count += entries.len();
        match entries.last().map(|raw| raw.seq) {
            Some(to) => {
                pieces.push(Piece { session: *session, from: next.through, to, entries });
                next.through = to;
            }
            // It was deleted meanwhile.
            None => next.through = *last,
        }
        if next.through >= *last {
            next = Place { session: next.session + 1, through: plan.through(next.session + 1) };
        }
        if count >= batch.entries || bytes >= batch.bytes {
            break;
        }
    }
    Ok((pieces, next))
}

enum Added {
    All,
    Some,
}

/// Adds documents, each session's if nobody else did.
fn add(tx: &mut WriteTx<'_>, owner: OwnerId, pieces: &[Piece<Prepared>]) -> Result<Added> {
    let count: usize = pieces.iter().map(|piece| piece.entries.len()).sum();
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    // On a server this row is what two who add at once wait for.
    let next = tx.query_opt(
        "UPDATE cache_search_state SET value = value + ?1 WHERE name = 'next' RETURNING value",
        params![count],
        |row| row.get::<i64>(0),
    )?;
    let Some(next) = next else { return Ok(Added::Some) };
    let mut id = next - count;
    let mut added = Added::All;
    let mut spans: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let engine = engine::of(tx);
    for piece in pieces {
        let Some(number) = moved(tx, owner, piece)? else {
            added = Added::Some;
            continue;
        };
        for Prepared { seq, at, who, tokens, fragments } in &piece.entries {
            let document = Document {
                id,
                owner,
                session: number,
                seq: *seq,
                who: *who,
                at: *at,
                tokens,
                fragments,
            };
            engine.insert(tx, &document)?;
            let span = spans.entry(id / SPAN).or_insert((*at, *at));
            *span = (span.0.min(*at), span.1.max(*at));
            id += 1;
        }
    }
    for (span, (first, last)) in spans {
        tx.execute(
            "INSERT INTO cache_search_spans (span, first_at, last_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (span) DO UPDATE SET
                 first_at = CASE WHEN excluded.first_at < cache_search_spans.first_at
                     THEN excluded.first_at ELSE cache_search_spans.first_at END,
                 last_at = CASE WHEN excluded.last_at > cache_search_spans.last_at
                     THEN excluded.last_at ELSE cache_search_spans.last_at END",
            params![span, first, last],
        )?;
    }
    Ok(added)
}

/// Moves the note on a session to the end of a piece, and answers the session's number; `None` where
/// the note is not where the piece begins.
fn moved(tx: &mut WriteTx<'_>, owner: OwnerId, piece: &Piece<Prepared>) -> Result<Option<i64>> {
    let noted: Option<(i64, i64)> = tx.query_opt(
        "SELECT number, through FROM cache_search_sessions WHERE session = ?1",
        params![piece.session],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    match noted {
        Some((number, through)) if through == piece.from => {
            tx.execute(
                "UPDATE cache_search_sessions SET through = ?2 WHERE number = ?1",
                params![number, piece.to],
            )?;
            Ok(Some(number))
        }
        None if piece.from == 0 => {
            let last = "SELECT number FROM cache_search_sessions ORDER BY number DESC LIMIT 1";
            let last = tx.query_opt(last, params![], |row| row.get::<i64>(0))?;
            let number = last.unwrap_or(0) + 1;
            tx.execute(
                "INSERT INTO cache_search_sessions (number, session, owner, through)
                 VALUES (?1, ?2, ?3, ?4)",
                params![number, piece.session, owner, piece.to],
            )?;
            Ok(Some(number))
        }
        _ => Ok(None),
    }
}

/// Notes up to when sessions were looked at, where that says something new.
fn note(store: &Store, owner: OwnerId, plan: &Plan) -> Result<()> {
    let Plan { seen, seen_before, full, .. } = plan;
    let moved = seen_before.is_none_or(|before| (seen - before).abs() > HOUR);
    if !full && !moved {
        return Ok(());
    }
    store.write(|tx| -> Result<()> {
        let now = tx.now();
        let full_at = if *full { "excluded.full_at" } else { "cache_search_owners.full_at" };
        tx.execute(
            &format!(
                "INSERT INTO cache_search_owners (owner, seen, full_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (owner) DO UPDATE SET seen = excluded.seen, full_at = {full_at}"
            ),
            params![owner, *seen, now],
        )?;
        Ok(())
    })
}
