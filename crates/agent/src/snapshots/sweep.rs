//! Old snapshots go, and objects that no snapshot needs go with them.

use std::collections::{BTreeMap, HashSet};

use mainstay_journal::{SessionId, TurnId};
use mainstay_store::{ReadTx, Store, ToValue, WriteTx, params};
use mainstay_tools::snapshot::{PathChange, State};
use serde::Serialize;

use super::changes::{self, Segment};
use super::mark::damaged;
use super::objects;
use crate::Result;

/// What is kept of snapshots.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The last turns of each session that changed files.
    pub turns: usize,
    /// Bytes of all sessions together; the oldest go first.
    pub bytes: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { turns: 50, bytes: 2 << 30 }
    }
}

/// What was swept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Turns that cannot be undone any more.
    pub turns: usize,
    /// Objects that nothing needs.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// How often it is done by itself, in milliseconds.
const EVERY: i64 = 24 * 60 * 60 * 1000;
/// So many objects go in one transaction.
const TOGETHER: usize = 2_000;
/// So many are named in one statement.
const NAMED: usize = 200;
/// How often it is tried while others take snapshots.
const TRIES: usize = 5;

/// Sweeps unless that was done within a day.
pub fn sweep_if_due(store: &Store) -> Result<Option<Swept>> {
    let due = store.read(|tx| -> Result<bool> {
        let sql = "SELECT swept_at FROM snapshot_sweeps WHERE one = 1";
        let swept_at: i64 = tx.query_opt(sql, params![], |row| row.get(0))?.unwrap_or(0);
        Ok(tx.now() - swept_at >= EVERY)
    })?;
    if due { sweep(store, &Kept::default()).map(Some) } else { Ok(None) }
}

/// Takes old snapshots away, and every object that no snapshot and no undo needs.
///
/// What is needed is found out first, by many short reads. The transaction that takes objects away
/// sees that no snapshot came in between, and tells those who are about to write one that what they
/// know of kept objects is out of date.
pub fn sweep(store: &Store, kept: &Kept) -> Result<Swept> {
    let mut swept = Swept::default();
    for _ in 0..TRIES {
        let seen = store.read(census)?;
        let found = find(store, kept)?;
        let mut rest = found.garbage.as_slice();
        loop {
            let (batch, others) = rest.split_at(rest.len().min(TOGETHER));
            let first = std::ptr::eq(rest, found.garbage.as_slice());
            let outdated: &[Outdated] = if first { &found.outdated } else { &[] };
            let still = store.write(|tx| -> Result<bool> {
                let now = if first { seen } else { (seen.0 - found.marks, seen.1) };
                if census(tx)? != now {
                    return Ok(false);
                }
                remove(tx, outdated, batch)?;
                Ok(true)
            })?;
            if !still {
                break;
            }
            if first {
                swept.turns += found.turns;
            }
            swept.objects += batch.len();
            swept.bytes += batch.iter().map(|(_, size)| size).sum::<u64>();
            rest = others;
            if rest.is_empty() {
                return Ok(swept);
            }
        }
    }
    // Others were busy each time; what is left goes with the next sweep.
    Ok(swept)
}

/// Marks that are too old: those of a session up to a number.
struct Outdated {
    session: SessionId,
    up_to: i64,
}

struct Found {
    outdated: Vec<Outdated>,
    /// How many marks are outdated.
    marks: i64,
    /// How many turns they belong to.
    turns: usize,
    garbage: Vec<(String, u64)>,
}

/// How many marks and undos there are: another number means that somebody wrote.
fn census(tx: &mut ReadTx<'_>) -> Result<(i64, i64)> {
    let marks = tx.query_one("SELECT COUNT(*) FROM snapshots", params![], |row| row.get(0))?;
    let undos = tx.query_one("SELECT COUNT(*) FROM undos", params![], |row| row.get(0))?;
    Ok((marks, undos))
}

fn find(store: &Store, kept: &Kept) -> Result<Found> {
    let sessions: Vec<SessionId> = store.read(|tx| {
        tx.query("SELECT DISTINCT session FROM snapshots", params![], |row| row.get(0))
    })?;
    let mut segments: Vec<(SessionId, Segment)> = Vec::new();
    for session in sessions {
        let of_session = store.read(|tx| changes::segments(tx, session))?;
        segments.extend(of_session.into_iter().map(|segment| (session, segment)));
    }
    // The newest first, as long as there is room.
    segments.sort_by_key(|(_, segment)| std::cmp::Reverse(segment.at));
    let mut needed = Needed::default();
    for steps in store.read(undo_steps)? {
        needed.steps(&steps);
    }
    let mut turns: BTreeMap<SessionId, HashSet<TurnId>> = BTreeMap::new();
    let mut outdated: BTreeMap<SessionId, (i64, i64)> = BTreeMap::new();
    let mut gone = HashSet::new();
    for (session, segment) in &segments {
        let of_session = turns.entry(*session).or_default();
        of_session.insert(segment.turn);
        let full = of_session.len() > kept.turns || needed.bytes > kept.bytes;
        if full || outdated.contains_key(session) {
            let (up_to, marks) = outdated.entry(*session).or_default();
            *up_to = (*up_to).max(segment.numbers.1);
            *marks += segment.numbers.1 - segment.numbers.0 + 1;
            gone.insert(segment.turn);
            continue;
        }
        needed.segment(store, segment)?;
    }
    let all: Vec<(String, i64)> = store.read(|tx| {
        tx.query("SELECT hash, size FROM snapshot_objects", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    })?;
    let garbage = all
        .into_iter()
        .filter(|(hash, _)| !needed.objects.contains(hash))
        .map(|(hash, size)| (hash, u64::try_from(size).unwrap_or(0)))
        .collect();
    Ok(Found {
        marks: outdated.values().map(|(_, marks)| marks).sum(),
        outdated: outdated
            .into_iter()
            .map(|(session, (up_to, _))| Outdated { session, up_to })
            .collect(),
        turns: gone.len(),
        garbage,
    })
}

/// The steps of undos that were begun or can be taken back.
fn undo_steps(tx: &mut ReadTx<'_>) -> Result<Vec<Vec<PathChange>>> {
    let texts: Vec<String> = tx.query(
        "SELECT steps FROM undos WHERE state = 'begun' OR taken_back IS NULL",
        params![],
        |row| row.get(0),
    )?;
    let read = |text: String| {
        serde_json::from_str::<Vec<PathChange>>(&text).map_err(|error| damaged("an undo", &error))
    };
    texts.into_iter().map(read).collect()
}

/// Objects that something needs.
#[derive(Default)]
struct Needed {
    objects: HashSet<String>,
    bytes: u64,
}

impl Needed {
    fn steps(&mut self, steps: &[PathChange]) {
        for step in steps {
            self.state(&step.from);
            self.state(&step.to);
        }
    }

    fn state(&mut self, state: &State) {
        let State::File { size, .. } = state else { return };
        let mut new = false;
        for object in state.objects() {
            new |= self.objects.insert(object.to_owned());
        }
        if new {
            self.bytes += size;
        }
    }

    fn segment(&mut self, store: &Store, segment: &Segment) -> Result<()> {
        for state in segment.states() {
            self.state(state);
        }
        let mut left: Vec<String> = segment.roots().map(str::to_owned).collect();
        while let Some(hash) = left.pop() {
            if !self.objects.insert(hash.clone()) {
                continue;
            }
            let listing = store.read(|tx| objects::listing(tx, &hash))?;
            for item in listing.0 {
                self.bytes += 100;
                self.state(&item.state);
                if !item.listing.is_empty() {
                    left.push(item.listing);
                }
            }
        }
        Ok(())
    }
}

fn remove(tx: &mut WriteTx<'_>, outdated: &[Outdated], garbage: &[(String, u64)]) -> Result<()> {
    let now = tx.now();
    for Outdated { session, up_to } in outdated {
        tx.execute(
            "DELETE FROM snapshots WHERE session = ?1 AND number <= ?2",
            params![session, up_to],
        )?;
    }
    for part in garbage.chunks(NAMED) {
        let places: Vec<String> = (1..=part.len()).map(|place| format!("?{place}")).collect();
        let sql = format!("DELETE FROM snapshot_objects WHERE hash IN ({})", places.join(", "));
        let hashes: Vec<&dyn ToValue> = part.iter().map(|(hash, _)| hash as _).collect();
        tx.execute(&sql, &hashes)?;
    }
    tx.execute(
        "INSERT INTO snapshot_sweeps (one, generation, swept_at) VALUES (1, 1, ?1)
         ON CONFLICT (one) DO UPDATE SET generation = snapshot_sweeps.generation + 1,
             swept_at = excluded.swept_at",
        params![now],
    )?;
    Ok(())
}
